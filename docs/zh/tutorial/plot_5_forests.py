"""
五、装袋与随机森林
==================

完全生长的树不稳定：样本换掉几个，树就可能换一个样子。集成学习把许多棵不同的树（基学习器）合起来，各自的错误互相抵消。本节按周志华《机器学习》8.3 节的顺序：自助采样、装袋（Bagging）、包外估计、随机森林，最后是极端随机树。

自助采样
--------

从 :math:`m` 个样本里有放回地抽 :math:`m` 次，一个样本始终没有被抽到的概率是 :math:`(1 - 1/m)^m` ， :math:`m` 很大时趋于 :math:`1/e \\approx 0.368` 。也就是说，每棵树大约只见到 63.2% 的样本。西瓜有 17 个：
"""

import matplotlib.pyplot as plt
import numpy as np
from gputree import (
    DecisionTreeClassifier,
    ExtraTreesClassifier,
    RandomForestClassifier,
)
from gputree.datasets import load_iris, load_loan, load_watermelon
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

plt.rcParams["font.sans-serif"] = [
    "Noto Sans CJK SC",
    "DejaVu Sans",
]  # 中文字体

melon = load_watermelon()
forest = RandomForestClassifier(n_estimators=500, random_state=0)
forest.fit(melon.data, melon.target)
left_out = [
    1 - np.unique(rows).size / 17 for rows in forest.estimators_samples_
]
print(
    f"没有抽到的比例：手算 {(1 - 1 / 17) ** 17:.3f}   gputree {np.mean(left_out):.3f}"
)

# %%
# ``estimators_samples_`` 是每棵树抽到的样本，抽到几次就出现几次。
#
# 装袋
# ----
#
# 每棵树用自己的采样集生成，分类时投票，回归时取平均，这就是装袋。 ``max_features=None`` 的随机森林就是装袋：每个结点考察所有的属性。 ``gputree`` 的分类森林与 scikit-learn 一样，平均各棵树给出的类别概率，不是一树一票。
#
# 西瓜数据集 3.0α（周志华）只用密度和含糖率两个属性。蓝色是好瓜，红色是坏瓜，颜色越深概率越接近 1。一棵树非此即彼，树多了，边界附近有了过渡：
density = [
    0.697, 0.774, 0.634, 0.608, 0.556, 0.403, 0.481, 0.437, 0.666,
    0.243, 0.245, 0.343, 0.639, 0.657, 0.360, 0.593, 0.719,
]  # fmt: skip
sugar = [
    0.460, 0.376, 0.264, 0.318, 0.215, 0.237, 0.149, 0.211, 0.091,
    0.267, 0.057, 0.099, 0.161, 0.198, 0.370, 0.042, 0.103,
]  # fmt: skip
X, ripe = np.column_stack([density, sugar]), melon.target == "yes"
x, y = np.meshgrid(np.linspace(0.2, 0.8, 200), np.linspace(0, 0.5, 200))
places = np.column_stack([x.ravel(), y.ravel()])
figure, axes = plt.subplots(
    1, 3, figsize=(10, 3.6), layout="constrained", sharey=True
)
models = {
    "一棵树": DecisionTreeClassifier(),
    "装袋，5 棵树": RandomForestClassifier(
        n_estimators=5, max_features=None, random_state=0
    ),
    "装袋，200 棵树": RandomForestClassifier(
        n_estimators=200, max_features=None, random_state=0
    ),
}
for ax, (name, model) in zip(axes, models.items(), strict=True):
    share = model.fit(X, ripe).predict_proba(places)[:, 1].reshape(x.shape)
    shades = ax.pcolormesh(x, y, share, cmap="RdBu", vmin=-0.3, vmax=1.3)
    ax.plot(*X[ripe].T, "ko", label="好瓜")
    ax.plot(*X[~ripe].T, "kx", label="坏瓜")
    ax.set(title=name, xlabel="密度")
axes[0].set_ylabel("含糖率")
axes[0].legend(loc="upper left")
bar = figure.colorbar(shades, ax=axes, label="好瓜的概率")
bar.ax.set_ylim(0, 1)

