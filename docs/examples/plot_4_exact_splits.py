"""
Exact splits at histogram cost: the bound
=========================================

The counts of a bin bound the score of every cut inside it. The figures show the bounds of one
column, and the box and the path of one bin. :doc:`/exact_splits` has the proof.
"""

import matplotlib.pyplot as plt
import numpy as np

from gputree import DecisionTreeClassifier

rng = np.random.default_rng(7)
n, bins = 4_000, 24
x = np.sort(rng.normal(size=n))
y = (rng.random(n) < 0.35 + 0.4 * (x > 0.3) * (x < 1.6)).astype(int)


def score(left, total):
    """Decrease of gini by cuts that send the class counts `left` to the left."""
    right = total - left

    def squares(counts):
        weight = counts.sum(axis=-1)
        return (counts**2).sum(axis=-1) / np.maximum(weight, 1)

    return (squares(left) + squares(right) - squares(total)) / total.sum()


# %%
# Class counts left of each cut, and the scores of all cuts. All bins have the same number of rows.
crossed = np.cumsum(np.column_stack([y == 0, y == 1]), axis=0).astype(float)
total = crossed[-1]
scores = score(crossed[:-1], total)
edges = np.linspace(0, n, bins + 1).astype(int)
at_edges = np.vstack([[0.0, 0.0], crossed])[edges]
best = score(at_edges[1:-1], total).max()

# %%
# The bound of a bin: the maximum of the score at the four corners of its box.
low, high = at_edges[:-1], at_edges[1:]
corners = [np.column_stack([a[:, 0], b[:, 1]]) for a in (low, high) for b in (low, high)]
bound = np.max([score(corner, total) for corner in corners], axis=0)
candidate = bound >= best

figure, ax = plt.subplots(figsize=(9, 4), layout="constrained")
for k in range(bins):
    begin, end = x[edges[k]], x[edges[k + 1] - 1]
    color = "C1" if candidate[k] else "0.85"
    ax.fill_between([begin, end], 0, bound[k], color=color, linewidth=0, alpha=0.6)
ax.plot(x[:-1], scores, color="C0", linewidth=1, label="every cut")
ax.plot(x[edges[1:-1] - 1], scores[edges[1:-1] - 1], "o", color="C0", label="bin boundaries")
ax.axhline(best, color="C3", linestyle="--", linewidth=1, label="best boundary")
ax.plot(x[scores.argmax()], scores.max(), "*", color="C3", markersize=12, label="best cut")
ax.set(xlabel="value", ylabel="decrease of gini", xlim=(-2.2, 2.6), ylim=(0, 1.25 * bound.max()))
ax.set_title(f"{candidate.sum()} of {bins} bins are candidates: their bound reaches the line")
ax.legend(loc="upper left", ncols=2)

# %%
# One bin as a box. A cut inside it is a point on the path; the path depends on the order of the
# values, so without sorting it may be any from the lower left to the upper right corner. The score
# is convex: its maximum in the box is at a corner.
k = int(np.searchsorted(edges, scores.argmax(), side="right")) - 1
a, b = low[k], high[k]
first, second = np.meshgrid(np.linspace(a[0], b[0], 200), np.linspace(a[1], b[1], 200))
surface = score(np.stack([first, second], axis=-1), total)
path = np.vstack([a, crossed[edges[k] : edges[k + 1]]])

figure, ax = plt.subplots(figsize=(6, 5), layout="constrained")
shades = ax.contourf(first, second, surface, levels=15, cmap="viridis", alpha=0.8)
figure.colorbar(shades, label="decrease of gini")
ax.plot(path[:, 0], path[:, 1], color="black", linewidth=1.5, label="cuts inside the bin")
ends = [a[0], b[0], a[0], b[0]], [a[1], a[1], b[1], b[1]]
ax.plot(*ends, "o", color="C3", clip_on=False, zorder=3, label="corners")
ax.set(xlabel="first class, sent left", ylabel="second class, sent left")
ax.legend(loc="upper left")

# %%
# The tree takes the cut that sorting finds.
tree = DecisionTreeClassifier(max_depth=1).fit(x[:, None], y)
best = scores.argmax()
print(tree.tree_.threshold[0], (x[best] + x[best + 1]) / 2)
