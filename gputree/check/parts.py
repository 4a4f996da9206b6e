"""Trees of a check over a table in parts, each counted by a device, as on a cluster."""

from __future__ import annotations

from numpy.typing import NDArray

from gputree.backends.arrays import to_host
from gputree.backends.sharded.rows import Read, join_measures, measure
from gputree.backends.sharded.tasks import Here, Tasks
from gputree.dtypes import Floats
from gputree.estimators import DecisionTreeClassifier
from gputree.estimators.base import with_weight
from gputree.estimators.growing_parts import Rowsets, grow_parts
from gputree.tables import Table
from gputree.tree import Tree


class InParts(DecisionTreeClassifier):
    """Estimator that grows over two parts of the table, counted by the device."""

    def _grow_tree(self, table: Table, target: NDArray, weight: Floats | None, n: int) -> Tree:
        table, target, weight = with_weight(table, target, weight)
        values, columns = to_host(table.values), table.columns
        parts = [
            Read(values[part], target[part], None if weight is None else weight[part])
            for part in (slice(0, n // 3), slice(n // 3, n))
        ]
        found = join_measures([measure(part, columns.nominal) for part in parts])
        options = self._options(n, values.shape[1], "cpu")
        rowsets = Rowsets(parts, columns, values.dtype, found)
        return grow_parts(Tasks(Here()), rowsets, options, lambda: self.device).tree
