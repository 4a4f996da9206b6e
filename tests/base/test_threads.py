"""The pool of threads: order of results, errors, and work handed out from within work."""

import threading

import numpy as np
import pytest

from gputree.base import threads


@pytest.mark.parametrize("n_threads", [1, 2, 5])
def test_results_come_in_order(n_threads):
    assert threads.run(n_threads, lambda i: i * i, [(i,) for i in range(20)]) == [
        i * i for i in range(20)
    ]


def test_work_within_work_ends():
    """Every thread of the pool waits for an inner run at once: none of them starts it."""
    barrier = threading.Barrier(3)

    def outer(i):
        barrier.wait(30)
        return sum(threads.run(3, lambda k: k + i, [(k,) for k in range(3)]))

    found = []
    caller = threading.Thread(
        target=lambda: found.append(threads.run(3, outer, [(i,) for i in range(3)])), daemon=True
    )
    caller.start()
    caller.join(60)
    assert found == [[3, 6, 9]]


@pytest.mark.parametrize("parts", [1, 2, 3, 7])
def test_spans_cover_all(parts):
    sizes = np.array([5, 1, 1, 9, 2])
    spans = threads.cut(sizes, parts)
    assert spans[0][0] == 0
    assert spans[-1][1] == sizes.size
    assert all(a[1] == b[0] for a, b in zip(spans, spans[1:], strict=False))


@pytest.mark.parametrize("n", [0, 1, 5, 1000])
def test_even_spans_cover_all(n):
    spans = threads.even_spans(n, 3, 4, 10)
    assert np.concatenate([np.arange(*span) for span in spans]).tolist() == list(range(n))
    assert len(spans) == len(threads.spans(np.full(n, 3), 4, 10))


@pytest.mark.parametrize("depth", [1, 2])
def test_work_under_way_is_left_where_it_hands_out_more(depth):
    """A fold's fit hands out work again and again: an interrupt need not wait for its end."""
    main = threading.get_ident()
    begun, steps = threading.Event(), []

    def step(i):
        steps.append(i)
        return i

    def task(i):
        if threading.get_ident() == main:
            assert begun.wait(60)
            raise KeyboardInterrupt
        begun.set()
        for k in range(10_000_000):
            threads.run(depth, step, [(k,)] * depth)

    with pytest.raises(KeyboardInterrupt):
        threads.run(2, task, [(0,), (1,), (2,)])
    assert len(steps) < 10_000_000
    assert threads.run(2, step, [(0,), (1,)]) == [0, 1]  # the pool works on


def test_an_error_elsewhere_is_raised():
    main = threading.get_ident()
    failed = threading.Event()

    def task(i):
        if threading.get_ident() == main:
            assert failed.wait(60)
            return i
        failed.set()
        raise ZeroDivisionError(f"of task {i}")

    with pytest.raises(ZeroDivisionError, match="of task"):
        threads.run(2, task, [(0,), (1,)])
