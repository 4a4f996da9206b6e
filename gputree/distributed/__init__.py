"""Trees of tables whose partitions are on the workers of a Dask cluster.

    partitions   inspected, read and coded on their workers
    levels       partitions count, a tree of sums reaches the client, one grower decides
    splits       small, go back

The tree equals the tree of the whole table, field by field: README.md next to this file says how,
what travels, and where it ends.
"""

from gputree.base.optional import require

for _module in ("dask", "distributed"):
    require(_module, "gputree.distributed")

from gputree.distributed.estimators import (  # noqa: E402  after what it needs is known to be there
    DaskDecisionTreeClassifier,
    DaskDecisionTreeRegressor,
    DaskRandomForestClassifier,
    DaskRandomForestRegressor,
)

__all__ = [
    "DaskDecisionTreeClassifier",
    "DaskDecisionTreeRegressor",
    "DaskRandomForestClassifier",
    "DaskRandomForestRegressor",
]
