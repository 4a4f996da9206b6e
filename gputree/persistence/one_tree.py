"""The codec of estimators of one tree, also of trees that are shown without scikit-learn."""

from typing import Any

from gputree.errors import InputError
from gputree.inputs.labels import weighs_errors
from gputree.persistence.codecs import ALGORITHMS, known_name
from gputree.persistence.container import decode
from gputree.persistence.header import complete, field_of, header_of, with_params
from gputree.persistence.model_file import Contents
from gputree.tree import Tree


class SavedTree:
    """Fitted estimator of one tree, as saved; its class has the name of the estimator's."""

    costs_ = None

    def __init__(self, tree: Tree, misclassification_costs: Any) -> None:
        self.tree_ = tree
        self.misclassification_costs = misclassification_costs

    @property
    def _weighs_errors(self) -> bool:
        return weighs_errors(self.costs_)


def contents_of(estimator: Any) -> Contents:
    """Contents of a file of an estimator of one tree."""
    from sklearn.utils.validation import check_is_fitted

    check_is_fitted(estimator, "tree_")
    return Contents(header_of(estimator), [estimator.tree_])


def rebuild(contents: Contents) -> Any:
    """The estimator of a header and a tree."""
    header, [tree], _ = contents
    estimator = unfitted_of(header, tree)
    estimator.tree_ = tree
    estimator.n_outputs_ = tree.n_outputs
    return complete(estimator, header, [tree])


def rebuild_saved(contents: Contents) -> SavedTree:
    """A `SavedTree`: parameters that the tree was grown by are not looked at."""
    header, [tree], _ = contents
    kind = type(_name_of(header, tree), (SavedTree,), {})
    costs = field_of(header, "params", dict).get("misclassification_costs")
    return complete(kind(tree, decode(costs)), header, [tree])


def unfitted_of(header: dict[str, Any], tree: Tree | None = None) -> Any:
    """An estimator with the parameters of a header, one that may have such a tree."""
    from gputree import estimators

    return with_params(getattr(estimators, _name_of(header, tree)), header)


def _name_of(header: dict[str, Any], tree: Tree | None) -> str:
    name = known_name(header, ALGORITHMS)
    if tree is not None and ALGORITHMS[name] != tree.task:
        raise InputError(f"{name} cannot have a tree of task {tree.task!r}.")
    return name
