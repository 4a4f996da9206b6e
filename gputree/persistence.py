"""The model file: one tree and what is needed to use it, without pickle.

A model file is a zip archive. It holds

=====================  ==========================================================
member                 content
=====================  ==========================================================
``model.json``         UTF-8 JSON object: the header
``tree/<name>.npy``    one NumPy array file for each array of `gputree.tree.Tree`
=====================  ==========================================================

Keys of the header that this module writes and reads:

- ``format``: ``"gputree-model"``
- ``format_version``: integer; a reader refuses versions above its own
- ``gputree_version``: the release that wrote the file, for people
- ``tree``: object with ``task``, ``criterion`` and ``n_features``

All other keys belong to the caller (`gputree.estimators.model_file` documents
those of estimators). Format versions:

1. Trees of numeric columns.
2. Trees with categories, too: a reader of version 1 would take their codes for numbers.
   Arrays ``branch_offset`` (int64, N + 1) and ``branch_child`` (int32): category c of node t
   leads to its child ``branch_child[branch_offset[t] + c]``, to none where that is -1.
3. Arrays ``branch_begin`` and ``branch_end`` (int64, N) and ``branch_code`` (int32) in their
   place: the categories ``branch_code[branch_begin[t] : branch_end[t]]`` lead to node t from
   its parent. Categories that the parent has no rows of take no room.
4. Arrays ``lower`` and ``upper`` (float64, N), too: what the share of the second class, or the
   mean target, that node t answers with lies between. Written only where a tree has such
   bounds, which a reader of version 3 would pass over; other trees are files of version 3.
5. Trees that smooth the shares of classes, or have soft thresholds, in place of bounds: the key
   ``smoothing`` of ``tree`` is what is added to the weight of every class; where there are
   arrays ``soft_lower`` and ``soft_upper`` (float64, N), they lie around ``threshold``, and equal
   it where nothing is soft.

The same model gives the same bytes (under one zlib): members have a fixed order and no time
stamp. Arrays are little-endian or big-endian as written; reading converts. A reader takes
nothing on trust: `gputree.members` bounds what is read, `Tree.check` says what is a tree, and
`gputree.plausibility` which numbers it can have.
"""

from __future__ import annotations

import errno
import io
import json
import os
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO, get_args

import numpy as np
from numpy.typing import NDArray

from gputree._files import naming, replaced_file, require_file
from gputree.branches import BranchLists
from gputree.criteria.named import CRITERIA
from gputree.dtypes import CATEGORY, MOST_COLUMNS, NO_BRANCH, NODE
from gputree.members import Members, RefusedError
from gputree.plausibility import check_statistics
from gputree.tree import Task, Tree

FORMAT = "gputree-model"
FORMAT_VERSION = 5
_LAST_WITH_TABLES = 2  # from categories to children, one a node
_LAST_WITHOUT_BOUNDS = 3

_HEADER = "model.json"
_END_BYTES = 1 << 17  # an archive's own end is there
_BENT = (None, errno.EINVAL)  # of errors that come of wrong bytes: codecs, places before the first
_OWN_KEYS = ("format", "format_version", "gputree_version", "tree")
ARRAYS: dict[str, tuple[type[np.generic], int]] = {  # name: dtype, dimensions
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
BOUNDS: dict[str, tuple[type[np.generic], int]] = {  # of trees that have them
    "lower": (np.float64, 1),
    "upper": (np.float64, 1),
}
SOFT: dict[str, tuple[type[np.generic], int]] = {  # in the place of those
    "soft_lower": (np.float64, 1),
    "soft_upper": (np.float64, 1),
}
_TABLES: dict[str, tuple[type[np.generic], int]] = {
    "branch_offset": (np.int64, 1),
    "branch_child": (NODE, 1),
}


def write_model(path: str | os.PathLike[str], header: dict[str, Any], tree: Tree) -> None:
    """Write a model file; an older file of that name is replaced, or kept on failure.

    Parameters
    ----------
    path : str or path-like
    header : dict
        What JSON can hold, without the keys that this module writes.
    tree : Tree

    Raises
    ------
    ValueError
        The header uses a reserved key or holds NaN or infinity.
    TypeError
        The header holds something JSON cannot.
    """
    reserved = [key for key in _OWN_KEYS if key in header]
    if reserved:
        raise ValueError(f"The header keys {reserved} are reserved.")
    tree.check()
    own = own_header(FORMAT, _LAST_WITHOUT_BOUNDS + additions(tree), tree)
    text = json.dumps({**own, **header}, indent=2, ensure_ascii=False, allow_nan=False)
    members = {_HEADER: text.encode()}
    members |= {_member(name): _npy(getattr(tree, name)) for name in arrays_of(tree)}
    with replaced_file(path) as file, zipfile.ZipFile(file, "w") as archive:
        for name, content in members.items():
            info = zipfile.ZipInfo(name)  # dated 1980: equal models, equal bytes
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, content)


