"""A fitted tree, its branches, and sums over its nodes."""

from typing import TYPE_CHECKING

from gputree.base.lazy import attach

if TYPE_CHECKING:
    from gputree.tree.arrays import Task as Task
    from gputree.tree.tree import Tree as Tree
else:  # checkers are to know of no other names
    __getattr__, __dir__ = attach(__name__)
