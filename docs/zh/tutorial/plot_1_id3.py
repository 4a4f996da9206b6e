"""
一、熵、信息增益与 ID3
======================

决策树每一步都问同一个问题：按哪个特征（属性）划分，标签的不确定性减少得最多？本节用鱼、打球、贷款、西瓜四张小表，先手算，再和 ``gputree`` 的结果对照。

熵
--

标签取第 :math:`k` 类的比例为 :math:`p_k` ，熵是 :math:`H = -\\sum_k p_k \\log_2 p_k` ，单位是比特。比例由样本估计，所以李航称之为经验熵，下面的条件熵称为经验条件熵。
14 天里 9 天打球、5 天不打：
"""

import matplotlib.pyplot as plt
import numpy as np
from gputree import (
    ID3Classifier,
    entropy,
    export_text,
    information_gain,
    rank_features,
)
from gputree.datasets import load_fish, load_golf, load_loan, load_watermelon
from gputree.export import plot_feature_ranking, plot_tree

plt.rcParams["font.sans-serif"] = [
    "Noto Sans CJK SC",
    "DejaVu Sans",
]  # 中文字体

by_hand = -(9 / 14) * np.log2(9 / 14) - (5 / 14) * np.log2(5 / 14)
print(f"手算 {by_hand:.6f}   gputree {entropy(counts=[9, 5]):.6f}")

# %%
# 画图需要 matplotlib：在克隆的目录里 ``pip install ".[plot]"`` 。图里的中文需要一种中文字体。没有安装时， ``gputree`` 的画图函数会给出提示：Debian、Ubuntu 上
# ``apt install fonts-noto-cjk`` ；Windows 可以直接用 ``"Microsoft YaHei"`` ，macOS 可以用
# ``"PingFang HK"`` ，把上面一行里的名字换掉即可。
#
# 只有两类时，比例为 0 或 1 则熵为 0，各占一半则熵最大，为 1 比特。
p = np.linspace(0.001, 0.999, 200)
figure, ax = plt.subplots(figsize=(5, 3), layout="constrained")
ax.plot(p, [entropy(counts=[a, 1 - a]) for a in p])
ax.plot(9 / 14, by_hand, "o")
ax.set(xlabel="正类的比例", ylabel="熵（比特）", title="两类的熵")

# %%
# 信息增益
# --------
#
# 按一个特征的取值把样本分开，各分支的熵按样本数加权平均，就是（经验）条件熵；经验熵减去经验条件熵，就是信息增益：
#
# .. math:: g(D, A) = H(D) - \sum_v \frac{|D_v|}{|D|} H(D_v)


def gain_by_hand(column, labels):
    """一个特征的信息增益，照公式写。"""
    remains = 0.0
    for value in set(column):
        branch = labels[column == value]
        remains += branch.size / labels.size * entropy(branch)
    return entropy(labels) - remains


golf = load_golf()
golf_names = ["天气", "温度", "湿度", "风"]
scores = information_gain(golf.data, golf.target)
for j, name in enumerate(golf_names):
    own = gain_by_hand(golf.data[:, j], golf.target)
    print(f"{name}  手算 {own:.4f}   gputree {scores[j]:.4f}")

# %%
# 天气的增益最大（0.247 比特），所以 ID3 的根结点是天气。
#
# 鱼：最小的例子
# --------------
#
# 五种动物，两个特征：不浮出水面能否生存，有没有脚蹼。
fish = load_fish()
tree = ID3Classifier().fit(fish.data, fish.target)
print(f"熵 {entropy(fish.target):.6f}")
fish_names, kinds = ["不浮出水面", "脚蹼"], ["不是鱼", "是鱼"]
print(export_text(tree, feature_names=fish_names, class_names=kinds))

# %%
# 贷款：李航《统计学习方法》表 5.1
# --------------------------------
#
# 先把单元格换成中文：
WORDS = {
    "young": "青年", "middle-aged": "中年", "old": "老年",
    "yes": "是", "no": "否",
    "fair": "一般", "good": "好", "excellent": "非常好",
}  # fmt: skip
loan = load_loan()
X = np.vectorize(WORDS.get, otypes=[object])(loan.data)
y = np.array(["批准" if label == "yes" else "拒绝" for label in loan.target])
loan_names = ["年龄", "有工作", "有房", "信贷"]
for name, score in zip(loan_names, information_gain(X, y), strict=True):
    print(f"g(D, {name}) = {score:.3f}")

# %%
# 书中例 5.2 得到 0.083、0.324、0.420、0.363，选“有房”。余下 9 个没有房的人，再选“有工作”：
tree = ID3Classifier().fit(X, y)
plot_tree(tree, feature_names=loan_names)

# %%
# 方框里依次是：走到这里的条件、预测的类别、括号里的样本数（斜线后是其中预测错的样本数）。方框下面的色条是各类的比例。
#
# 西瓜：周志华《机器学习》表 4.1
# ------------------------------
#
# 17 个西瓜，6 个属性。书中算得熵 0.998，纹理的增益 0.381，色泽的增益 0.109（由四舍五入过的熵算得，精确值是 0.108）。
melon = load_watermelon()
melon_names = ["色泽", "根蒂", "敲声", "纹理", "脐部", "触感"]
print(f"熵 {entropy(melon.target):.3f}")
ranking = rank_features(melon.data, melon.target, feature_names=melon_names)
print(ranking)
ax = plot_feature_ranking(ranking)
ax.set(xlabel="信息增益（比特）", ylabel="", title="西瓜：信息增益")

# %%
# ID3 生成的树，用文字：
MELON_WORDS = {
    "green": "青绿", "black": "乌黑", "pale": "浅白",
    "curled": "蜷缩", "slightly curled": "稍蜷", "stiff": "硬挺",
    "dull": "浊响", "muffled": "沉闷", "crisp": "清脆",
    "clear": "清晰", "slightly blurred": "稍糊", "blurred": "模糊",
    "sunken": "凹陷", "slightly sunken": "稍凹", "flat": "平坦",
    "smooth": "硬滑", "sticky": "软粘",
}  # fmt: skip
X = np.vectorize(MELON_WORDS.get, otypes=[object])(melon.data)
y = np.array(["好瓜" if label == "yes" else "坏瓜" for label in melon.target])
tree = ID3Classifier().fit(X, y)
print(export_text(tree, feature_names=melon_names))

# %%
# 与书中图 4.4 只差一处：书上为结点里没有样本的取值也生成叶结点（空分支，“色泽 = 浅白”，类别是父结点里样本最多的类别）， ``gputree`` 的 ID3 只为出现过的取值生成分支；没有分支的取值在这个结点停下，预测也是这里样本最多的类别，所以预测相同。增益相等时书上任取一个属性， ``gputree`` 取最靠前的一个。
#
# ID3 的两个弱点，下一节的 C4.5 来补：偏好取值多的特征，不能处理连续值和缺失值。
