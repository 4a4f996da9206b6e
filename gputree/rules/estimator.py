"""C4.5rules: rules from a tree, as an estimator."""

from numbers import Integral, Real
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.validation import check_is_fitted

from gputree.arithmetic.fixed_point import fix_weights
from gputree.backends.devices import missing_columns, to_host
from gputree.base.dtypes import Floats, Int32s, Values, Weight
from gputree.base.sklearn import Interval, StrOptions, fit_context
from gputree.base.threads import n_threads
from gputree.errors import InputError, InputTypeError
from gputree.estimators.c45 import C45Classifier
from gputree.estimators.classification import LogProbabilities, TreeClassifier
from gputree.estimators.parameters import MOST_JOBS
from gputree.estimators.reporting import Reporting
from gputree.estimators.table_estimator import CallbackSupport
from gputree.evaluation import Lines
from gputree.export.model import Names, model_of, require_estimator
from gputree.inputs.targets import forbid_targets
from gputree.prediction.losses import encode_target, require_known_labels
from gputree.prediction.sparse import SparseRows
from gputree.pruning.base import encode
from gputree.pruning.error_limit import Quantile, error_limit
from gputree.rules.learning import Learned, LearningOptions, learn
from gputree.rules.ruleset import RuleSet
from gputree.rules.simplification import WeightedRows
from gputree.rules.usage import usage_tables


