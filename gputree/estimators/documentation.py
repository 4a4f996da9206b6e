"""Parameters and attributes in docstrings of estimators, each written once."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any

from gputree.base.texts import fill
from gputree.criteria.named import CLASSIFICATION_CRITERION, REGRESSION_CRITERION

_SECTIONS = """Parameters
    ----------
    {parameters}

    Attributes
    ----------
    {attributes}"""


def document(
    texts: Mapping[str, str], attributes: Sequence[str], **shared: str
) -> Callable[[type], type]:
    """Fill ``{parameters}`` and ``{attributes}`` of a class docstring, or ``{sections}`` of both.

    `texts` are those of parameters by name: fields of the class that its docstring does not list by
    itself, with their defaults. `attributes` are names, and `shared` texts that stand for others.
    """

    def filled(cls: Any) -> Any:
        if not cls.__doc__:  # python -OO has none
            return cls
        fill(**shared, sections=_SECTIONS)(cls)
        listed = re.findall(r"^((?:\w+, )*\w+)(?: : .*)?$", cls.__doc__, re.MULTILINE)
        names = {name for line in listed for name in line.split(", ")}
        parameters = [
            _with_default(texts[field.name], field.default)
            for field in fields(cls)
            if field.name not in names
        ]
        lists = {"parameters": parameters, "attributes": [ATTRIBUTES[n] for n in attributes]}
        return fill(**{place: "\n    ".join(found) for place, found in lists.items()})(cls)

    return filled


def _with_default(text: str, default: object) -> str:
    """A text of a parameter with the default of a class."""
    shown = f'"{default}"' if isinstance(default, str) else repr(default)
    return re.sub(r"default=\S+", lambda _: f"default={shown}", text, count=1)


def entries(text: str) -> dict[str, str]:
    """The entries of a list of parameters, by name."""
    parts = re.split(r"\n    (?=\w)", text)
    return {part.partition(" : ")[0]: part for part in parts}


PARAMETERS = entries(
    """max_depth : int, default=None
        Maximum depth of the tree; None for no limit.
    min_samples_split : int or float, default=2
        Minimum number of rows of a node that may be split; a float is a fraction of all rows.
    min_samples_leaf : int or float, default=1
        Minimum number of rows on either side of a cut; a float is a fraction of all rows.
    min_weight_fraction_leaf : float, default=0.0
        Minimum fraction of the total weight on either side of a cut.
    max_features : int, float, "sqrt", "log2" or None, default=None
        Number of columns to consider in each node, sampled at random; None for all. More are
        considered until one has an admissible cut.
    max_leaf_nodes : int, default=None
        Maximum number of leaves, expanded best-first, by the weighted impurity decrease. None for
        no limit.
    min_impurity_decrease : float, default=0.0
        Minimum decrease of impurity by a split, times the node's fraction of the weight.
    ccp_alpha : non-negative float, default=0.0
        Complexity parameter of cost-complexity pruning: subtrees of effective alpha up to it are
        pruned.
    monotonic_cst : array-like of int of shape (n_features,), dict or None, default=None
        Monotonicity constraints: predictions increase (1) or decrease (-1) with the column, all
        else equal; 0 for no constraint. A dict gives them by column name. Predictions are the
        mean target, or the probability of the second of two classes. Constraints hold between known
        values: missing values count on the side they go to, and a cut that separates them from all
        known values is constrained as if they were larger. Categorical columns and more than two
        classes are errors. A cut is not admissible if its sides violate the order or the bounds
        from cuts above; nodes with means outside of their bounds, by cuts of other columns, predict
        the nearest bound (as in scikit-learn). Pruning keeps the constraints; pessimistic
        pruning counts the errors of a node's majority.
    interaction_cst : "pairwise", "no_interactions", list, tuple or None, default=None
        Interaction constraints: groups of columns, by index or name, that splits of one path from
        the root may use together, as in scikit-learn's HistGradientBoosting. Columns in no group
        are one more. ``[[0, 1], [1, 2]]``: below a split by column 0 there are none by 2.
        "no_interactions" is a group of each column, "pairwise" of each pair.
        `max_features` are drawn among the columns that a node may use.
    pruning : Pruner, str or None, default=None
        A method of `gputree.pruning`, or its short name; not together with `ccp_alpha`.
    categorical_features : "auto", None or array-like, default="auto"
        Columns of categories: by dtype (text, categoricals, booleans), or their names, indices
        or a mask. Text is always categorical.
    ordered_categories : "auto", dict or None, default="auto"
        Columns of ordered categories, which are cut along their order: by dtype (pandas' ordered
        Categorical, Arrow's ordered dictionary), and those of a dict, which has for the name or
        index of a column its categories in their order, "declared" for the order of its type (a
        polars Enum, an unordered Categorical), or None for no order. None for no column.
    categorical_split : "auto", "exhaustive", "ordered" or "one_vs_rest", default="auto"
        Which subsets of a column's categories are tried. "ordered": prefixes of the categories
        ordered by the proportion of a class, or by the mean target; with two classes in the node,
        and in regression, the best prefix is the best of all subsets, unless limits exclude it;
        with more classes the best prefix over the orderings by each class is taken.
        "exhaustive": with more than two classes every subset, of up to 20 categories present in the
        node.
        "one_vs_rest": one-vs-rest splits, as with one-hot encoding. "auto": every subset
        of up to 10 categories; for more, prefixes of orderings, or one-vs-rest splits if categories
        have fewer than 5 rows on average. Where `min_samples_leaf` or
        `min_weight_fraction_leaf` excludes a prefix that is better than those they admit,
        every admissible subset of up to 10 categories ("exhaustive": 20) is tried, which finds
        the best; of more, the prefixes with one category moved across (for more than 256
        categories: one-vs-rest splits), which may miss it. Where ``criterion="poisson"`` excludes
        a prefix with a child without events, the best subset with events in both is found among
        any number of categories. Names do not matter, except that among
        categories of the same rows and statistics the first is taken. (Where no column
        has more than two categories, these are cut as the numbers 0 and 1 are.)
    random_state : int, RandomState instance or None, default=None
        Samples columns for `max_features` and ``ties="random"``, cuts for ``splitter="random"``,
        and held-out rows for a pruner without `random_state`. Nothing else is random.
    device : "auto", "cpu", "cuda" or a CUDA device by its number, as "cuda:1", default="auto"
        Where the tree is grown; the tree is the same everywhere. "cuda" needs CuPy (extra
        cuda12 or cuda13) and a device: the current one, or in forests all that are visible. "auto"
        uses it if both are available and a check, run once, found the same trees as on the CPU (see
        `gputree.check_device`); else the CPU. Where the device's memory does not suffice, "auto"
        goes on with the CPU, with a warning.
        Numbers on a CUDA device (CuPy, cuDF, ``__cuda_array_interface__``, DLPack) stay there
        during growth; prediction, on the host, copies them.
    max_device_memory : int, default=None
        Bytes of each CUDA device's memory that growth may use, beyond a table on the device;
        None for 80 % of the free memory. Within it, levels are split into batches. A
        table on the host whose values do not fit is coded in blocks, one byte per value, and its
        values are read from host memory; parts of a table in batches that do not fit are streamed
        (`CodedTable.from_batches`). The tree is the same.
    ties : "first" or "random", default="first"
        Of columns whose best cuts in a node score alike, the first is taken, or one that is drawn
        there, as in the trees of forests.
    forced_splits : dict, str, path or None, default=None
        Splits that the tree begins with: a dict with the keys "feature", a name or an index,
        "threshold", or "categories" for those that go left, and "left" and "right", dicts of the
        same kind, which may be left out; or the path of a JSON file of it, as LightGBM's
        `forcedsplits_filename`. Splits with an empty side, or that limits on depth or leaves
        exclude, are left out with a warning. On the CPU.
    splitter : "exact", "binned", "best" or "random", default="exact"
        Consider every cut between two values, or only the boundaries of `max_bins` bins. "best" is
        scikit-learn's name for "exact". "random" draws one cut of each column evenly between the
        minimum and the maximum in the node, as extremely randomized trees do; on the CPU.
    max_bins : int, default=256
        Maximum number of bins per column; a column with at most that many distinct values is coded
        without loss.
    n_jobs : int, default=None
        Threads; None for all. The tree does not depend on it.
    verbose : int, default=0
        Show a progress bar on a terminal or in a notebook, and report the device of "auto" and the
        compilation of kernels. Elsewhere forests write the number of trees to standard error, at
        most every 10 s and at the end.
    min_gain : float, default=0.0
        Minimum information gain of a split, in bits.
    class_weight : dict, "balanced" or None, default=None
        Weights of classes, multiplied into the sample weights.
    classes : array-like of labels, "declared" or None, default=None
        All classes, including those without rows in y; None takes those of y.
        "declared" takes the categories of y's type (pandas Categorical, polars Enum, pyarrow
        dictionary), as J48 counts the values that a header declares. They are in ascending order,
        and ties go to the first. C4.5 requires on either side of a cut a tenth of an
        average class, so that more classes let smaller branches grow.
    misclassification_costs : array-like, dict or None, default=None
        Misclassification costs of shape (n_classes, n_classes): rows are the true classes, columns
        the predicted ones, in the order of `classes_`, as in scikit-learn's confusion matrix; C50
        of R has the transpose. The labels of a data frame put its rows and columns into that order.
        A dict gives the costs of pairs (true, predicted) of labels; the others cost 1. Only ratios
        matter. With two classes rows are weighted by the cost of their errors, in
        growth, in pruning and in prediction. With more they are weighted by the summed costs of the
        errors of their class, and `predict` returns the class of the minimum expected cost.
        `predict_proba` has the class proportions of the rows weighted so, as with
        `class_weight`.
    n_estimators : int, default=100
        Number of trees.
    bootstrap : bool, default=True
        Whether each tree is grown on rows drawn with replacement; else on all rows.
    max_samples : int, float or None, default=None
        With `bootstrap`, rows drawn for each tree; a float is a fraction of the total weight, None
        is as many as there are.
    oob_score : bool or callable, default=False
        Whether the rows that trees have not drawn are predicted by these, and scored: by the
        accuracy or the coefficient of determination, or by ``oob_score(y_true, y_pred)``. Needs
        `bootstrap`.
    quantreg : bool, default=False
        Whether to keep the training targets and the leaf of each training row in each tree, for
        `predict_quantiles`: 4 bytes a row, tree and target, and as many again once it is called.
    warm_start : bool, default=False
        Whether `fit` keeps the trees of the fit before and adds new ones up to `n_estimators`."""
)

OF_CLASSES = (
    PARAMETERS
    | entries(CLASSIFICATION_CRITERION)
    | entries(
        """class_weight : dict, list of dict, "balanced" or None, default=None
        Weights of classes, multiplied into the sample weights. Of several targets, a list of the
        weights of each, which are multiplied."""
    )
)

OF_TARGETS = PARAMETERS | entries(REGRESSION_CRITERION)

_OF_FORESTS = entries(
    """class_weight : dict, list of dict, "balanced", "balanced_subsample" or None, default=None
        Weights of classes, multiplied into the sample weights; "balanced_subsample" balances the
        classes in the rows that each tree has drawn. Of several targets, a list of the weights of
        each, which are multiplied.
    splitter : "exact", "binned" or "best", default="exact"
        Consider every cut between two values, or only the boundaries of `max_bins` bins of the
        table. "best" is scikit-learn's name for "exact".
    random_state : int, RandomState instance or None, default=None
        Draws rows and columns, and the cuts of extremely randomized trees. The draws of a tree
        depend on this and on the number of the tree: more trees leave the first ones as they are.
    n_jobs : int, default=None
        Threads; None for all. The forest does not depend on it."""
)

OF_TARGET_FORESTS = OF_TARGETS | _OF_FORESTS

OF_CLASS_FORESTS = (
    OF_CLASSES
    | _OF_FORESTS
    | entries(
        """max_samples : int, float, dict, "balanced" or None, default=None
        With `bootstrap`, rows drawn for each tree; a float is a fraction of the total weight, None
        is as many as there are. A dict has the number of rows of each class, drawn apart (R's
        `sampsize` with strata); "balanced" is as many of each as the rarest class has (the balanced
        forest of Chen, Liaw and Breiman 2004)."""
    )
)

OF_MULTIWAY_TREES = PARAMETERS | entries(
    """random_state : int, RandomState instance or None, default=None
        Samples held-out rows for a pruner without `random_state`. Growth is not random.
    device : "auto", "cpu", "cuda" or a CUDA device by its number, as "cuda:1", default="auto"
        Where the tree is grown; the tree is the same everywhere.
    max_device_memory : int, default=None
        Bytes of the CUDA device's memory that growth may use; None for 80 % of the free memory.
        Within it, levels are made in groups of nodes, and columns one after another. The tree is
        the same. Attribute lists of two levels must fit: an error states their bytes, with
        ``device="auto"`` a warning, and the tree is grown on the CPU."""
)

ATTRIBUTES = entries(
    """classes_ : array of shape (`n_classes_`,)
        Class labels, ascending. Of several targets, in trees of CART and forests, a list.
    n_classes_ : int
        Of several targets a list of int.
    costs_ : float64 array of shape (n_classes_, n_classes_), or None
        `misclassification_costs` divided by the maximum; None where all errors cost the same.
    tree_ : Tree
        The tree, after pruning, as arrays.
    unpruned_tree_ : Tree
        The tree as it was grown.
    estimators_ : sequence of DecisionTreeClassifier or DecisionTreeRegressor
        The trees, each made when it is needed; they predict, print and are exported as trees
        that were fitted by themselves. ``forest[i]`` is one of them, ``forest[:10]`` a forest of
        some, and ``forest + other`` one of those of both: see `__add__`.
    estimators_samples_ : list of int64 arrays
        The rows that each tree was grown on, ascending, as often as it has drawn them.
    feature_importances_ : float64 array of shape (n_features_in_,)
        Mean of the trees' fractions of the total decrease of impurity, normalized.
    oob_score_ : float
        Score of the rows that at least one tree has not drawn; with `oob_score`.
    oob_decision_function_ : float64 array of shape (n_rows, n_classes)
        Class probabilities of each row by the trees that have not drawn it; NaN where all have. Of
        several targets of shape (n_rows, n_classes, n_outputs), as in scikit-learn, n_classes the
        maximum.
    oob_prediction_ : float64 array of shape (n_rows,) or (n_rows, n_outputs)
        Prediction of each row by the trees that have not drawn it; NaN where all have.
    estimator_errors_ : float64 array of shape (n_trials,)
        Weighted training error of each of these.
    estimator_weights_ : float64 array of shape (n_trials,)
        Weight of their votes: 1, as in C5.0.
    stop_reason_ : str or None
        Why there are fewer than `n_trials`, as C5.0 prints it: "last classifier is very accurate",
        or "last classifier is very inaccurate" (that one is not kept, unless it is the first), or
        "a callback has ended the fit"; None if there are `n_trials`.
    winnowed_ : bool array of shape (n_features_in_,)
        Which columns `winnow` has left out.
    columns_ : Columns
        Type of each column, and the categories of categorical ones.
    n_features_in_ : int
        Columns seen in `fit`.
    feature_names_in_ : array of shape (`n_features_in_`,)
        Their names, where X has string names.
    n_outputs_ : int
        Number of targets.
    target_names_in_ : array of shape (`n_outputs_`,)
        Names of several targets, where y is a frame with string names: `export_text` and others
        show them.
    cp_table_ : CPTable
        With ``pruning=CostComplexityCV()``, that of the pruner: rpart's cptable.
    growth_report_ : dict
        ``device`` that grew the tree, as "cpu", "cuda" or "cuda:1". Of CART, too:
        ``scanned_pairs``, (row, column) pairs at nodes split by histogram, and ``refined_pairs``,
        those among them whose values had to be sorted; in tables in batches, counted or sorted, in
        every round of the search. Both are 0 for tables with categories and for absolute errors and
        quantiles, whose columns are sorted once. If shards of a table are streamed through a CUDA
        device, ``uploaded_bytes`` of them."""
)

_TABLE = ("columns_", "n_features_in_", "feature_names_in_", "n_outputs_")
_CLASSES = ("classes_", "n_classes_")
_TREE = ("tree_", "unpruned_tree_", *_TABLE, "growth_report_")
_FOREST = ("estimators_", "estimators_samples_", "feature_importances_", "oob_score_")
TREE_OF_TARGETS = (*_TREE, "target_names_in_", "cp_table_")
TREE_OF_CLASSES = (*_CLASSES, "costs_", *TREE_OF_TARGETS)
MULTIWAY_TREE = (*_CLASSES, "costs_", *_TREE)
_FOREST_TABLE = (*_TABLE, "target_names_in_")
FOREST_OF_CLASSES = (*_CLASSES, *_FOREST, "oob_decision_function_", *_FOREST_TABLE)
FOREST_OF_TARGETS = (*_FOREST, "oob_prediction_", *_FOREST_TABLE)
BOOSTED = (
    *_CLASSES, "costs_", "estimator_errors_", "estimator_weights_", "stop_reason_", "winnowed_",
    *_TABLE[:-1],
)  # fmt: skip
