"""Parts of docstrings that forests share."""

from __future__ import annotations

from gputree.estimators.documentation import CART_PARAMETERS, entries
from gputree.estimators.parameters import SEARCH_PARAMETERS

_CART = entries(CART_PARAMETERS) | {
    "splitter": """splitter : "exact", "binned" or "best", default="exact"
        Consider every cut between two values, or only the boundaries of `max_bins` bins of the
        table. "best" is scikit-learn's name for "exact"."""
}

_DRAWN_ROWS = """bootstrap : bool, default={bootstrap}
        Whether each tree is grown on rows drawn with replacement; else on all rows.
    max_samples : int, float or None, default=None
        With `bootstrap`, rows drawn for each tree; a float is a fraction of all rows, None is as
        many as there are.
    oob_score : bool or callable, default=False
        Whether the rows that trees have not drawn are predicted by these, and scored: by {score},
        or by ``oob_score(y_true, y_pred)``. Needs `bootstrap`."""

_QUANTREG = """quantreg : bool, default=False
        Whether to keep the training targets and the leaf of each training row in each tree, for
        `predict_quantiles`: 4 bytes a row and tree, and as many again once it is called."""

_RUN = """random_state : int, RandomState instance or None, default=None
        Draws {drawn}. The draws of a tree depend on this and on the number of the tree: more
        trees leave the first ones as they are.
    warm_start : bool, default=False
        Whether `fit` keeps the trees of the fit before and adds new ones up to `n_estimators`.
    n_jobs : int, default=None
        Threads; None for all. The forest does not depend on it.
    verbose : int, default=0
        Show a progress bar on a terminal or in a notebook, and report the device of "auto" and the
        compilation of kernels."""


def parameters_of(*, max_features: str, classifies: bool = False, draws_cuts: bool = False) -> str:
    """The parameters of a forest, but for the number of trees, the criterion and class weights.

    Parameters
    ----------
    max_features : str
        Default of this parameter, as it is written.
    classifies : bool, default=False
        Whether the target is a class.
    draws_cuts : bool, default=False
        Whether cuts are drawn, too: extremely randomized trees.
    """
    columns = _CART["max_features"].replace("default=None", f"default={max_features}")
    before = ("max_depth", "min_samples_split", "min_samples_leaf", "min_weight_fraction_leaf")
    between = ("max_leaf_nodes", "min_impurity_decrease")
    after = ("ccp_alpha", "monotonic_cst", "categorical_features")
    how = () if draws_cuts else SEARCH_PARAMETERS
    found = [_CART[name] for name in before] + [columns] + [_CART[name] for name in between]
    drawn = "rows, columns and cuts" if draws_cuts else "rows and columns"
    score = "the accuracy" if classifies else "the coefficient of determination"
    found += [_DRAWN_ROWS.format(score=score, bootstrap=not draws_cuts)]
    found += [] if classifies else [_QUANTREG]
    found += [*(_CART[name] for name in (*after, *how)), _RUN.format(drawn=drawn)]
    return "\n    ".join(found)


_ATTRIBUTES = """estimators_ : sequence of {kind}
        The trees, each made when it is needed; they predict, print and are exported as trees
        that were fitted by themselves. ``forest[i]`` is one of them, ``forest[:10]`` a forest of
        some, and ``forest + other`` one of those of both: see `__add__`.
    estimators_samples_ : list of int64 arrays
        The rows that each tree was grown on, ascending, as often as it has drawn them.
    feature_importances_ : float64 array of shape (n_features_in_,)
        Mean of the trees' fractions of the total decrease of impurity, normalized.
    oob_score_ : float
        Score of the rows that at least one tree has not drawn; with `oob_score`.
    {out_of_bag}
    columns_ : Columns
        Type of each column, and the categories of categorical ones.
    n_features_in_ : int
        Columns seen in `fit`.
    feature_names_in_ : array of shape (`n_features_in_`,)
        Their names, where X has string names.
    n_outputs_ : int
        1."""

CLASSIFIER_ATTRIBUTES = "\n    ".join(
    [
        """classes_ : array of shape (`n_classes_`,)
        Class labels, ascending.
    n_classes_ : int""",
        _ATTRIBUTES.format(
            kind="DecisionTreeClassifier",
            out_of_bag="""oob_decision_function_ : float64 array of shape (n_rows, n_classes)
        Class probabilities of each row by the trees that have not drawn it; NaN where all have.""",
        ),
    ]
)
REGRESSOR_ATTRIBUTES = _ATTRIBUTES.format(
    kind="DecisionTreeRegressor",
    out_of_bag="""oob_prediction_ : float64 array of shape (n_rows,)
        Prediction of each row by the trees that have not drawn it; NaN where all have.""",
)
