"""Fitted estimators to model files and back.

In addition to what `gputree.persistence` writes, the header of an estimator's file has what
`gputree.estimators.header` documents. ``categories`` are there since format version 2; before,
all columns are numeric. Files of version 6 hold boosted trees (`gputree.estimators.boosting_file`),
rules (`gputree.rules.model_file`) or both (`gputree.rules.boosting_file`).
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING

from gputree.columns import Columns
from gputree.errors import InputError
from gputree.persistence import Contents, read_contents, write_contents, write_model

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

# Columns of a file whose header does not list them.
_MOST_UNLISTED = 1 << 20

# Estimators that are more than a tree: the packages that have them, and the modules that make
# the contents of a file of them, and back. They take time to import.
_SEVERAL = {
    "BoostedC45Classifier": ("gputree.estimators", "gputree.estimators.boosting_file"),
    "C45Rules": ("gputree.rules", "gputree.rules.model_file"),
    "BoostedC45Rules": ("gputree.rules", "gputree.rules.boosting_file"),
}


def save_model(estimator: BaseEstimator, path: str | os.PathLike[str]) -> None:
    """Write a fitted estimator to a model file.

    The file contains no pickle, so that reading it runs no code. A file of that
    name is replaced only once the new one is complete.

    Parameters
    ----------
    estimator : fitted estimator of gputree
    path : str or path-like

    Notes
    -----
    ``unpruned_tree_`` and ``growth_report_`` are not stored. Boosted trees are stored in one file,
    and rules with the tree that they were made from.

    Raises
    ------
    sklearn.exceptions.NotFittedError
        The estimator is not fitted.
    TypeError
        The estimator is not one of gputree's, or has a parameter that the file
        cannot represent.
    ValueError
        A parameter set after `fit` is invalid.

    Warns
    -----
    UserWarning
        `random_state` is a generator object: its state is not stored, the
        loaded estimator has None. The fitted tree is not affected.

    Examples
    --------
    >>> from gputree import ID3Classifier, save_model
    >>> from gputree.datasets import load_fish
    >>> save_model(ID3Classifier().fit(*load_fish(return_X_y=True)), "fish.gputree")
    """
    from gputree.estimators.header import header_of

    name = type(estimator).__name__
    package, module = _SEVERAL.get(name, ("", ""))
    if package and getattr(import_module(package), name) is type(estimator):
        write_contents(path, import_module(module).contents_of(estimator))
        return
    header = header_of(estimator, "save_model", _SEVERAL)
    write_model(path, header, estimator.tree_)


def load_model(path: str | os.PathLike[str], *, max_bytes: int | None = None) -> BaseEstimator:
    """Read a fitted estimator from a model file.

    Parameters
    ----------
    path : str or path-like
    max_bytes : int, default=None
        Maximum unpacked size: otherwise a small untrusted file could exhaust the memory. None for
        256 MiB, or 50 times the size of the file if that is more.

    Returns
    -------
    estimator
        Of the class and with the parameters it was saved with; its predictions
        are the same to the last bit.

    Raises
    ------
    FileNotFoundError
        There is no such file.
    OSError
        The system cannot read it.
    ValueError
        The file is no model file, is damaged, was written by a newer gputree, or unpacks
        to more than is allowed.

    Examples
    --------
    >>> from gputree import ID3Classifier, load_model, save_model
    >>> from gputree.datasets import load_fish
    >>> save_model(ID3Classifier().fit(*load_fish(return_X_y=True)), "fish.gputree")
    >>> load_model("fish.gputree").get_n_leaves()
    3
    """
    contents = read_contents(path, max_bytes)
    if "trees" in contents.header:
        return rebuild_several(str(path), contents)
    from gputree.estimators.header import rebuild

    tree = contents.trees[0]
    estimator: BaseEstimator = rebuild(str(path), contents.header, tree, unlisted(path, contents))
    return estimator


def rebuild_several(path: str, contents: Contents) -> BaseEstimator:
    """The estimator of a file of several trees, or of rules."""
    name = contents.header.get("algorithm")
    if not isinstance(name, str) or name not in _SEVERAL:
        raise InputError(
            f"{path} does not hold a valid estimator: algorithm must be one of {sorted(_SEVERAL)}, "
            f"got {name!r}."
        )
    estimator: BaseEstimator = import_module(_SEVERAL[name][1]).rebuild(path, contents)
    return estimator


def unlisted(path: str | os.PathLike[str], contents: Contents) -> Columns | None:
    """The columns of a file of version 1, all of them numeric; None where the header lists them."""
    if contents.header["format_version"] > 1:
        return None
    tree = contents.trees[0]
    if tree.n_features > _MOST_UNLISTED:
        raise InputError(
            f"{path} does not hold a valid estimator: n_features must be at most "
            f"{_MOST_UNLISTED}, got {tree.n_features}."
        )
    return Columns.numeric(tree.n_features)
