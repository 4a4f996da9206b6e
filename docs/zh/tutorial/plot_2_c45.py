"""
二、信息增益比与 C4.5
=====================

增益比
------

信息增益偏爱取值多的特征。给打球的数据加一个特征“日期”，每天一个值：增益达到最大，却什么也没有学到。
"""

import matplotlib.pyplot as plt
import numpy as np
from gputree import (
    C45Classifier,
    entropy,
    export_text,
    gain_ratio,
    information_gain,
)
from gputree.datasets import (
    load_contact_lenses,
    load_golf,
    load_iris,
    load_watermelon,
)
from gputree.export import plot_tree
from gputree.pruning import add_errors

plt.rcParams["font.sans-serif"] = [
    "Noto Sans CJK SC",
    "DejaVu Sans",
]  # 中文字体

WORDS = {
    "sunny": "晴", "overcast": "阴", "rain": "雨",
    "hot": "热", "mild": "温", "cool": "凉",
    "high": "高", "normal": "正常", "weak": "弱", "strong": "强",
}  # fmt: skip
golf = load_golf()
X = np.vectorize(WORDS.get, otypes=[object])(golf.data)
y = np.array(["打球" if label == "yes" else "不打" for label in golf.target])
names = ["天气", "温度", "湿度", "风"]

dated = np.column_stack([X, [f"第{day}天" for day in range(1, 15)]])
gains, ratios = information_gain(dated, y), gain_ratio(dated, y)
for name, gain, ratio in zip([*names, "日期"], gains, ratios, strict=True):
    print(f"{name}  增益 {gain:.3f}  增益比 {ratio:.3f}")

# %%
# 增益比（李航：信息增益比；周志华：增益率）是增益除以这个特征（属性）自己的熵，即分裂信息（李航记作 H_A(D)，周志华称“固有值”）：分支越多，除数越大。天气手算：
counts = [5, 4, 5]  # 晴、阴、雨
own = entropy(counts=counts)
print(f"分裂信息 {own:.3f}，增益比 {gains[0] / own:.3f}")

# %%
# 日期的增益比还是不低（0.247），比天气大。单靠增益比不够，而且它又偏爱一边倒的分法。C4.5 的规则是：只在增益不低于平均的特征里选增益比最大的；每天一个值的特征，每个分支只有一个样本，少于 ``min_samples_leaf`` （默认 2），也进不来。
tree = C45Classifier(pruning=None).fit(dated, y)
print(export_text(tree, feature_names=[*names, "日期"]))

# %%
# 缺失值：一个样本分到各个分支
# ----------------------------
#
# 昆兰的例子：第 12 天的天气没有记下来。其余 13 天里 5 天晴、3 天阴、5 天雨。增益只用已知的 13 天算，再乘以已知的比例 13/14：
known = np.arange(14) != 11
weather, played = X[known, 0], y[known]
inside = sum(
    (weather == value).mean() * entropy(played[weather == value])
    for value in ("晴", "阴", "雨")
)
print(f"手算 {13 / 14 * (entropy(y[known]) - inside):.3f} 比特")

# %%
# 分裂信息把“缺失”当作第四个值，所以天气的增益比降到湿度之下，根结点换成了湿度。
lost = entropy(counts=[5, 3, 5, 1])
gain = 13 / 14 * (entropy(y[known]) - inside)
print(f"天气的分裂信息 {lost:.3f}，增益比 {gain / lost:.3f}")
print(f"湿度的增益比 {ratios[2]:.3f}")

# %%
# 那一天湿度高。湿度高的其余六天里 3 天晴、1 天阴、2 天雨，所以它以 3/6、1/6、2/6 的权重走进三个分支，叶结点的样本数是小数：
holes = X.copy()
holes[11, 0] = None
tree = C45Classifier(pruning=None).fit(holes, y)
print(export_text(tree, feature_names=names))
plot_tree(tree, feature_names=names)

# %%
# 预测也一样：天气未知的一天，预测是三个分支的加权平均。
for day in (["雨", "温", "高", "弱"], [None, "温", "高", "弱"]):
    shares = tree.predict_proba([day])[0].round(3).tolist()
    print(day[0], dict(zip(tree.classes_.tolist(), shares, strict=True)))

