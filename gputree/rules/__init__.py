"""Rules from trees, as in C4.5rules; see the README next to this file."""

from typing import TYPE_CHECKING

from gputree.base.lazy import attach

if TYPE_CHECKING:
    from gputree.rules.boosting import BoostedC45Rules as BoostedC45Rules
    from gputree.rules.conditions import ClassRule as ClassRule
    from gputree.rules.conditions import Condition as Condition
    from gputree.rules.estimator import C45Rules as C45Rules
    from gputree.rules.estimator import to_rules as to_rules
    from gputree.rules.ruleset import RuleSet as RuleSet
else:  # type checkers should know no other names
    __getattr__, __dir__ = attach(__name__)
