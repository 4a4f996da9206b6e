"""Supervised discretization: numbers as ranges that are informative about the labels."""

from gputree.discretization.discretizer import MDLPDiscretizer

__all__ = ["MDLPDiscretizer"]