def read_model(
    path: str | os.PathLike[str], max_bytes: int | None = None
) -> tuple[dict[str, Any], Tree]:
    """Read a model file.

    Parameters
    ----------
    path : str or path-like
    max_bytes : int, default=None
        What the file may unpack to; None for 256 MiB or 50 times its size.

    Returns
    -------
    header : dict
        The whole header.
    tree : Tree

    Raises
    ------
    FileNotFoundError, IsADirectoryError
        There is no such file.
    OSError
        The system cannot read it.
    TypeError
        `path` is none.
    ValueError
        The file is no model file, is damaged, was written by a newer gputree, unpacks to
        more than is allowed, or its arrays do not form a tree.
    """
    path = require_file(path, "model")
    try:
        with naming(path), open(path, "rb") as file:
            if not zipfile.is_zipfile(file):
                _read_end(file)  # what cannot be read is told as that
                advice = " JSON is read by read_json." if path.suffix.lower() == ".json" else ""
                raise RefusedError(
                    f"{path} is not a gputree model file, or it is truncated.{advice}"
                )
            with zipfile.ZipFile(file) as archive:
                members = Members(archive, path, max_bytes)
                header = _read_header(path, members)
                tree = _read_tree(header["tree"], header["format_version"], members)
    except (RefusedError, MemoryError):
        raise
    except Exception as error:  # damage can make zipfile, zlib and JSON raise anything
        if isinstance(error, OSError) and (type(error) is not OSError or error.errno not in _BENT):
            raise
        raise ValueError(f"{path} is damaged: {_reason(error)}") from error
    return header, tree


def _read_end(file: BinaryIO) -> None:
    """Read where archives have their directory, as zipfile does, which drops errors of it."""
    file.seek(max(0, file.seek(0, os.SEEK_END) - _END_BYTES))
    file.read()


def _reason(error: Exception) -> str:
    """What is wrong, without the words of the libraries that came upon it."""
    if isinstance(error, (json.JSONDecodeError, UnicodeDecodeError, RecursionError)):
        return f"its {_HEADER} is no JSON that can be read."
    if isinstance(error, ValueError):
        return str(error)
    return "some of its bytes are not those that were written. Copy the file again, or train anew."


class FutureModelError(RefusedError):
    """The file is of a later format version than this module reads."""


# ------------------------------------------------------------------ writing
def arrays_of(tree: Tree) -> dict[str, tuple[type[np.generic], int]]:
    """The arrays that the tree has: their dtypes and dimensions."""
    return kinds_of(additions(tree), tree.soft_lower is not None)


def kinds_of(added: int, is_soft: bool) -> dict[str, tuple[type[np.generic], int]]:
    """The arrays of trees that need so many versions beyond that of plain ones."""
    return ARRAYS | ({}, BOUNDS, SOFT if is_soft else {})[added]


def additions(tree: Tree) -> int:
    """How many versions of a format beyond that of plain trees a tree needs."""
    if tree.smoothing or tree.soft_lower is not None:
        return 2
    return int(tree.lower is not None)


def own_header(name: str, version: int, tree: Tree) -> dict[str, Any]:
    """What every format says first: its name and version, the writer, the tree's scalars."""
    from gputree import __version__  # here, for the package imports this module

    return {
        "format": name,
        "format_version": version,
        "gputree_version": __version__,
        "tree": {
            "task": tree.task,
            "criterion": tree.criterion,
            "n_features": int(tree.n_features),
            **({"smoothing": float(tree.smoothing)} if additions(tree) == 2 else {}),
        },
    }


def _member(name: str) -> str:
    return f"tree/{name}.npy"


