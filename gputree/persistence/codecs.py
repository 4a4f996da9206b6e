"""Choose the codec that converts an estimator to the contents of a file, and back.

A codec is a module with ``contents_of(estimator) -> Contents`` and ``rebuild(contents) ->
estimator``, imported on first use: estimators take time to import. It believes nothing that it
reads; what it raises is reported as damage of the file.
"""

from collections.abc import Collection
from importlib import import_module
from typing import Any

from gputree.errors import InputError, InputTypeError
from gputree.persistence.header import field_of, refusing
from gputree.persistence.model_file import Contents
from gputree.tree import Task

# The estimators of one tree, and what their trees are for.
ALGORITHMS: dict[str, Task] = {
    "C45Classifier": "classification",
    "DecisionTreeClassifier": "classification",
    "DecisionTreeRegressor": "regression",
    "ID3Classifier": "classification",
}
# The package that has a class, and the module of this one that has its codec.
CODECS = dict.fromkeys(ALGORITHMS, ("gputree.estimators", "one_tree")) | {
    "BoostedC45Classifier": ("gputree.estimators", "boosting"),
    "ExtraTreesClassifier": ("gputree.ensemble", "forests"),
    "ExtraTreesRegressor": ("gputree.ensemble", "forests"),
    "RandomForestClassifier": ("gputree.ensemble", "forests"),
    "RandomForestRegressor": ("gputree.ensemble", "forests"),
    "C45Rules": ("gputree.rules", "rule_sets"),
    "BoostedC45Rules": ("gputree.rules", "boosting"),
}
SEVERAL = CODECS.keys() - ALGORITHMS.keys()  # trees, or rules
FORESTS = {name for name, (package, _) in CODECS.items() if package == "gputree.ensemble"}


def contents_of(estimator: Any, caller: str, names: Collection[str] = CODECS) -> Contents:
    """Contents of a file of an estimator of one of `names`.

    NotFittedError; TypeError for what is not one of gputree's, or has a parameter that no file can
    represent; ValueError for a parameter that was set since `fit` and is none that the estimator
    takes, or is other costs.
    """
    name = type(estimator).__name__
    package, module = CODECS[name] if name in names else (None, "")
    if package is None or getattr(import_module(package), name) is not type(estimator):
        got, hint = name, ""
        if package is not None:  # a class of another package, such as scikit-learn's
            got = f"{type(estimator).__module__}.{name}"
        elif name in CODECS:
            hint = " save_model takes it."
        elif hasattr(estimator, "to_local"):
            hint = " Pass its to_local()."
        raise InputTypeError(f"{caller} takes one of {sorted(names)}, got {got}.{hint}")
    return import_module(f"gputree.persistence.{module}").contents_of(estimator)


def rebuild(source: str, contents: Contents, names: Collection[str]) -> Any:
    """The estimator of a file, which errors call `source`, if it is of one of these names."""
    header = contents.header
    with refusing(source, header):
        _, module = CODECS[known_name(header, names)]
        return import_module(f"gputree.persistence.{module}").rebuild(contents)


def known_name(header: dict[str, Any], names: Collection[str]) -> str:
    """The estimator that a header names, if it is one of these."""
    name: str = field_of(header, "algorithm", str)
    if name not in names:
        raise InputError(f"algorithm must be one of {sorted(names)}, got {name!r}.")
    return name
