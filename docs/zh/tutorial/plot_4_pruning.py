"""
四、剪枝
========

完全生长的树把训练数据连同噪声一起记住了（过拟合）。剪枝去掉不值得的划分：预剪枝在生成时不做，后剪枝生成以后自下而上去掉。

代价：李航的损失函数
--------------------

:math:`C_\\alpha(T) = \\sum_t N_t H_t + \\alpha |T|` ：叶结点的熵按样本数加权相加，每个叶结点再加 :math:`\\alpha` 。贷款的 ID3 树有三个叶结点，都是纯的，损失是 :math:`3\\alpha` ；只留根结点，损失是 :math:`15 H(D) + \\alpha` 。所以 :math:`\\alpha` 到了 :math:`15 H(D) / 2` ，整棵树就不值得了：
"""

import matplotlib.pyplot as plt
import numpy as np
from gputree import DecisionTreeClassifier, ID3Classifier, entropy, export_text
from gputree.datasets import load_loan, load_watermelon
from gputree.export import plot_partition, plot_pruning_path
from gputree.pruning import (
    CostComplexityCV,
    PenalizedLoss,
    ReducedError,
    ValidationPrePruning,
)

plt.rcParams["font.sans-serif"] = [
    "Noto Sans CJK SC",
    "DejaVu Sans",
]  # 中文字体

loan = load_loan()
limit = 15 * entropy(loan.target) / 2
print(f"15 H(D) / 2 = {limit:.3f}")
full = ID3Classifier().fit(loan.data, loan.target)
for alpha in (1, limit - 0.01, limit + 0.01):
    pruned = PenalizedLoss(alpha).prune(full)
    print(f"alpha = {alpha:.3f}：{pruned.get_n_leaves()} 个叶结点")

# %%
# 中间的那棵（只按“有房”划分，两个叶结点）从来不是最好的：它要 :math:`9 H(3/9) + 2\alpha` 。自下而上逐个试剪，要 :math:`\alpha \ge 8.265` 才剪得到它；在这之前（ :math:`7.282 < \alpha < 8.265` ）会停在完整的树上。动态规划比较所有的剪法，不受此限。
#
# 预剪枝与后剪枝：周志华的西瓜
# ----------------------------
#
# 书中 4.3 节把 17 个西瓜分成 10 个训练、7 个验证。书上的树以“脐部”为根：它和“色泽”的增益相等，取哪个属性都行。
# ``gputree`` 取靠前的一个，所以这里把脐部放在最前。
MELON_WORDS = {
    "green": "青绿", "black": "乌黑", "pale": "浅白",
    "curled": "蜷缩", "slightly curled": "稍蜷", "stiff": "硬挺",
    "dull": "浊响", "muffled": "沉闷", "crisp": "清脆",
    "clear": "清晰", "slightly blurred": "稍糊", "blurred": "模糊",
    "sunken": "凹陷", "slightly sunken": "稍凹", "flat": "平坦",
    "smooth": "硬滑", "sticky": "软粘",
}  # fmt: skip
melon = load_watermelon()
order = [4, 0, 1, 2, 3, 5]
names = ["脐部", "色泽", "根蒂", "敲声", "纹理", "触感"]
X = np.vectorize(MELON_WORDS.get, otypes=[object])(melon.data)[:, order]
y = np.array(["好瓜" if label == "yes" else "坏瓜" for label in melon.target])
grow = np.array([1, 2, 3, 6, 7, 10, 14, 15, 16, 17]) - 1
check = np.setdiff1d(np.arange(17), grow)

tree = ID3Classifier().fit(X[grow], y[grow])
early = ValidationPrePruning().prune(tree, X[check], y[check])
late = ReducedError().prune(tree, X[check], y[check])
for name, each in (("未剪枝", tree), ("预剪枝", early), ("后剪枝", late)):
    accuracy = each.score(X[check], y[check])
    print(f"{name}：{each.get_n_leaves()} 个叶结点，验证集精度 {accuracy:.1%}")

# %%
# 未剪枝的树。书上图 4.5 还为没有训练样本的取值生成叶结点（空分支），这里没有，其余相同：
print(export_text(tree, feature_names=names))

# %%
# 后剪枝（错误率降低剪枝，REP）留下的树：
print(export_text(late, feature_names=names))

# %%
# 预剪枝自上而下生成，划分不能提高验证集精度就停，看不到后续划分合起来才有的提高；后剪枝先生成完整的树再自下而上考察。 ``ReducedError`` 在验证集误差最小的剪法里取最小的树，所以精度不变的地方也剪；书上只在精度提高时才剪，留下的分支多一些，三个精度与书上相同。
#
# CART 的代价复杂度剪枝
# ---------------------
#
# 从完全生长的树出发，每次剪掉“最不值”的一处，得到一串越来越小的树；再用交叉验证选一棵。数据：单位正方形里一条波浪线分开两类，大约每七个点错标一个。


def wave(n, seed):
    """波浪线两侧的 `n` 个点。"""
    rng = np.random.default_rng(seed)
    points = rng.random((n, 2))
    above = points[:, 1] > 0.5 + 0.3 * np.sin(2 * np.pi * points[:, 0])
    return points, (above ^ (rng.random(n) < 0.15)).astype(int)


rows, test = wave(400, 0), wave(20_000, 2)
full = DecisionTreeClassifier().fit(*rows)
pruner = CostComplexityCV(rule="1se", random_state=0)
small = pruner.prune(full, *rows)
figure, axes = plt.subplots(1, 2, figsize=(10, 4.5), layout="constrained")
for ax, name, tree in zip(
    axes, ("未剪枝", "剪枝后"), (full, small), strict=True
):
    plot_partition(
        tree,
        X=rows[0],
        y=rows[1],
        features=(0, 1),
        class_names=["线的下方", "线的上方"],
        ax=ax,
    )
    leaves, accuracy = tree.get_n_leaves(), tree.score(*test)
    ax.set_title(f"{name}：{leaves} 个叶结点，测试精度 {accuracy:.3f}")

# %%
# 误差怎样随 :math:`\alpha` 变化：训练误差只升不降，交叉验证的误差先降后升。“一倍标准误”的规则取误差不明显更大的最小的树。
ax = plot_pruning_path(pruner)
ax.set(xlabel="复杂度参数 alpha", ylabel="误差（与根结点之比）")
ax.figure.axes[1].set_xlabel("叶结点数")
lines, _ = ax.get_legend_handles_labels()
names = [
    "训练误差",
    "最小误差 + 标准误",
    "误差最小",
    "标准误规则",
    "交叉验证的误差",
]
ax.legend(lines, names)

# %%
# 六种剪枝方法各自做什么、何时用、花多少时间，见 :doc:`/pruning` 。
