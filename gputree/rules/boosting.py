"""Boosting of rules, as in C5.0 with rules and trials together."""

from copy import copy
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from gputree.backends.devices import to_host
from gputree.base.dtypes import Floats
from gputree.estimators.arguments import C45_REFUSES, MULTIWAY_LACKS
from gputree.estimators.boosting import Boosted
from gputree.estimators.c45 import C45Classifier
from gputree.estimators.coded_table import CodedTable
from gputree.estimators.documentation import BOOSTED, OF_MULTIWAY_TREES, document
from gputree.estimators.parameters import keyword_constructor
from gputree.estimators.winnowing import as_grown
from gputree.prediction.sparse import SparseRows
from gputree.pruning.error_limit import Quantile
from gputree.rules.estimator import C45Rules
from gputree.rules.learning import Learned
from gputree.tree import Tree


@document(OF_MULTIWAY_TREES, BOOSTED)
@keyword_constructor
class BoostedC45Rules(Boosted):
    """Rules of C4.5 trees, each set learned from rows weighted by the errors of the one before.

    Boosting is that of `BoostedC45Classifier`; the tree of each trial is converted into rules as in
    `C45Rules`; the errors of a trial are those of its rules. A rule set votes for every class with
    its probability (`C45Rules.predict_proba`): the proportion of the class among the weighted rows
    that the same rule decides. The class with the most votes is predicted; ties go to the first.

    Parameters
    ----------
    n_trials : int, default=10
        Maximum number of rule sets.
    confidence, quantile, rule_weight, redundancy
        As for `C45Rules`.
    min_samples_leaf : float, default=2
        Minimum weight (number of rows without weights) of two of a split's branches.
    criterion : "gain_ratio" or "gain", default="gain_ratio"
        As for `C45Classifier`.
    average_gain_rule, mdl_correction, threshold_placement, binary_splits, collapse
        As for `C45Classifier`.
    exclude_high_cardinality : bool, default=True
        As for `C45Classifier`, where it is off.
    pruning : Pruner, str or None, default=None
        How each tree is pruned before rules are made from it; C4.5rules uses the unpruned tree.
    winnow : bool, default=False
        Select columns by winnowing before the first trial; see `C45Classifier`.
    {parameters}

    Attributes
    ----------
    estimators_ : list of C45Rules
        The rule sets, in the order in which they were learned; ``print(estimators_[0].rules_)``
        shows the first.
    {attributes}

    See Also
    --------
    gputree.C45Rules : One set of rules.
    gputree.BoostedC45Classifier : Boosted trees.

    Examples
    --------
    >>> from gputree import BoostedC45Rules
    >>> from gputree.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> boosted = BoostedC45Rules(n_trials=3).fit(X, y)
    >>> [len(rules.rules_) for rules in boosted.estimators_]
    [4, 7, 7]
    """

    _lacks = MULTIWAY_LACKS
    _refuses = C45_REFUSES

    confidence: float = 0.25
    quantile: Quantile = "release8"
    rule_weight: float = 0.5
    redundancy: float = 1.0

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = C45Rules._parameter_constraints

    _members = "rule_sets"

    def _new_member(self) -> C45Rules:
        """Rules with the parameters of these, not fitted."""
        return C45Rules(
            confidence=self.confidence,
            quantile=self.quantile,
            rule_weight=self.rule_weight,
            redundancy=self.redundancy,
            n_jobs=self.n_jobs,
        )

    def _member_of(
        self, tree: C45Classifier, table: CodedTable, target: NDArray, weight: NDArray | None
    ) -> C45Rules:
        return self._new_member()._learn(tree, table, target, weight)

    def _finished(self, member: C45Rules, columns: NDArray[np.intp]) -> C45Rules:
        tree, found = self._adopt(as_grown(member.estimator_, self, columns)), member.rules_
        conditions = [
            one._replace(feature=int(columns[one.feature])) for one in found.rules.conditions
        ]
        rules = found.rules._replace(conditions=conditions)
        rest = found.confidence, found.class_weights, found.default, found.decided_weights
        return copy(member)._take(tree, Learned(rules, *rest))

    def _tree_of(self, member: C45Rules) -> Tree:
        return member.estimator_.tree_

    def _confidences(self, member: C45Rules, values: NDArray | SparseRows) -> Floats:
        return member.rules_.probabilities[member._decide_part(to_host(values))]

    def _size_of(self, member: C45Rules) -> tuple[str, int]:
        return "rules", len(member.rules_)
