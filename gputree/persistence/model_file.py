"""The model file, a zip archive of a header and arrays: README.md describes it."""

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.base.dtypes import CATEGORY, NODE, ROW
from gputree.base.files import FilePath
from gputree.errors import InputError
from gputree.persistence.container import (
    ArchiveFolder,
    Members,
    RefusedError,
    npy_bytes,
    open_container,
    write_container,
)
from gputree.persistence.trees import (
    Kinds,
    ModelFormat,
    added_of,
    arrays_of,
    read_arrays,
    read_tree,
    scalars_of,
)
from gputree.tree import Tree

FORMAT = "gputree-model"
FORMAT_VERSION = 8
MODEL_FILE = ModelFormat(FORMAT, FORMAT_VERSION, plain=3, of_targets=8)
_LAST_OF_ONE_TREE = 5
_OF_SEVERAL, _OF_ORDERED = 6, 7

_HEADER = "model.json"
_RESERVED = ("format", "format_version", "gputree_version", "tree", "trees")
RULES: Kinds = {
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
LEAF_TARGETS: Kinds = {
    "target": (np.float64, 1),
    "weight": (np.float64, 1),
    "row": (ROW, 1),
    "leaf": (NODE, 2),
}
_FOLDERS = {"rules": RULES, "leaf_targets": LEAF_TARGETS}  # of arrays other than trees'


class Contents(NamedTuple):
    """Contents of a model file."""

    header: dict[str, Any]
    trees: Sequence[Tree]  # one or more
    # by the names of `RULES`, or of `LEAF_TARGETS`
    arrays: dict[str, NDArray] | None = None


def write_model(path: FilePath, header: dict[str, Any], tree: Tree) -> None:
    """Write a model file; an older file of that name is replaced, or kept on failure.

    The header is what JSON can represent, without the keys that this module writes.
    """
    _write(
        path,
        MODEL_FILE.lines(tree, _version(header, tree, None)),
        header,
        [("tree", arrays_of(tree))],
    )


def write_contents(path: FilePath, contents: Contents) -> None:
    """Write a model file of several trees, or with rules; otherwise as `write_model`.

    Trees are read one by one, since those of a forest are made when they are needed.
    """
    header, trees, _ = contents
    lines = MODEL_FILE.lines(trees[0], _version(header, trees[0], _OF_SEVERAL))
    del lines["tree"]
    lines["trees"] = list(map(scalars_of, trees))
    _write(path, lines, header, _folders(contents))


def _version(header: dict[str, Any], tree: Tree, others: int | None) -> int | None:
    """Version of a file; `others` where neither categories nor targets need a later one."""
    if tree.n_outputs > 1:
        return MODEL_FILE.of_targets
    return _OF_ORDERED if _is_ordered(header) else others


def _is_ordered(header: dict[str, Any]) -> bool:
    """Return whether a model, or the tree that its rules are of, has ordered categories."""
    return "ordered" in header or "ordered" in header.get("tree_of", {})


def _folders(contents: Contents) -> Iterator[tuple[str, dict[str, NDArray]]]:
    """Names and arrays of the folders of an archive, one after the other."""
    for place, tree in enumerate(contents.trees):
        yield f"trees/{place}", arrays_of(tree)
    arrays = contents.arrays or {}
    for folder, kinds in _FOLDERS.items():
        if arrays.keys() >= kinds.keys():
            yield folder, {name: arrays[name] for name in kinds}


def _write(
    path: FilePath,
    lines: dict[str, Any],
    header: dict[str, Any],
    folders: Iterable[tuple[str, dict[str, NDArray]]],
) -> None:
    if reserved := [key for key in _RESERVED if key in header]:
        raise InputError(f"The header keys {reserved} are reserved.")
    text = json.dumps(lines | header, indent=2, ensure_ascii=False, allow_nan=False)
    members = (
        (ArchiveFolder.member(folder, name), npy_bytes(array))
        for folder, arrays in folders
        for name, array in arrays.items()
    )
    write_container(path, chain([(_HEADER, _utf8(text))], members))


def _utf8(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise InputError(
            f"A file cannot represent text that is not Unicode, such as {text[error.start]!r}, in "
            "a category, a label or the name of a column. Replace it, and fit again."
        ) from error


def read_model(path: FilePath, max_bytes: int | None = None) -> tuple[dict[str, Any], Tree]:
    """Read a model file of one tree; see `read_contents`."""
    header, trees, _ = read_contents(path, max_bytes)
    if "tree" not in header:
        raise InputError(f"{path} holds several trees, or rules: load_model reads it.")
    return header, trees[0]


def read_contents(path: FilePath, max_bytes: int | None = None) -> Contents:
    """Read a model file; errors are as for `gputree.load_model`.

    It may unpack to `max_bytes`; None for 256 MiB or 50 times its size.
    """
    with open_container(path, max_bytes) as members:
        if _HEADER not in members:
            raise RefusedError(
                f"{members.path} is not a gputree model file: it holds no {_HEADER}."
            )
        header: dict[str, Any] = json.loads(members.text(_HEADER))
        MODEL_FILE.check(header, str(members.path), _HEADER)
        trees = _read_trees(header, members)
        MODEL_FILE.check_targets(header["format_version"], trees[0])
        return Contents(header, trees, _read_others(header, members))


def _read_trees(header: dict[str, Any], members: Members) -> list[Tree]:
    version = header["format_version"]
    if version <= _LAST_OF_ONE_TREE:
        tree, added = header.get("tree"), version - MODEL_FILE.plain
        return [read_tree(tree, added, ArchiveFolder(members, "tree"))]
    if version >= _OF_ORDERED and "trees" not in header:
        return [_read_tree(header.get("tree"), ArchiveFolder(members, "tree"))]
    listed = header.get("trees")
    if not isinstance(listed, list) or not listed:
        raise InputError("the header's trees must be a list of one or more.")
    return [
        _read_tree(scalars, ArchiveFolder(members, f"trees/{place}"))
        for place, scalars in enumerate(listed)
    ]


def _read_tree(scalars: Any, folder: ArchiveFolder) -> Tree:
    """A tree with smoothing, with bounds, or of several targets, where it has them."""
    return read_tree(scalars, added_of(scalars, "lower" in folder), folder)


def _read_others(header: dict[str, Any], members: Members) -> dict[str, NDArray] | None:
    """Arrays other than those of trees; None where there are none."""
    for name, kinds in _FOLDERS.items():
        folder = ArchiveFolder(members, name)
        if header["format_version"] > _LAST_OF_ONE_TREE and any(key in folder for key in kinds):
            return read_arrays(folder, kinds)
    return None
