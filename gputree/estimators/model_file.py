"""Fitted estimators to model files and back.

Beside what `gputree.persistence` writes, the header of an estimator's file has what
`gputree.estimators.header` documents. ``categories`` are there since format version 2; before,
all columns are numeric. Files of version 6 hold boosted trees (`gputree.estimators.boosting_file`),
rules (`gputree.rules.model_file`) or both (`gputree.rules.boosting_file`).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from sklearn.base import BaseEstimator

from gputree.columns import Columns
from gputree.estimators.header import header_of, rebuild
from gputree.persistence import Contents, read_contents, write_contents, write_model
from gputree.tree import Tree

# Columns of a file whose header does not list them.
_MOST_UNLISTED = 1 << 20


def save_model(estimator: BaseEstimator, path: str | os.PathLike[str]) -> None:
    """Write a fitted estimator to a model file.

    The file holds no pickle, so that reading one runs no code. A file of that
    name is replaced only once the new one is complete.

    Parameters
    ----------
    estimator : fitted estimator of gputree
    path : str or path-like

    Notes
    -----
    What only growing knows, ``unpruned_tree_`` and ``growth_report_``, is not stored. Boosted
    trees are kept in one file, and rules with the tree that they are from.

    Raises
    ------
    sklearn.exceptions.NotFittedError
        The estimator is not fitted.
    TypeError
        The estimator is not one of gputree's, or has a parameter that the file
        cannot hold.
    ValueError
        A parameter that was set since `fit` is none that the estimator takes.

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
    several = _several()
    if type(estimator) in several:
        write_contents(path, several[type(estimator)][0](estimator))
        return
    header = header_of(estimator, "save_model", [kind.__name__ for kind in several])
    write_model(path, header, estimator.tree_)


def load_model(path: str | os.PathLike[str], *, max_bytes: int | None = None) -> BaseEstimator:
    """Read a fitted estimator from a model file.

    Parameters
    ----------
    path : str or path-like
    max_bytes : int, default=None
        What the file may unpack to: a small file from elsewhere could else exhaust the
        memory. None for 256 MiB, or 50 times its size where that is more.

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
    header, trees, _ = contents
    if "trees" in header:
        return _rebuild_several(str(path), contents)
    columns = _unlisted(path, trees[0]) if header["format_version"] == 1 else None
    return rebuild(str(path), header, trees[0], columns)


def _several() -> dict[type, tuple[Callable[[Any], Contents], Callable[[str, Contents], Any]]]:
    """Estimators that are more than a tree: how they become the contents of a file, and back."""
    from gputree.estimators import boosting, boosting_file  # here: they take time to import
    from gputree.rules import BoostedC45Rules, C45Rules, model_file
    from gputree.rules import boosting_file as rules_file

    return {
        boosting.BoostedC45Classifier: (boosting_file.contents_of, boosting_file.rebuild),
        C45Rules: (model_file.contents_of, model_file.rebuild),
        BoostedC45Rules: (rules_file.contents_of, rules_file.rebuild),
    }


def _rebuild_several(path: str, contents: Contents) -> BaseEstimator:
    known = {kind.__name__: rebuilt for kind, (_, rebuilt) in _several().items()}
    name = contents.header.get("algorithm")
    if not isinstance(name, str) or name not in known:
        raise ValueError(
            f"{path} does not hold a valid estimator: algorithm must be one of {sorted(known)}, "
            f"got {name!r}."
        )
    estimator: BaseEstimator = known[name](path, contents)
    return estimator


def _unlisted(path: str | os.PathLike[str], tree: Tree) -> Columns:
    """The columns of a file of version 1, all of them numeric."""
    if tree.n_features > _MOST_UNLISTED:
        raise ValueError(
            f"{path} does not hold a valid estimator: n_features must be at most "
            f"{_MOST_UNLISTED}, got {tree.n_features}."
        )
    return Columns.numeric(tree.n_features)