class C45Rules(CallbackSupport, LogProbabilities, Reporting, ClassifierMixin, BaseEstimator):
    """Rules from a decision tree, as C4.5rules makes them.

    Every leaf of the tree is a rule. Its conditions are dropped while that reduces the pessimistic
    estimate of its error rate; then the rules of each class are selected by minimum description
    length. Classes are ordered by the false positives of their rules, and a default class is
    predicted for rows without a rule. Rules are often fewer and shorter than the paths of the tree,
    and each can be read without the others of its class.

    Parameters
    ----------
    estimator : C45Classifier, DecisionTreeClassifier, ID3Classifier or None, default=None
        The tree to grow; None is an unpruned `C45Classifier`, as in C4.5rules.
    confidence : float in (0, 1), default=0.25
        Of the pessimistic estimate: the smaller, the more conditions are dropped.
    quantile : "release8" or "exact", default="release8"
        The normal quantile of that confidence, as C4.5 Release 8 interpolates it, or exact;
        see `gputree.pruning.Pessimistic`.
    rule_weight : float, default=0.5
        Weight of the description length of rules, relative to that of exceptions. The larger, the
        fewer rules.
    redundancy : float, default=1.0
        Redundancy factor: number of columns per relevant column; the larger, the fewer bits encode
        a column.
    n_jobs : int, default=None
        Threads; None for all. The rules do not depend on it.

    Attributes
    ----------
    rules_ : RuleSet
        The rules; ``print(rules_)`` shows them.
    estimator_ : fitted estimator
        The tree that they were made from.
    classes_ : array of shape (n_classes,)
        Labels seen in `fit`.
    n_classes_ : int
    columns_ : Columns
        Type of each column, and the categories of categorical ones.
    n_features_in_ : int
        Columns seen in `fit`.
    feature_names_in_ : array of shape (`n_features_in_`,)
        Their names, where X has string names.

    See Also
    --------
    gputree.to_rules : Rules from a fitted tree.
    gputree.export.path_rules : The paths of a tree as rules, one per leaf, without selection.

    Notes
    -----
    Missing values fail every test except "is missing". A row of weight w counts as w rows.

    References
    ----------
    J. R. Quinlan. C4.5: Programs for Machine Learning. Morgan Kaufmann, 1993. Chapter 5.

    J. R. Quinlan. MDL and categorical theories (continued). ICML 1995, 464-470.

    Examples
    --------
    >>> from gputree import C45Rules
    >>> from gputree.datasets import load_golf
    >>> golf = load_golf()
    >>> rules = C45Rules().fit(golf.data, golf.target)
    >>> print(rules.rules_.to_text(feature_names=golf.feature_names))
    Rule 1: outlook = sunny and humidity = high -> class no [0.630] (3)
    Rule 2: outlook = rain and wind = strong -> class no [0.500] (2)
    Rule 3: outlook = overcast -> class yes [0.707] (4)
    Rule 4: humidity = normal -> class yes [0.662] (7/1)
    Rule 5: outlook = rain and wind = weak -> class yes [0.630] (3)
    Default: class yes
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "estimator": [TreeClassifier, None],
        "confidence": [Interval(Real, 0, 1, closed="neither")],
        "quantile": [StrOptions({"release8", "exact"})],
        "rule_weight": [Interval(Real, 0, None, closed="left")],
        "redundancy": [Interval(Real, 0, None, closed="neither")],
        "n_jobs": [Interval(Integral, -MOST_JOBS, MOST_JOBS, closed="both"), None],
    }

    rules_: RuleSet
    estimator_: Any
    classes_: NDArray[Any]

    def __init__(
        self,
        estimator: TreeClassifier | None = None,
        *,
        confidence: float = 0.25,
        quantile: Quantile = "release8",
        rule_weight: float = 0.5,
        redundancy: float = 1.0,
        n_jobs: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.confidence = confidence
        self.quantile = quantile
        self.rule_weight = rule_weight
        self.redundancy = redundancy
        self.n_jobs = n_jobs

    @fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Grow the tree and learn its rules.

        Parameters
        ----------
        X : array-like or data frame of shape (n_rows, n_features)
            Numbers and categories; None, NaN or NA where missing.
        y : array-like of shape (n_rows,)
            Class labels.
        sample_weight : array-like of shape (n_rows,), default=None
            Non-negative weights; rows of weight zero take no part.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            The tree has soft thresholds, several targets, or costs of more than two classes.
        """
        grown = clone(self.estimator) if self.estimator is not None else None
        tree = C45Classifier(pruning=None, n_jobs=self.n_jobs) if grown is None else grown
        tree._caller = type(self).__name__
        with self._called_back(X, y, sample_weight):
            tree.fit(X, y, sample_weight)
            del tree._caller
            return self._learn(tree, X, y, sample_weight)

    def _learn(self, tree: Any, X: Any, y: Any, sample_weight: Any) -> Self:
        """The rules of a fitted tree and the rows that it was grown on."""
        forbid_parted_answers(tree)
        rows = _rows(tree, X, y, sample_weight)
        options = LearningOptions(
            error_limit(self.confidence, self.quantile),
            float(self.rule_weight),
            float(self.redundancy),
            n_threads(self.n_jobs),
        )
        return self._take(tree, learn(tree.tree_, rows, tree.columns_.n_categories, options))

    def _take(self, tree: Any, learned: Learned) -> Self:
        """Set the attributes from a fitted tree and the rules learned from it."""
        model = model_of(tree, by_costs=True)
        for name in ("feature_names_in_", "missing_marks_", "reading_"):  # of an earlier fit
            self.__dict__.pop(name, None)
        self.estimator_ = tree
        self.classes_, self.n_classes_ = tree.classes_, tree.n_classes_
        self.n_features_in_, self.columns_ = tree.n_features_in_, tree.columns_
        if hasattr(tree, "feature_names_in_"):
            self.feature_names_in_ = tree.feature_names_in_
        names = Names(model.feature_names, model.classes, model.categories, ordered=model.ordered)
        self.rules_ = RuleSet(*learned, names)
        return self

    def apply(self, X: Any) -> Int32s:
        """The rule that decides each row.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)

        Returns
        -------
        rules : int32 array of shape (n_rows,)
            Places in ``rules_``; -1 for rows that no rule covers.
        """
        decided = self._decide(X)
        decided[decided == len(self.rules_)] = -1
        return decided

    def _decide(self, X: Any) -> Int32s:
        check_is_fitted(self, "rules_")
        parts = self.estimator_._parts(X)
        return np.concatenate([self._decide_part(part) for part in parts])

    def _decide_part(self, values: Values | SparseRows) -> Int32s:
        if isinstance(values, SparseRows):
            return np.concatenate([self._decide_part(block) for block in values.blocks()])
        threads = n_threads(self.n_jobs)
        missing_columns(values, threads)  # raises for infinity, as trees do
        return self.rules_.decide(values, threads)

    def predict(self, X: Any) -> NDArray[Any]:
        """Label of the rule that decides each row, or the default class.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)

        Returns
        -------
        labels : array of shape (n_rows,)
        """
        decided = self._decide(X)
        return self.classes_[self.rules_.answers[decided]]

    def predict_proba(self, X: Any) -> Floats:
        """Probability of each class among the training rows that the same rule decides, smoothed.

        See ``rules_.probabilities``. If the class of a rule is not the majority class among them,
        `predict` returns the class of the rule.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)

        Returns
        -------
        probabilities : float64 array of shape (n_rows, n_classes)
        """
        decided = self._decide(X)
        return self.rules_.probabilities[decided]

    def _report_size(self) -> dict[str, int]:
        return {"rules": len(self.rules_), "conditions": self.rules_.n_conditions}

    def _report_tables(self, X: Any, y: NDArray[Any], weight: Weight) -> dict[str, Lines]:
        values = self.estimator_._values(X)
        return usage_tables(self.rules_, values, encode_target(self.estimator_, y), weight)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        return tags


