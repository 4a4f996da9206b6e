"""Rules from trees, as C4.5rules makes them; see the README next to this file."""

from typing import TYPE_CHECKING

from gputree._lazy import attach

if TYPE_CHECKING:
    from gputree.rules.boosting import BoostedC45Rules
    from gputree.rules.conditions import Condition
    from gputree.rules.estimator import C45Rules, to_rules
    from gputree.rules.ruleset import ClassRule, RuleSet

__all__ = ["BoostedC45Rules", "C45Rules", "ClassRule", "Condition", "RuleSet", "to_rules"]

if not TYPE_CHECKING:  # checkers are to know of no other names
    __getattr__, __dir__ = attach(
        __name__,
        {
            "boosting": ("BoostedC45Rules",),
            "conditions": ("Condition",),
            "estimator": ("C45Rules", "to_rules"),
            "ruleset": ("ClassRule", "RuleSet"),
        },
    )
