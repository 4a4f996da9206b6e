"""Pure tasks on a cluster, and trees of them: lost results are computed again."""

from collections.abc import Callable, Sequence
from math import isqrt
from typing import Any

import numpy as np

from gputree.backends.sharded import tuning


class Here:
    """Counterpart of a client for `Tasks`: tasks run at once, in this process."""

    def submit(self, function: Callable[..., Any], *arguments: Any, pure: bool) -> Any:
        return function(*arguments)

    def map(self, function: Callable[..., Any], *arguments: list[Any], pure: bool) -> list[Any]:
        return [function(*given) for given in zip(*arguments, strict=True)]

    def gather(self, results: list[Any]) -> list[Any]:
        return results

    def nthreads(self) -> dict[str, int]:
        return {"here": 1}


class Tasks:
    """Tasks on the workers of a `distributed.Client`."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self.received = 0  # bytes of arrays that the client received

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Return the future of a task that may run anywhere, and again."""
        return self.client.submit(function, *arguments, pure=False)

    def map(self, function: Callable[..., Any], *arguments: Sequence[Any]) -> list[Any]:
        """Return futures of a task for each of the first arguments, the second ones and so on.

        They are submitted together, which takes a quarter of the time of submitting one by one.
        """
        futures: list[Any] = self.client.map(function, *map(list, arguments), pure=False)
        return futures

    def each(
        self, function: Callable[..., Any], parts: Sequence[Any], *arguments: Any
    ) -> list[Any]:
        """Return futures of ``function(part, *arguments)`` of all parts."""
        return self.map(function, parts, *([given] * len(parts) for given in arguments))

    def share(self, given: Any) -> Any:
        """Return a future of an argument of many tasks: it is sent to each worker once."""
        return self.submit(same, given)

    def fetch(self, futures: Sequence[Any]) -> list[Any]:
        results: list[Any] = self.client.gather(list(futures))
        self.received += sum(map(bytes_of, results))
        return results

    @property
    def workers(self) -> int:
        """Number of workers, at least 1."""
        return len(self.client.nthreads()) or 1

    def pieces(self, size: int, parts: int) -> int:
        """Number of pieces to divide work on `size` bytes into; each costs a task per part.

        n pieces divide the time of the work by n, and cost ``n * parts`` tasks: the sum is minimal
        at the root of their ratio.
        """
        tuned = tuning.TUNING
        worth = isqrt(size // (parts * tuned.task_bytes))
        threads = sum(self.client.nthreads().values())  # of all workers
        return max(min(worth, tuned.pieces_per_thread * threads), 1)

    def narrowed(self, combine: Callable[[list[Any]], Any], futures: list[Any]) -> list[Any]:
        """Combine results until one task can process the rest; returns their futures."""
        fan_in = tuning.TUNING.fan_in
        while len(futures) > fan_in:
            groups = [futures[i : i + fan_in] for i in range(0, len(futures), fan_in)]
            futures = self.map(combine, groups)
        return futures

    def joined(self, combine: Callable[[list[Any]], Any], futures: list[Any]) -> Any:
        """Return the future of all results combined, a few at a time."""
        futures = self.narrowed(combine, futures)
        return futures[0] if len(futures) == 1 else self.submit(combine, futures)

    def tree(self, combine: Callable[[list[Any]], Any], futures: list[Any]) -> Any:
        """Return all results combined, on the client."""
        return self.fetch([self.joined(combine, futures)])[0]

    def gathered(
        self,
        function: Callable[..., Any],
        combine: Callable[[list[Any]], Any],
        parts: Sequence[Any],
        *arguments: Any,
    ) -> Any:
        """Return the future of ``function(part, *arguments)`` of all parts, combined."""
        return self.joined(combine, self.each(function, parts, *arguments))

    def combine(
        self,
        function: Callable[..., Any],
        combine: Callable[[list[Any]], Any],
        parts: Sequence[Any],
        *arguments: Any,
    ) -> Any:
        """Return ``function(part, *arguments)`` of all parts, combined, on the client."""
        return self.tree(combine, self.each(function, parts, *arguments))


def same(given: Any) -> Any:
    """Return the argument, as the result of a task."""
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
