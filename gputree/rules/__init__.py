"""Rules from trees, as C4.5rules makes them; see the README beside this file."""

from gputree.rules.boosting import BoostedC45Rules
from gputree.rules.conditions import Condition
from gputree.rules.estimator import C45Rules, to_rules
from gputree.rules.ruleset import ClassRule, RuleSet

__all__ = ["BoostedC45Rules", "C45Rules", "ClassRule", "Condition", "RuleSet", "to_rules"]
