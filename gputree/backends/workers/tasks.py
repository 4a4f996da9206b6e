"""Pure tasks on a cluster, and trees of them: what is lost is made again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

# Results that one task combines: fewer make the tree deeper, more make one worker wait for more.
FAN_IN = 8


class Tasks:
    """Runs functions on the workers of a client.

    Parameters
    ----------
    client : distributed.Client

    Attributes
    ----------
    received : int
        Bytes of arrays that have come to the client.
    reductions : list of int
        Bytes of arrays in the result of each tree.
    """

    def __init__(self, client: Any) -> None:
        self.client = client
        self.received = 0
        self.reductions: list[int] = []

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """The future of a task that may run anywhere, and again."""
        return self.client.submit(function, *arguments, pure=False)

    def share(self, given: Any) -> Any:
        """A future of what many tasks are given: it goes to each worker once."""
        return self.submit(same, given)

    def fetch(self, futures: Sequence[Any]) -> list[Any]:
        """Results, on the client."""
        results: list[Any] = self.client.gather(list(futures))
        self.received += sum(map(bytes_of, results))
        return results

    def joined(self, combine: Callable[[list[Any]], Any], futures: list[Any]) -> Any:
        """The future of what `combine` makes of all results, a few at a time."""
        while len(futures) > 1:
            groups = [futures[i : i + FAN_IN] for i in range(0, len(futures), FAN_IN)]
            futures = [self.submit(combine, group) for group in groups]
        return futures[0]

    def tree(self, combine: Callable[[list[Any]], Any], futures: list[Any]) -> Any:
        """The same, on the client."""
        result = self.fetch([self.joined(combine, futures)])[0]
        self.reductions.append(bytes_of(result))
        return result

    def gathered(
        self,
        function: Callable[..., Any],
        combine: Callable[[list[Any]], Any],
        parts: Sequence[Any],
        *arguments: Any,
    ) -> Any:
        """The future of what `combine` makes of ``function(part, *arguments)`` of all parts."""
        return self.joined(combine, [self.submit(function, part, *arguments) for part in parts])

    def combine(
        self,
        function: Callable[..., Any],
        combine: Callable[[list[Any]], Any],
        parts: Sequence[Any],
        *arguments: Any,
    ) -> Any:
        """The same, on the client."""
        return self.tree(combine, [self.submit(function, part, *arguments) for part in parts])


def same(given: Any) -> Any:
    """What is given, as the result of a task."""
    return given


def bytes_of(result: Any) -> int:
    """Bytes of the arrays in a result."""
    if isinstance(result, np.ndarray):
        return result.nbytes
    if isinstance(result, dict):
        return sum(map(bytes_of, result.values()))
    if isinstance(result, list | tuple):
        return sum(map(bytes_of, result))
    return bytes_of(vars(result)) if hasattr(result, "__dict__") else 0
