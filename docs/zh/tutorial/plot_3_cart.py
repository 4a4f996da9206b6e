"""
三、基尼指数、最小二乘与 CART
=============================

CART 的每个结点只有两个分支。分类用基尼指数，回归用平方误差。

基尼指数
--------

:math:`\\mathrm{Gini}(p) = 1 - \\sum_k p_k^2` ：随机抽两个样本，标签不同的概率。贷款表里 9 批准、6 拒绝：
"""

import matplotlib.pyplot as plt
import numpy as np
from gputree import (
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    export_text,
    gini,
    gini_gain,
)
from gputree.datasets import load_iris, load_loan
from gputree.export import plot_partition, plot_tree

plt.rcParams["font.sans-serif"] = [
    "Noto Sans CJK SC",
    "DejaVu Sans",
]  # 中文字体

by_hand = 1 - (9 / 15) ** 2 - (6 / 15) ** 2
print(f"手算 {by_hand:.3f}   gputree {gini(counts=[9, 6]):.3f}")

# %%
# 按“某特征等于某值”分成两支，两支的基尼指数按样本数加权，越小越好。李航《统计学习方法》例 5.4 的数据：
WORDS = {
    "young": "青年", "middle-aged": "中年", "old": "老年",
    "yes": "是", "no": "否",
    "fair": "一般", "good": "好", "excellent": "非常好",
}  # fmt: skip
loan = load_loan()
X = np.vectorize(WORDS.get, otypes=[object])(loan.data)
y = np.array(["批准" if label == "yes" else "拒绝" for label in loan.target])
names = ["年龄", "有工作", "有房", "信贷"]
for j, name in enumerate(names):
    for value in dict.fromkeys(X[:, j]):
        here = X[:, j] == value
        after = here.mean() * gini(y[here]) + (~here).mean() * gini(y[~here])
        print(f"Gini(D, {name} = {value}) = {after:.2f}")

# %%
# “有房”最小（0.27）。它从 0.48 降到 0.27，降了多少， ``gini_gain`` 也知道：
print(f"有房：{gini_gain(X, y)[2]:.4f}   手算 {0.48 - 4 / 15:.4f}")
tree = DecisionTreeClassifier().fit(X, y)
print(export_text(tree, feature_names=names))

# %%
# 三个以上的取值，CART 找的是最好的一分为二：不只是一个值对其余，而是所有子集。
#
# 回归树：最小二乘
# ----------------
#
# 李航书中习题 5.2 的数据，十个点。在每个切分点，两边各用平均值预测，平方误差之和最小者胜。
x = np.arange(1.0, 11.0)
t = np.array([4.50, 4.75, 4.91, 5.34, 5.80, 7.05, 7.90, 8.23, 8.70, 9.00])


def loss(values):
    """平均值的平方误差之和。"""
    return ((values - values.mean()) ** 2).sum()


for s in range(1, 10):
    print(f"x <= {s + 0.5}：{loss(t[:s]) + loss(t[s:]):.3f}")

# %%
# 最小的是 ``x <= 5.5`` 。树也这样切分，再各自切分下去：
tree = DecisionTreeRegressor(max_depth=2).fit(x[:, None], t)
print(tree.tree_.threshold[0])
figure, ax = plt.subplots(figsize=(6, 3.5), layout="constrained")
ax.plot(x, t, "o", label="数据")
for depth in (1, 2):
    tree = DecisionTreeRegressor(max_depth=depth).fit(x[:, None], t)
    fine = np.linspace(0.5, 10.5, 500)
    ax.plot(fine, tree.predict(fine[:, None]), label=f"深度 {depth} 的回归树")
ax.set(xlabel="x", ylabel="y", title="分段常数")
ax.legend()

# %%
plot_tree(tree, feature_names=["x"])

# %%
# 平面怎样被分开
# --------------
#
# 只用鸢尾花的花瓣长、宽两个特征，树就是平面上的一些横线和竖线：
iris = load_iris()
petals = iris.data[:, 2:]
classes = ["山鸢尾", "变色鸢尾", "弗吉尼亚鸢尾"]
tree = DecisionTreeClassifier(max_depth=3).fit(petals, iris.target)
plot_partition(
    tree,
    X=petals,
    y=iris.target,
    feature_names=["花瓣长", "花瓣宽"],
    class_names=classes,
)
