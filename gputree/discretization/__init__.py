"""Numbers as ranges that are informative about the labels: supervised discretization."""

from gputree.discretization.discretizer import MDLPDiscretizer

__all__ = ["MDLPDiscretizer"]
