"""The model file: trees and what is needed to use them, without pickle.

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
   its parent. Categories that the parent has no rows of take no space.
4. Arrays ``lower`` and ``upper`` (float64, N), too: what the probability of the second class, or
the
   mean target, that node t predicts lies between. Written only where a tree has such
   bounds, which a reader of version 3 would pass over; other trees are files of version 3.
5. Trees that smooth class proportions, or have soft thresholds, in place of bounds: the key
   ``smoothing`` of ``tree`` is what is added to the weight of every class; where there are
   arrays ``soft_lower`` and ``soft_upper`` (float64, N), they lie around ``threshold``, and equal
   it where nothing is soft.
6. Several trees, and rules. The key ``trees`` is a list of objects like ``tree``, in its place;
   the arrays of tree i are ``trees/<i>/<name>.npy``, with bounds or soft thresholds where it has
   them. Rules are arrays ``rules/<name>.npy``: condition u of U tests column ``feature[u]``
   (int32) in the way ``kind[u]`` (uint8: 0 "<=", 1 ">", 2 "in", 3 "present", 4 "missing") against
   ``threshold[u]`` (float64) or the categories ``code[code_begin[u] : code_begin[u + 1]]`` (int32;
   int64, U + 1); rule r of R has the conditions ``condition[begin[r] : begin[r + 1]]`` (int64;
   int64, R + 1), predicts class ``label[r]`` (int64) and has the ``confidence[r]`` (float64), the
   weights ``class_weights[r]`` (float64, R x K) of the training rows that it covers, by class, and
   ``decided_weights[r]`` (float64, R + 1 x K) of those that it decides, with a last line for
   rows without a rule. Several sets of rules stand one after the other, each with its last line.
   Models of one tree alone are files of version 5 or before.

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
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from gputree._files import naming, replaced_file, require_file
from gputree.branches import BranchLists
from gputree.criteria.named import CRITERIA
from gputree.dtypes import CATEGORY, MOST_COLUMNS, NO_BRANCH, NODE
from gputree.errors import InputError
from gputree.members import Members, RefusedError
from gputree.plausibility import check_statistics
from gputree.tree import Task, Tree

FORMAT = "gputree-model"
FORMAT_VERSION = 6
_LAST_OF_ONE_TREE = 5
_LAST_WITHOUT_BOUNDS = 3

_HEADER = "model.json"
_END_BYTES = 1 << 17  # an archive's own end is there
_BENT = (None, errno.EINVAL)  # of errors that come of wrong bytes: codecs, places before the first
_OWN_KEYS = ("format", "format_version", "gputree_version", "tree", "trees")
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
RULES: dict[str, tuple[type[np.generic], int]] = {
    "feature": (np.int32, 1),
    "kind": (np.uint8, 1),
    "threshold": (np.float64, 1),
    "code_begin": (np.int64, 1),
    "code": (CATEGORY, 1),
    "begin": (np.int64, 1),
    "condition": (np.int64, 1),
    "label": (np.int64, 1),
    "confidence": (np.float64, 1),
    "class_weights": (np.float64, 2),
    "decided_weights": (np.float64, 2),
}
_TABLES: dict[str, tuple[type[np.generic], int]] = {
    "branch_offset": (np.int64, 1),
    "branch_child": (NODE, 1),
}


class Contents(NamedTuple):
    """What a model file holds.

    Attributes
    ----------
    header : dict
    trees : list of Tree
        One or more.
    rules : dict of arrays, or None
        By the names of `RULES`.
    """

    header: dict[str, Any]
    trees: list[Tree]
    rules: dict[str, NDArray] | None


def write_model(path: str | os.PathLike[str], header: dict[str, Any], tree: Tree) -> None:
    """Write a model file; an older file of that name is replaced, or kept on failure.

    Parameters
    ----------
    path : str or path-like
    header : dict
        What JSON can represent, without the keys that this module writes.
    tree : Tree

    Raises
    ------
    ValueError
        The header uses a reserved key or holds NaN or infinity.
    TypeError
        The header holds something JSON cannot.
    """
    _forbid_reserved(header)
    tree.check()
    own = own_header(FORMAT, _LAST_WITHOUT_BOUNDS + additions(tree), tree)
    _write(path, own | header, _arrays("tree", tree, arrays_of(tree)))


def write_contents(path: str | os.PathLike[str], contents: Contents) -> None:
    """Write a model file of several trees, or with rules; otherwise as `write_model`."""
    header, trees, rules = contents
    _forbid_reserved(header)
    own = own_header(FORMAT, FORMAT_VERSION, trees[0])
    del own["tree"]
    own["trees"] = [_scalars(tree) for tree in trees]
    arrays: dict[str, NDArray] = {}
    for place, tree in enumerate(trees):
        tree.check()
        arrays |= _arrays(f"trees/{place}", tree, arrays_of(tree))
    arrays |= {_member("rules", name): rules[name] for name in RULES if rules is not None}
    _write(path, own | header, arrays)


def _forbid_reserved(header: dict[str, Any]) -> None:
    reserved = [key for key in _OWN_KEYS if key in header]
    if reserved:
        raise InputError(f"The header keys {reserved} are reserved.")


def _write(
    path: str | os.PathLike[str], header: dict[str, Any], arrays: dict[str, NDArray]
) -> None:
    text = json.dumps(header, indent=2, ensure_ascii=False, allow_nan=False)
    members = {_HEADER: _utf8(text)} | {name: _npy(array) for name, array in arrays.items()}
    with replaced_file(path) as file, zipfile.ZipFile(file, "w") as archive:
        for name, content in members.items():
            info = zipfile.ZipInfo(name)  # dated 1980: equal models, equal bytes
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, content)


def _utf8(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise InputError(
            f"A file cannot represent text that is not Unicode, such as {text[error.start]!r}, in "
            "a "
            "category, a label or the name of a column. Replace it, and fit again."
        ) from error


def read_model(
    path: str | os.PathLike[str], max_bytes: int | None = None
) -> tuple[dict[str, Any], Tree]:
    """Read a model file of one tree; see `read_contents`.

    Raises
    ------
    ValueError
        The file holds several trees, or rules; or as by `read_contents`.
    """
    header, trees, _ = read_contents(path, max_bytes)
    if "tree" not in header:
        raise InputError(f"{path} holds several trees, or rules: load_model reads it.")
    return header, trees[0]


def read_contents(path: str | os.PathLike[str], max_bytes: int | None = None) -> Contents:
    """Read a model file.

    Parameters
    ----------
    path : str or path-like
    max_bytes : int, default=None
        What the file may unpack to; None for 256 MiB or 50 times its size.

    Returns
    -------
    Contents

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
        more than is allowed, or its arrays do not form trees.
    """
    path = require_file(path, "model")
    try:
        with naming(path), open(path, "rb") as file:
            if not zipfile.is_zipfile(file):
                _read_end(file)  # what cannot be read is reported as that
                advice = " JSON is read by read_json." if path.suffix.lower() == ".json" else ""
                raise RefusedError(
                    f"{path} is not a gputree model file, or it is truncated.{advice}"
                )
            with zipfile.ZipFile(file) as archive:
                members = Members(archive, path, max_bytes)
                return _read(_read_header(path, members), members)
    except (RefusedError, MemoryError):
        raise
    except Exception as error:  # damage can make zipfile, zlib and JSON raise anything
        if isinstance(error, OSError) and (type(error) is not OSError or error.errno not in _BENT):
            raise
        raise InputError(f"{path} is damaged: {_reason(error)}") from error


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
        "tree": _scalars(tree),
    }


def _scalars(tree: Tree) -> dict[str, Any]:
    return {
        "task": tree.task,
        "criterion": tree.criterion,
        "n_features": int(tree.n_features),
        **({"smoothing": float(tree.smoothing)} if additions(tree) == 2 else {}),
    }


def _member(folder: str, name: str) -> str:
    return f"{folder}/{name}.npy"


def _arrays(folder: str, of: Any, names: Iterable[str]) -> dict[str, NDArray]:
    """Arrays by the members that hold them."""
    return {_member(folder, name): getattr(of, name) for name in names}


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
    return header


def _read(header: dict[str, Any], members: Members) -> Contents:
    """The trees, and the rules if there are any."""
    version = header["format_version"]
    if version <= _LAST_OF_ONE_TREE:
        added = version - _LAST_WITHOUT_BOUNDS
        return Contents(header, [_read_tree(header.get("tree"), added, "tree", members)], None)
    listed = header.get("trees")
    if not isinstance(listed, list) or not listed:
        raise InputError("the header's trees must be a list of one or more.")
    trees = []
    for place, scalars in enumerate(listed):
        folder = f"trees/{place}"
        is_smooth = isinstance(scalars, dict) and "smoothing" in scalars
        added = 2 if is_smooth else int(_member(folder, "lower") in members)
        trees.append(_read_tree(scalars, added, folder, members))
    if _member("rules", "begin") not in members:
        return Contents(header, trees, None)
    return Contents(header, trees, _read_arrays(members, "rules", RULES))


def check_format(header: Any, path: str, part: str, name: str, version: int) -> None:
    """Raise ValueError unless a header is of the format `name`, up to a version.

    `path` is the file, and `part` what of it the header is: for messages.
    """
    if not isinstance(header, dict) or header.get("format") != name:
        raise InputError(f"{part} does not name the format {name!r}.")
    found = header.get("format_version")
    if type(found) is not int or found < 1:
        raise InputError(f"format_version must be an int >= 1, got {found!r}.")
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
        raise InputError(f"the header's tree must have the keys {sorted(keys)}.")
    if scalars["task"] not in get_args(Task):
        raise InputError(f"task must be one of {get_args(Task)}, got {scalars['task']!r}.")
    if scalars["criterion"] not in CRITERIA[scalars["task"]]:
        raise InputError(
            f"criterion must be one of {CRITERIA[scalars['task']]}, got {scalars['criterion']!r}."
        )
    if type(scalars.get("smoothing", 0.0)) not in (int, float):
        raise InputError(f"smoothing must be a number, got {scalars['smoothing']!r}.")
    if type(scalars["n_features"]) is not int or not 1 <= scalars["n_features"] <= MOST_COLUMNS:
        raise InputError(
            f"n_features must be an int from 1 to {MOST_COLUMNS}, got {scalars['n_features']!r}."
        )


def _read_tree(scalars: Any, added: int, folder: str, members: Members) -> Tree:
    """A tree that needs so many versions beyond that of plain ones; below 0, one with tables."""
    check_scalars(scalars, set(), added)
    if added >= 0:
        kinds = kinds_of(added, _member(folder, "soft_lower") in members)
        tree = Tree(**scalars, **_read_arrays(members, folder, kinds))
    else:
        per_node = {k: v for k, v in ARRAYS.items() if k not in BranchLists._fields}
        tree = Tree(**scalars, **_read_arrays(members, folder, per_node))
        tree.check()  # before children are looked up
        tables = _read_arrays(members, folder, _TABLES)
        tree = replace(tree, **_from_tables(tree, *tables.values())._asdict())
    tree.check()
    check_statistics(tree)
    return tree


def _from_tables(tree: Tree, offset: NDArray[np.int64], child: NDArray[np.int32]) -> BranchLists:
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


def _read_arrays(
    members: Members, folder: str, kinds: dict[str, tuple[type[np.generic], int]]
) -> dict[str, Any]:
    return {n: members.array(n, _member(folder, n), *kind) for n, kind in kinds.items()}