def _npy(array: NDArray) -> bytes:
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, np.ascontiguousarray(array), allow_pickle=False)
    return buffer.getvalue()


# ------------------------------------------------------------------ reading
def _read_header(path: Path, members: Members) -> dict[str, Any]:
    if _HEADER not in members:
        raise RefusedError(f"{path} is not a gputree model file: it holds no {_HEADER}.")
    header: dict[str, Any] = json.loads(members.text(_HEADER))
    check_format(header, str(path), _HEADER, FORMAT, FORMAT_VERSION)
    check_scalars(header.get("tree"), set(), header["format_version"] - _LAST_WITHOUT_BOUNDS)
    return header


def check_format(header: Any, path: str, part: str, name: str, version: int) -> None:
    """Raise ValueError unless a header is of the format `name`, up to a version.

    `path` is the file, and `part` what of it the header is: for messages.
    """
    if not isinstance(header, dict) or header.get("format") != name:
        raise ValueError(f"{part} does not name the format {name!r}.")
    found = header.get("format_version")
    if type(found) is not int or found < 1:
        raise ValueError(f"format_version must be an int >= 1, got {found!r}.")
    if found > version:
        raise FutureModelError(
            f"{path} was written by a newer gputree ({header.get('gputree_version')}, format "
            f"version {found}); this one reads format versions up to {version}. "
            "Upgrade with: pip install --upgrade gputree-learn"
        )


def check_scalars(scalars: Any, others: set[str], added: int) -> None:
    """Raise ValueError unless the header's tree has what is one value a tree, and `others`.

    `added` is how many versions its format is beyond that of plain trees.
    """
    keys = {"task", "criterion", "n_features"} | others
    keys |= {"smoothing"} if added == 2 else set()
    if not isinstance(scalars, dict) or set(scalars) != keys:
        raise ValueError(f"the header's tree must have the keys {sorted(keys)}.")
    if scalars["task"] not in get_args(Task):
        raise ValueError(f"task must be one of {get_args(Task)}, got {scalars['task']!r}.")
    if scalars["criterion"] not in CRITERIA[scalars["task"]]:
        raise ValueError(
            f"criterion must be one of {CRITERIA[scalars['task']]}, got {scalars['criterion']!r}."
        )
    if type(scalars.get("smoothing", 0.0)) not in (int, float):
        raise ValueError(f"smoothing must be a number, got {scalars['smoothing']!r}.")
    if type(scalars["n_features"]) is not int or not 1 <= scalars["n_features"] <= MOST_COLUMNS:
        raise ValueError(
            f"n_features must be an int from 1 to {MOST_COLUMNS}, got {scalars['n_features']!r}."
        )


def _read_tree(scalars: dict[str, Any], version: int, members: Members) -> Tree:
    if version > _LAST_WITH_TABLES:
        is_soft = _member("soft_lower") in members
        kinds = kinds_of(version - _LAST_WITHOUT_BOUNDS, is_soft)
        tree = Tree(**scalars, **_read_arrays(members, kinds))
    else:
        per_node = {k: v for k, v in ARRAYS.items() if k not in BranchLists._fields}
        tree = Tree(**scalars, **_read_arrays(members, per_node))
        tree.check()  # before children are looked up
        tables = _read_arrays(members, _TABLES)
        tree = replace(tree, **_from_tables(tree, *tables.values())._asdict())
    tree.check()
    check_statistics(tree)
    return tree


def _from_tables(tree: Tree, offset: NDArray[np.int64], child: NDArray[np.int32]) -> BranchLists:
    """The branches of a file with a table from categories to children a node."""
    sizes = np.diff(offset)
    wrong = offset.size != tree.n_nodes + 1 or offset[0] != 0 or offset[-1] != child.size
    if wrong or (sizes < 0).any():
        raise ValueError("branch_offset does not delimit one table a node.")
    if ((child < NO_BRANCH) | (child >= np.repeat(tree.n_children, sizes))).any():
        raise ValueError("a branch names no child.")
    if (tree.first_child[sizes > 0] < 0).any():
        raise ValueError("a leaf has a branch table.")
    return BranchLists.of_tables(tree.first_child, offset, child)


def _read_arrays(
    members: Members, kinds: dict[str, tuple[type[np.generic], int]]
) -> dict[str, Any]:
    return {name: members.array(name, _member(name), *kind) for name, kind in kinds.items()}
