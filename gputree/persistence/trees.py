"""The codec of a tree: what JSON says of it, and its arrays, which either format stores its way.

A format has a version for plain trees; trees with bounds (`Tree.lower`, `Tree.upper`) need the
next, trees that smooth or have soft thresholds the one after it. Several trees, columns of ordered
categories, and several targets have one version each. A reader takes nothing on trust:
`Tree.check` says what is a tree, and `gputree.tree.statistics` which numbers it can have.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, NamedTuple, Protocol, get_args

import numpy as np
from numpy.typing import NDArray

from gputree.base.dtypes import CATEGORY, MOST_COLUMNS, NO_BRANCH, NODE, Int32s, Int64s
from gputree.criteria.named import CRITERIA
from gputree.errors import InputError
from gputree.persistence.container import RefusedError
from gputree.tree import Task, Tree
from gputree.tree.branches import BranchLists
from gputree.tree.statistics import check_statistics

Kinds = dict[str, tuple[type[np.generic], int]]  # name: dtype, dimensions

ARRAYS: Kinds = {
    "first_child": (NODE, 1),
    "n_children": (np.int32, 1),
    "parent": (NODE, 1),
    "depth": (np.int32, 1),
    "split_kind": (np.uint8, 1),
    "feature": (np.int32, 1),
    "threshold": (np.float64, 1),
    "missing_child": (np.int32, 1),
    "weight": (np.float64, 1),
    "n_rows": (np.int64, 1),
    "statistics": (np.float64, 2),
    "impurity": (np.float64, 1),
    "gain": (np.float64, 1),
    "branch_begin": (np.int64, 1),
    "branch_end": (np.int64, 1),
    "branch_code": (CATEGORY, 1),
}
BOUNDS: Kinds = {"lower": (np.float64, 1), "upper": (np.float64, 1)}  # of trees that have them
SOFT: Kinds = {"soft_lower": (np.float64, 1), "soft_upper": (np.float64, 1)}  # in their place
_TABLES: Kinds = {"branch_offset": (np.int64, 1), "branch_child": (NODE, 1)}  # before branch_*


class FutureModelError(RefusedError):
    """The file is of a later format version than this module reads."""


class ArraySource(Protocol):
    """Source of the arrays of a tree: a folder of an archive, or lists of a JSON document."""

    def __contains__(self, name: str) -> bool: ...

    def array(self, name: str, dtype: type[np.generic], n_dimensions: int) -> NDArray: ...


class ModelFormat(NamedTuple):
    """A format of files, by its versions; readers read the last, and all before it."""

    name: str
    plain: int  # of trees without bounds, smoothing or soft thresholds
    of_several: int  # trees, or rules
    of_ordered: int  # one or several, from here on: with columns of ordered categories,
    last: int  # and of several targets

    def lines(self, header: dict[str, Any], tree: Tree, is_several: bool) -> dict[str, Any]:
        """First lines of a header: format, version, writer; `tree` is the first one."""
        from gputree import __version__  # here, for the package imports this module

        version = self.of_several if is_several else self.plain + additions(tree)
        if "ordered" in header or "ordered" in header.get("tree_of", {}):  # of rules
            version = self.of_ordered
        return {
            "format": self.name,
            "format_version": version if tree.n_outputs == 1 else self.last,
            "gputree_version": __version__,
        }

    def trees(
        self, header: dict[str, Any], read: Callable[[Any, int | None, str], Tree]
    ) -> list[Tree]:
        """The trees of a header, one or more.

        ``read(described, added, folder)`` reads one that needs `added` versions beyond that of
        plain trees; None for as its fields say.
        """
        version = header["format_version"]
        if version < self.of_several:
            found = [read(header.get("tree"), version - self.plain, "tree")]
        elif version >= self.of_ordered and "trees" not in header:
            found = [read(header.get("tree"), None, "tree")]
        else:
            listed = header.get("trees")
            if not isinstance(listed, list) or not listed:
                raise InputError("trees must be a list of one or more.")
            found = [read(one, None, f"trees/{place}") for place, one in enumerate(listed)]
        if (version == self.last) != (found[0].n_outputs > 1):
            raise InputError(
                f"trees of several targets, and no others, are of format_version {self.last}."
            )
        return found

    def check(self, header: Any, path: str, part: str) -> None:
        """Raise ValueError unless a header is of this format, of a version that is read.

        `path` is the file, and `part` what of it the header is: for messages.
        """
        if not isinstance(header, dict) or header.get("format") != self.name:
            raise InputError(f"{part} does not name the format {self.name!r}.")
        found = header.get("format_version")
        if type(found) is not int or found < 1:
            raise InputError(f"format_version must be an int >= 1, got {found!r}.")
        if found > self.last:
            raise FutureModelError(
                f"{path} was written by a newer gputree ({header.get('gputree_version')}, format "
                f"version {found}); this one reads format versions up to {self.last}. "
                "Upgrade with: pip install --upgrade gputree-learn"
            )


def additions(tree: Tree) -> int:
    """Number of versions after the version of plain trees that a tree needs; 3 of several targets.

    Files of several targets are of the last version, and say so by `target_classes`.
    """
    if tree.n_outputs > 1:
        return 3
    if tree.smoothing or tree.soft_lower is not None:
        return 2
    return int(tree.lower is not None)


def scalars_of(tree: Tree) -> dict[str, Any]:
    """Scalars of a tree, as JSON in any format."""
    return {
        "task": tree.task,
        "criterion": tree.criterion,
        "n_features": int(tree.n_features),
        **({"smoothing": float(tree.smoothing)} if additions(tree) == 2 else {}),
        **({"target_classes": list(tree.target_classes)} if additions(tree) == 3 else {}),
    }


def arrays_of(tree: Tree) -> dict[str, NDArray]:
    """The arrays of a tree, checked, by their names."""
    tree.check()
    names = kinds_of(additions(tree), tree.soft_lower is not None)
    return {name: getattr(tree, name) for name in names}


def kinds_of(added: int, is_soft: bool) -> Kinds:
    """Arrays of trees that need `added` versions after the version of plain trees."""
    return ARRAYS | ({}, BOUNDS, SOFT if is_soft else {}, {})[added]


def added_of(scalars: Any, is_bounded: bool) -> int:
    """Number of versions after the version of plain trees that the scalars of a tree need."""
    keys = scalars if isinstance(scalars, dict) else {}
    if "target_classes" in keys:
        return 3
    return 2 if "smoothing" in keys else int(is_bounded)


def read_tree(scalars: Any, added: int, source: ArraySource) -> Tree:
    """Read a tree that needs `added` versions beyond the plain one; below 0, one with tables."""
    _check_scalars(scalars, added)
    if added == 3:
        scalars = scalars | {"target_classes": tuple(scalars["target_classes"])}
    if added >= 0:
        tree = Tree(**scalars, **read_arrays(source, kinds_of(added, "soft_lower" in source)))
    else:
        per_node = {k: v for k, v in ARRAYS.items() if k not in BranchLists._fields}
        tree = Tree(**scalars, **read_arrays(source, per_node))
        tree.check()  # before children are looked up
        tables = read_arrays(source, _TABLES)
        tree = replace(tree, **_from_tables(tree, *tables.values())._asdict())
    tree.check()
    if (added == 3) != (tree.n_outputs > 1):
        raise InputError("target_classes are those of several targets, and of no others.")
    check_statistics(tree)
    return tree


def read_arrays(source: ArraySource, kinds: Kinds) -> dict[str, Any]:
    """Arrays of these types and dimensions, by their names."""
    return {name: source.array(name, *kind) for name, kind in kinds.items()}


def _check_scalars(scalars: Any, added: int) -> None:
    """Raise ValueError unless the header's tree has the scalars of a tree, and no other keys."""
    others = {2: "smoothing", 3: "target_classes"}
    keys = {"task", "criterion", "n_features", *([others[added]] if added in others else [])}
    if not isinstance(scalars, dict) or set(scalars) != keys:
        raise InputError(f"the header's tree must have the keys {sorted(keys)}.")
    _check_among("task", scalars["task"], get_args(Task))
    _check_among("criterion", scalars["criterion"], CRITERIA[scalars["task"]])
    if type(scalars.get("smoothing", 0.0)) not in (int, float):
        raise InputError(f"smoothing must be a number, got {scalars['smoothing']!r}.")
    counts = scalars.get("target_classes", [])
    if not isinstance(counts, list) or not all(type(count) is int for count in counts):
        raise InputError(f"target_classes must be a list of integers, got {counts!r}.")
    if type(scalars["n_features"]) is not int or not 1 <= scalars["n_features"] <= MOST_COLUMNS:
        raise InputError(
            f"n_features must be an int from 1 to {MOST_COLUMNS}, got {scalars['n_features']!r}."
        )


def _check_among(name: str, value: Any, allowed: Iterable[str]) -> None:
    if value not in allowed:
        raise InputError(f"{name} must be one of {allowed}, got {value!r}.")


def _from_tables(tree: Tree, offset: Int64s, child: Int32s) -> BranchLists:
    """The branches of a file with a table from categories to children a node."""
    sizes = np.diff(offset)
    wrong = offset.size != tree.n_nodes + 1 or offset[0] != 0 or offset[-1] != child.size
    if wrong or (sizes < 0).any():
        raise InputError("branch_offset does not delimit one table a node.")
    if ((child < NO_BRANCH) | (child >= np.repeat(tree.n_children, sizes))).any():
        raise InputError("a branch names no child.")
    if (tree.first_child[sizes > 0] < 0).any():
        raise InputError("a leaf has a branch table.")
    return BranchLists.of_tables(tree.first_child, offset, child)