def to_rules(
    tree: Any,
    X: Any,
    y: ArrayLike,
    sample_weight: ArrayLike | None = None,
    *,
    confidence: float = 0.25,
    quantile: Literal["release8", "exact"] = "release8",
    rule_weight: float = 0.5,
    redundancy: float = 1.0,
    n_jobs: int | None = None,
) -> C45Rules:
    """Make rules from a fitted tree.

    Parameters
    ----------
    tree : fitted C45Classifier, DecisionTreeClassifier or ID3Classifier
        Its ``tree_``, pruned or not, is taken as it is.
    X : array-like or data frame of shape (n_rows, n_features)
        Its training rows: rules are simplified and selected on them.
    y : array-like of shape (n_rows,)
        Their labels.
    sample_weight : array-like of shape (n_rows,), default=None
        Their weights. Class weights of the tree are taken into account.
    confidence, quantile, rule_weight, redundancy, n_jobs
        As of `C45Rules`.

    Returns
    -------
    C45Rules
        Fitted: it predicts, and ``rules_`` has the rules.

    Raises
    ------
    sklearn.exceptions.NotFittedError
        The tree is not fitted.
    TypeError
        It is no classification tree of gputree.
    ValueError
        X has other columns than the tree, or y labels that it was not grown on; or the tree
        has soft thresholds, or costs of more than two classes.

    Examples
    --------
    >>> from gputree import DecisionTreeClassifier, to_rules
    >>> from gputree.datasets import load_golf
    >>> golf = load_golf()
    >>> tree = DecisionTreeClassifier().fit(golf.data, golf.target)
    >>> rules = to_rules(tree, golf.data, golf.target)
    >>> print(rules.rules_.to_text(feature_names=golf.feature_names))
    Rule 1: humidity = high and outlook = sunny -> class no [0.630] (3)
    Rule 2: wind = strong and outlook = rain -> class no [0.500] (2)
    Rule 3: outlook = overcast -> class yes [0.707] (4)
    Rule 4: humidity = normal -> class yes [0.662] (7/1)
    Rule 5: outlook = rain and wind = weak -> class yes [0.630] (3)
    Default: class yes
    """
    require_estimator(tree, "to_rules")
    if not isinstance(tree, TreeClassifier):
        raise InputTypeError(
            f"to_rules takes a fitted classification tree of gputree, got {type(tree).__name__}. "
            "Of a pipeline or a search, pass the tree in it: pipeline[-1], search.best_estimator_."
        )
    check_is_fitted(tree, "tree_")
    rules = C45Rules(
        clone(tree),
        confidence=confidence,
        quantile=quantile,
        rule_weight=rule_weight,
        redundancy=redundancy,
        n_jobs=n_jobs,
    )
    rules._validate_params()
    return rules._learn(tree, X, y, sample_weight)


def forbid_parted_answers(tree: Any) -> None:
    """Raise ValueError for trees whose predictions cannot be made by rules."""
    forbid_targets(tree.n_outputs_, "C45Rules", "Learn rules of each target.")
    if tree.tree_.soft_lower is not None:
        raise InputError(
            f"No rules are made of this {type(tree).__name__}: it has soft thresholds, and rules "
            "test thresholds exactly. Fit with soft_thresholds=False."
        )
    if tree._weighs_errors:
        raise InputError(
            f"No rules are made of this {type(tree).__name__}: its 'misclassification_costs' are "
            "of more than two classes, and a rule has one kind of error. Fit with "
            "misclassification_costs=None; class_weight says what each class counts."
        )


def _rows(tree: Any, X: Any, y: Any, sample_weight: Any) -> WeightedRows:
    values, target, weight = encode(tree, X, to_host(y), to_host(sample_weight))
    require_known_labels(y, target)
    weight = tree._combine_weights(weight, target)
    label = target.astype(np.int64)
    if not weight.all():
        heavy = np.flatnonzero(weight)
        values, label, weight = values[heavy], label[heavy], weight[heavy]
    if weight.size == 0:
        raise InputError("Sample weights must contain at least one non-zero number.")
    fixed = fix_weights(weight, weight.size)
    units = np.empty(0, np.int64) if fixed.weight is None else fixed.weight
    return WeightedRows(values, label, units, fixed.unit * fixed.scale, tree.n_classes_)
