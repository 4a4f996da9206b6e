"""The pool of threads, for kernels that release the interpreter lock."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np

from gputree.base.dtypes import Int64s
from gputree.errors import InputError

# Average number of spans that a thread takes: more balance better, fewer cost less to hand out.
SPANS_PER_THREAD = 8


def most_threads() -> int:
    """Processors that this process may use, or what NUMBA_NUM_THREADS says: as many as numba's."""
    limit = os.environ.get("NUMBA_NUM_THREADS", "")
    if limit.isdigit() and int(limit) > 0:
        return int(limit)
    if hasattr(os, "sched_getaffinity"):
        return max(len(os.sched_getaffinity(0)), 1)
    return os.cpu_count() or 1


def n_threads(n_jobs: int | None) -> int:
    """Threads for `n_jobs`: None is `most_threads`, negative counts back from them."""
    most = most_threads()
    if n_jobs is None:
        return most
    if n_jobs == 0:
        raise InputError("n_jobs == 0 has no meaning; use None for all threads, or 1.")
    return max(n_jobs if n_jobs > 0 else most + 1 + n_jobs, 1)


@cache
def _executor(n_threads: int, process: int) -> ThreadPoolExecutor:
    """The threads of one process: a forked child has none of its parent's."""
    return ThreadPoolExecutor(n_threads, thread_name_prefix="gputree")


class _Stopped(BaseException):
    """No caller waits for these tasks, or for those that they have started."""

    def __init__(self, tasks: _Tasks) -> None:
        self.tasks = tasks


class _Tasks:
    """Tasks that threads take one by one, and their results."""

    def __init__(self, task: Callable[..., Any], arguments: Sequence[tuple]) -> None:
        self.task = task
        self.arguments = arguments
        self.results: list[Any] = [None] * len(arguments)
        self.stopped = False
        self.outer = _of_this_thread()  # of which these are a part
        self._pending = iter(range(len(arguments)))
        self._lock = threading.Lock()

    def work(self) -> None:
        try:
            while (i := self._take()) is not None:
                self.results[i] = self.task(*self.arguments[i])
        except BaseException:
            self.stop()
            raise

    def work_for_another(self) -> None:
        """Do tasks in a thread of the pool, which signals do not reach."""
        _work.tasks = self
        try:
            self.work()
        except _Stopped as stopped:
            if stopped.tasks is not self:
                raise
        finally:
            _work.tasks = None

    def stop(self) -> None:
        """Prevent threads from starting another task, or another part of one."""
        self.stopped = True
        while self._take() is not None:
            pass

    def _take(self) -> int | None:
        with self._lock:
            return next(self._pending, None)


_work = threading.local()  # .tasks: those that this thread of the pool is at work on


def _of_this_thread() -> _Tasks | None:
    return getattr(_work, "tasks", None)


def _leave_if_stopped() -> None:
    """End the task of this thread if no caller waits for it."""
    tasks = _of_this_thread()
    while tasks is not None:
        if tasks.stopped:
            raise _Stopped(tasks)
        tasks = tasks.outer


def run(n_threads: int, task: Callable[..., Any], arguments: Sequence[tuple]) -> list[Any]:
    """Results of ``task(*a)`` for each a in `arguments`, in order.

    Tasks are taken one by one, so put the largest first. One thread, or one task,
    runs in the caller. After an error, or an interrupt, no thread works any longer: no task is
    begun, and one that another thread runs ends at its next call of `run`.
    """
    _leave_if_stopped()
    if n_threads == 1 or len(arguments) <= 1:
        return [task(*a) for a in arguments]
    tasks = _Tasks(task, arguments)
    others: list[Future] = []
    try:
        pool = _executor(n_threads - 1, os.getpid())
        for _ in range(min(n_threads, len(arguments)) - 1):
            others.append(pool.submit(tasks.work_for_another))
        tasks.work()
        for other in others:
            if not other.cancel():  # one that has not begun has nothing left to do
                other.result()
    except BaseException:
        tasks.stop()
        wait(others)
        raise
    return tasks.results


@contextmanager
def beside(task: Callable[[threading.Event], None]) -> Iterator[None]:
    """Run a task in a separate thread during the block; it returns once the event is set."""
    done = threading.Event()
    thread = threading.Thread(target=task, args=(done,), daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def spans(sizes: Int64s, n_threads: int, smallest: int) -> list[tuple[int, int]]:
    """Cut ``0 .. len(sizes)`` into contiguous spans of similar total size.

    A span holds at least `smallest` of the total, so that little work is not handed out.
    """
    return cut(sizes, _parts(int(sizes.sum()), n_threads, smallest))


def even_spans(n: int, size: int, n_threads: int, smallest: int) -> list[tuple[int, int]]:
    """Divide n items of one `size` as `spans` does, without memory for their sizes."""
    parts = min(_parts(n * size, n_threads, smallest), max(n, 1))
    bounds = [n * k // parts for k in range(parts + 1)]
    return list(zip(bounds, bounds[1:], strict=False))


def _parts(total: int, n_threads: int, smallest: int) -> int:
    """Number of spans to cut work of size `total` into."""
    return min(n_threads * SPANS_PER_THREAD, max(total // smallest, 1)) if n_threads > 1 else 1


def cut(sizes: Int64s, parts: int) -> list[tuple[int, int]]:
    """Cut ``0 .. len(sizes)`` into at most `parts` contiguous spans of similar total size."""
    if parts <= 1:
        return [(0, sizes.size)]
    ends = np.cumsum(sizes)
    cuts = np.searchsorted(ends, np.arange(1, parts) * (int(ends[-1]) / parts)) + 1
    bounds = np.unique(np.concatenate([[0], np.minimum(cuts, sizes.size), [sizes.size]]))
    return [(int(a), int(b)) for a, b in zip(bounds, bounds[1:], strict=False)]


def chunks(begins: Int64s, ends: Int64s, rows: int) -> tuple[Int64s, Int64s, Int64s]:
    """Chunks of at most `rows` of ranges ``begins[j] .. ends[j]``: owner, begin and end of each."""
    counts = np.maximum(-(-(ends - begins) // rows), 1)
    owner = np.repeat(np.arange(begins.size), counts)
    first = np.cumsum(counts) - counts
    begin = begins[owner] + (np.arange(owner.size) - first[owner]) * rows
    return owner, begin, np.minimum(begin + rows, ends[owner])
