"""The model file, a zip archive of a header and arrays: README.md describes it."""

import json
from collections.abc import Iterator, Sequence
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
MODEL_FILE = ModelFormat(FORMAT, plain=3, of_several=6, of_ordered=7, last=FORMAT_VERSION)

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


def write_contents(path: FilePath, contents: Contents, is_several: bool = True) -> None:
    """Write a model file; an older file of that name is replaced, or kept on failure.

    The header is what JSON can represent, without the keys that this module writes. Trees are read
    one by one, since those of a forest are made when they are needed; unless they are `is_several`
    there is one, in a file of its name.
    """
    header, trees, _ = contents
    if reserved := [key for key in _RESERVED if key in header]:
        raise InputError(f"The header keys {reserved} are reserved.")
    lines = MODEL_FILE.lines(header, trees[0], is_several)
    scalars = list(map(scalars_of, trees))
    lines |= {"trees": scalars} if is_several else {"tree": scalars[0]}
    text = json.dumps(lines | header, indent=2, ensure_ascii=False, allow_nan=False)
    members = (
        (ArchiveFolder.member(folder, name), npy_bytes(array))
        for folder, arrays in _folders(contents, is_several)
        for name, array in arrays.items()
    )
    write_container(path, chain([(_HEADER, _utf8(text))], members))


def _folders(contents: Contents, is_several: bool) -> Iterator[tuple[str, dict[str, NDArray]]]:
    """Names and arrays of the folders of an archive, one after the other."""
    for place, tree in enumerate(contents.trees):
        yield f"trees/{place}" if is_several else "tree", arrays_of(tree)
    arrays = contents.arrays or {}
    for folder, kinds in _FOLDERS.items():
        if arrays.keys() >= kinds.keys():
            yield folder, {name: arrays[name] for name in kinds}


def _utf8(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise InputError(
            f"A file cannot represent text that is not Unicode, such as {text[error.start]!r}, in "
            "a category, a label or the name of a column. Replace it, and fit again."
        ) from error


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

        def read(scalars: Any, added: int | None, name: str) -> Tree:
            folder = ArchiveFolder(members, name)
            added = added_of(scalars, "lower" in folder) if added is None else added
            return read_tree(scalars, added, folder)

        trees = MODEL_FILE.trees(header, read)
        return Contents(header, trees, _read_others(header, members))


def _read_others(header: dict[str, Any], members: Members) -> dict[str, NDArray] | None:
    """Arrays other than those of trees; None where there are none."""
    if header["format_version"] < MODEL_FILE.of_several:
        return None
    for name, kinds in _FOLDERS.items():
        folder = ArchiveFolder(members, name)
        if any(key in folder for key in kinds):
            return read_arrays(folder, kinds)
    return None