# %%
# 连续值：二分，并为切分点付费
# ----------------------------
#
# 连续特征按 ``x <= 阈值`` 分成两支（二分法）。候选的切分点越多，越容易碰巧分得好，所以 C4.5（1996 年的改进）从增益里扣掉“说出是哪个切分点”所需的比特数。鸢尾花的根结点：
iris = load_iris()
for mdl in (True, False):
    tree = C45Classifier(mdl_correction=mdl).fit(iris.data, iris.target)
    name, cut = (
        iris.feature_names[tree.tree_.feature[0]],
        tree.tree_.threshold[0],
    )
    print(f"mdl_correction={mdl}：根结点 {name} <= {cut:.2f}")

# %%
# 西瓜：周志华表 4.3 与表 4.4
# ---------------------------
#
# 表 4.3 给 17 个西瓜加上两个连续属性，密度和含糖率。书中算得：密度在 0.381 处二分，增益 0.262；含糖率在 0.126 处，增益 0.349；纹理的增益仍最大（0.381）。
melon = load_watermelon(version="3.0")
for j, name in [(6, "密度"), (7, "含糖率")]:
    column = melon.data[:, [j]].astype(float)
    gain = information_gain(column, melon.target)[0]
    cut = (
        C45Classifier(pruning=None, mdl_correction=False)
        .fit(column, melon.target)
        .tree_.threshold[0]
    )
    print(f"{name} <= {cut:.4f}，增益 {gain:.3f}")

# %%
# 书中图 4.8 的树按信息增益选属性，连续属性二分，不扣比特数，不剪枝。 ``criterion="gain"`` （C4.5 的 ``-g`` ）就是这样：
tree = C45Classifier(
    criterion="gain",
    mdl_correction=False,
    min_samples_leaf=1,
    collapse=False,
    pruning=None,
).fit(melon.data, melon.target)
print(export_text(tree, feature_names=melon.feature_names))

# %%
# 表 4.4 里有 13 个单元格缺失。增益只用已知的样本算，再乘以已知样本的比例，书中得到 0.252、0.171、0.145、0.424、0.289、0.006：
melon = load_watermelon(version="2.0 alpha")
cells = melon.data
for j, name in enumerate(["色泽", "根蒂", "敲声", "纹理", "脐部", "触感"]):
    known = np.array([cell is not None for cell in cells[:, j]])
    column, ripe = cells[known, j], melon.target[known]
    inside = sum(
        (column == value).mean() * entropy(ripe[column == value])
        for value in set(column)
    )
    print(f"{name}  {known.mean() * (entropy(ripe) - inside):.3f}")

# %%
# 纹理的增益最大，书中选它作根结点，与 C4.5 一样，把纹理缺失的 8 号和 10 号样本按比例送进三个分支。C4.5 看增益比，分裂信息又把“缺失”算作一个值，但在这里根结点也是纹理：
tree = C45Classifier(pruning=None).fit(cells, melon.target)
print(melon.feature_names[tree.tree_.feature[0]])

# %%
# 悲观剪枝
# --------
#
# 叶结点在自己的训练样本上错得太少，不能全信。C4.5 把错误数抬高到二项分布的置信上限（置信度 0.25）。没有错的叶结点可以手算：加上 :math:`N (1 - 0.25^{1/N})` 。
for n in (1, 6, 100):
    own = n * (1 - 0.25 ** (1 / n))
    print(f"{n} 个样本没有错：手算加 {own:.4f}，gputree {add_errors(n, 0):.4f}")
print(f"14 个样本错 5 个：加 {add_errors(14, 5):.4f}")

# %%
# 自下而上，一个结点若变成叶结点，估计的错误不多于它的子树（外加 0.1），就剪掉。 ``C45Classifier`` 默认就这样剪。隐形眼镜的 24 个样本（ ``collapse=False`` 关掉剪枝之前的另一步：不减少训练错误的子树直接收起）：
lenses = load_contact_lenses()
for pruning in (None, "pessimistic"):
    tree = C45Classifier(pruning=pruning, collapse=False)
    tree.fit(lenses.data, lenses.target)
    print(f"pruning={pruning}：{tree.get_n_leaves()} 个叶结点")
print(export_text(tree, feature_names=["年龄", "视力", "散光", "泪液"]))
