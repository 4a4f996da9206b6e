"""Pure tasks on a cluster, and trees of them: what is lost is made again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isqrt
from typing import Any

import numpy as np

from gputree.backends.sharded import tuning


class Here:
    """What `Tasks` asks of a client: tasks run at once, in this process."""

    def submit(self, function: Callable[..., Any], *arguments: Any, pure: bool) -> Any:
        return function(*arguments)

    def map(self, function: Callable[..., Any], *arguments: list[Any], pure: bool) -> list[Any]:
        return [function(*own) for own in zip(*arguments, strict=True)]

    def gather(self, results: list[Any]) -> list[Any]:
        return results

    def nthreads(self) -> dict[str, int]:
        return {"here": 1}


class Tasks:
    """Runs functions on the workers of a `distributed.Client`."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self.received = 0  # bytes of arrays that have come to the client

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """The future of a task that may run anywhere, and again."""
        return self.client.submit(function, *arguments, pure=False)

    def map(self, function: Callable[..., Any], *arguments: Sequence[Any]) -> list[Any]:
        """Futures of a task for each of the first arguments, the second ones and so on.

        Told to the scheduler at once: that takes a quarter of the time of telling one by one.
        """
        futures: list[Any] = self.client.map(function, *map(list, arguments), pure=False)
        return futures

    def each(
        self, function: Callable[..., Any], parts: Sequence[Any], *arguments: Any
    ) -> list[Any]:
        """Futures of ``function(part, *arguments)`` of all parts."""
        return self.map(function, parts, *([given] * len(parts) for given in arguments))

    def share(self, given: Any) -> Any:
        """A future of what many tasks are given: it goes to each worker once."""
        return self.submit(same, given)

    def fetch(self, futures: Sequence[Any]) -> list[Any]:
        """Results, on the client."""
        results: list[Any] = self.client.gather(list(futures))
        self.received += sum(map(bytes_of, results))
        return results

    @property
    def threads(self) -> int:
        """Threads of all workers."""
        return sum(self.client.nthreads().values()) or 1

    @property
    def workers(self) -> int:
        """How many there are."""
        return len(self.client.nthreads()) or 1

    def pieces(self, size: int, parts: int) -> int:
        """Into how many pieces work on `size` bytes is cut, each of which takes a task a part.

        n pieces divide the time of the work by n, and cost ``n * parts`` tasks: the sum is least
        at the root of their ratio.
        """
        own = tuning.TUNING
        worth = isqrt(size // (parts * own.task_bytes))
        return max(min(worth, own.pieces_per_thread * self.threads), 1)

    def narrowed(self, combine: Callable[[list[Any]], Any], futures: list[Any]) -> list[Any]:
        """Futures of few enough results for one task, of which `combine` has made the others."""
        fan_in = tuning.TUNING.fan_in
        while len(futures) > fan_in:
            groups = [futures[i : i + fan_in] for i in range(0, len(futures), fan_in)]
            futures = self.map(combine, groups)
        return futures

    def joined(self, combine: Callable[[list[Any]], Any], futures: list[Any]) -> Any:
        """The future of what `combine` makes of all results, a few at a time."""
        futures = self.narrowed(combine, futures)
        return futures[0] if len(futures) == 1 else self.submit(combine, futures)

    def tree(self, combine: Callable[[list[Any]], Any], futures: list[Any]) -> Any:
        """The same, on the client."""
        return self.fetch([self.joined(combine, futures)])[0]

    def gathered(
        self,
        function: Callable[..., Any],
        combine: Callable[[list[Any]], Any],
        parts: Sequence[Any],
        *arguments: Any,
    ) -> Any:
        """The future of what `combine` makes of ``function(part, *arguments)`` of all parts."""
        return self.joined(combine, self.each(function, parts, *arguments))

    def combine(
        self,
        function: Callable[..., Any],
        combine: Callable[[list[Any]], Any],
        parts: Sequence[Any],
        *arguments: Any,
    ) -> Any:
        """The same, on the client."""
        return self.tree(combine, self.each(function, parts, *arguments))


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
