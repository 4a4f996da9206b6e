"""A stand-in for a client of Dask: tasks run at once, here, and each of them twice.

A task that is not pure, or changes what it is given, is detected by trees that differ.
"""

from __future__ import annotations

from typing import Any

import dask

from gputree.backends.sharded.tasks import bytes_of


class EagerClient:
    """The methods of a client that `gputree.distributed` calls; futures are the results.

    Attributes
    ----------
    sent : list of int
        Bytes of the arguments of each task that no other task has made.
    fetched : list of int
        Bytes of the arrays that are fetched at once.
    """

    def __init__(self, again: bool = False) -> None:
        self.again = again
        self.sent: list[int] = []
        self.fetched: list[int] = []
        self._made: dict[int, Any] = {}

    def __deepcopy__(self, memo: Any) -> EagerClient:
        return self

    def submit(self, function: Any, *arguments: Any, pure: bool) -> Any:
        self.sent.append(sum(map(self._bytes, arguments)))
        for _ in range(1 + self.again):
            result = function(*arguments)
        self._made[id(result)] = result
        return result

    def map(self, function: Any, *arguments: Any, pure: bool) -> list[Any]:
        given = zip(*arguments, strict=True)
        return [self.submit(function, *arguments, pure=pure) for arguments in given]

    def _bytes(self, argument: Any) -> int:
        if id(argument) in self._made:
            return 0
        if isinstance(argument, list):
            return sum(map(self._bytes, argument))
        return bytes_of(argument)

    def compute(self, delayed: Any) -> Any:
        made = list(dask.compute(*delayed, scheduler="synchronous"))
        self._made.update((id(value), value) for value in made)
        return made

    def gather(self, results: Any) -> Any:
        self.fetched.append(bytes_of(results))
        return results

    def nthreads(self) -> dict[str, int]:
        return {"here": 2}
