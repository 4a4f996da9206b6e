"""Trees of tables whose partitions lie on the workers of a Dask cluster.

    partitions   looked at, read and coded where they lie
    levels       partitions count, a tree of sums reaches the client, one grower decides
    splits       small, go back

The tree is that of the table in one piece, field by field: README.md next to this file says how,
what travels, and where it ends.
"""

from gputree._optional import require

for _module in ("dask", "distributed"):
    require(_module, "gputree.distributed")

from gputree.distributed.estimators import DaskDecisionTreeClassifier, DaskDecisionTreeRegressor  # noqa: E402  after what it needs is known to be there
from gputree.distributed.forests import DaskRandomForestClassifier, DaskRandomForestRegressor  # noqa: E402

__all__ = [
    "DaskDecisionTreeClassifier",
    "DaskDecisionTreeRegressor",
    "DaskRandomForestClassifier",
    "DaskRandomForestRegressor",
]
