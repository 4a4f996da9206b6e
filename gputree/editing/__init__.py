"""Fitted trees edited by hand: what else a node could do, other splits, regrowth, pruning."""

from typing import TYPE_CHECKING

from gputree.base.lazy import attach

if TYPE_CHECKING:
    from gputree.editing.alternatives import Alternative as Alternative
    from gputree.editing.alternatives import Alternatives as Alternatives
    from gputree.editing.editor import TreeEditor as TreeEditor
    from gputree.editing.history import Skipped as Skipped
    from gputree.editing.widget import TreeWidget as TreeWidget
else:  # checkers are to know of no other names
    __getattr__, __dir__ = attach(__name__)
