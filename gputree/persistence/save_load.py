"""Fitted estimators to model files and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gputree.base.files import FilePath
from gputree.persistence.codecs import ALGORITHMS, SEVERAL, contents_of, rebuild
from gputree.persistence.header import refusing
from gputree.persistence.model_file import read_contents, write_contents
from gputree.persistence.one_tree import rebuild_saved

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator


def save_model(estimator: BaseEstimator, path: FilePath) -> None:
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
        The estimator is not one of gputree's, or has a parameter that the file cannot represent.
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
    contents = contents_of(estimator, "save_model")
    write_contents(path, contents, contents.header["algorithm"] not in ALGORITHMS)


def load_model(path: FilePath, *, max_bytes: int | None = None) -> BaseEstimator:
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
    names = SEVERAL if "trees" in contents.header else ALGORITHMS
    return rebuild(str(path), contents, names)


def read_saved(path: FilePath) -> Any:
    """A tree for those that show it, without an estimator's class, which takes longer to import.

    Of a file of several trees or rules, the estimator. Errors are as for `load_model`.
    """
    contents = read_contents(path)
    if "trees" in contents.header:
        return rebuild(str(path), contents, SEVERAL)
    with refusing(str(path), contents.header):
        return rebuild_saved(contents)