# %%
# 包外估计
# --------
#
# 没有抽到一个样本的那些树，合起来可以为它作一次公平的预测，不必另留验证集。鸢尾花，照定义手算，与 ``oob_score=True`` 对照：
iris = load_iris()
forest = RandomForestClassifier(
    n_estimators=100, oob_score=True, random_state=0
).fit(iris.data, iris.target)
sums, trees = np.zeros((150, 3)), np.zeros((150, 1))
for tree, rows in zip(
    forest.estimators_, forest.estimators_samples_, strict=True
):
    out = np.setdiff1d(np.arange(150), rows)  # 包外的样本
    sums[out] += tree.predict_proba(iris.data[out])
    trees[out] += 1
by_hand = forest.classes_[(sums / trees).argmax(axis=1)] == iris.target
print(f"手算 {by_hand.mean():.4f}   gputree {forest.oob_score_:.4f}")
print(
    f"训练集上的精度 {forest.score(iris.data, iris.target):.4f}，不能用来评估"
)

# %%
# 随机森林
# --------
#
# 只换样本，各棵树还是相像：最好的属性总是最先用到。随机森林再加一层随机：每个结点先随机抽 :math:`k` 个属性，只在其中选最好的划分。 :math:`k = d` 就是装袋， :math:`k = 1` 是随便选一个属性；书中推荐 :math:`k = \log_2 d` ，即 ``max_features="log2"`` 。 ``gputree`` 的默认值与 scikit-learn 相同：分类 ``"sqrt"`` ，回归用所有的属性。
#
# 手写数字，64 个属性。 ``warm_start=True`` 保留已有的树，只添新的，所以可以边加树边看误差。每个样本的包外预测只用到大约三分之一的树，树少的时候误差偏高：
X, y = load_digits(return_X_y=True)
X, X_test, y, y_test = train_test_split(X, y, test_size=0.5, random_state=0)
counts = [20, 30, 40, 60, 100, 150, 200]
figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
kinds = (("装袋", None, "C0"), ("随机森林", "log2", "C1"))
for name, max_features, color in kinds:
    forest = RandomForestClassifier(
        max_features=max_features,
        oob_score=True,
        warm_start=True,
        random_state=0,
    )
    errors = []
    for n in counts:
        forest.set_params(n_estimators=n).fit(X, y)
        errors.append((1 - forest.oob_score_, 1 - forest.score(X_test, y_test)))
    out_of_bag, test = np.transpose(errors)
    ax.plot(counts, out_of_bag, "o-", color=color, label=f"{name}，包外估计")
    ax.plot(counts, test, "--", color=color, label=f"{name}，测试集")
ax.set(xlabel="树的数目", ylabel="错误率", ylim=(0, None))
ax.legend()

# %%
# 单棵树因为属性少而变弱，合起来却更好：集成要的是“好而不同”。树再多也不会过拟合，只是费时间；曲线平了就够了。
#
# 极端随机树
# ----------
#
# 切分点也随机抽：对抽到的每个属性，在结点里的最小值与最大值之间均匀地抽一个切分点（类别则抽一个子集），再从中选最好的。默认用全部样本，不作自助采样，所以没有包外估计（除非 ``bootstrap=True`` ）。
models = {
    "一棵树": DecisionTreeClassifier(),
    "随机森林": RandomForestClassifier(n_estimators=200, random_state=0),
    "极端随机树": ExtraTreesClassifier(n_estimators=200, random_state=0),
}
for name, model in models.items():
    print(f"{name}：测试集精度 {model.fit(X, y).score(X_test, y_test):.3f}")

# %%
# 文字、类别、缺失值
# ------------------
#
# 与单棵树一样直接放进去，不用编码，不用填补。贷款表，“有房”一列缺三个；每棵树也可以单独取出来看：
loan = load_loan()
cells = loan.data.astype(object)
cells[[2, 7, 11], 2] = None
forest = RandomForestClassifier(
    n_estimators=200, oob_score=True, random_state=0
).fit(cells, loan.target)
names = ["年龄", "有工作", "有房", "信贷"]
print(f"包外估计的精度 {forest.oob_score_:.2f}，15 个样本")
for name, share in zip(names, forest.feature_importances_, strict=True):
    print(f"{name}  重要性 {share:.2f}")
print(forest.estimators_[0].get_n_leaves(), "个叶结点，第一棵树")

# %%
# 重要性是训练样本上不纯度降低的份额，偏爱取值多的特征，见 :doc:`/gallery/plot_6_forests` 。线程数不论多少，森林逐位相同；样本按所在的行抽取，所以换了行的顺序，森林也会变。
