"""Kernels that default tests compile, as interpreting them would take a fifth of all time."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np
import pytest

from gputree.compilation import dispatchers, store, tiers
from gputree.compilation.declared import declare
from gputree.compilation.decorators import Kernel
from gputree.criteria.dispatch import Gini, SquaredError, TwoClassGini

# Together they compile in less than half a minute, once on a machine.
HOT = {
    "backends.cpu.encode": ("encode_rows", "fill_grid", "inspect_columns", "take_columns"),
    "backends.cpu.finish": ("grow_nodes",),
    "backends.cpu.lists.score": ("score_columns",),
    "backends.cpu.sort": ("sort_keys",),
    "criteria.entropy": ("_terms", "node_entropies"),
    "ensemble.draws": ("count_draws",),
    "prediction.descent": ("walk",),
    "prediction.forest": ("add_answers",),
    "rules.selection": ("_best_subset",),
    "tree.branches": ("add_to_parents",),
}


# Forms of arguments that few tests use are interpreted, up to this part of the time to compile.
INTERPRETED = 0.3


def is_grown_often(
    rules: Any, _: Any, nodes: Any, a: int, b: int, scratch: Any, *rest: Any
) -> bool:
    """Return True for growth by numbers without constraints, by the criteria of most fits."""
    plain = scratch is None and nodes.means is None and rest[0].order.dtype == np.uint32
    return plain and isinstance(rules.criterion, Gini | SquaredError | TwoClassGini)


# Kernels of many forms, of which these few take most of the time and are compiled at once.
OFTEN = {"grow_nodes": is_grown_often}


def lock_now(kernel: str) -> bool:
    """Lock a kernel, as `store.lock` does, unless another process compiles it."""
    with suppress(OSError):  # no folder, or a file system without locks
        if not store._try_lock(kernel):
            raise tiers.NotCompiled
        return True
    return False


def compiled(kernel: Kernel) -> Callable[..., Any]:
    """The kernel as a function that is compiled if that pays, without a message or a wait."""
    tier, interpret = kernel.tier, kernel.interpret
    often = OFTEN.get(kernel.py_func.__name__)

    @cache
    def dispatcher() -> Any:
        with pytest.MonkeyPatch.context() as patch:
            declare()  # where a module of tests fits models while it is collected
            patch.setattr(dispatchers, "_timed", lambda function, tier, compile_: compile_)
            return dispatchers.of_kernel(kernel.py_func, tier)

    def call(*arguments: Any) -> Any:
        if often and not often(*arguments):
            return interpret(*arguments)
        declare()  # as `_timed` would before it compiles
        with suppress(tiers.NotCompiled):  # in this form
            return dispatcher()(*arguments)
        soon = tier.seconds + tier._predict(arguments) < INTERPRETED * tier.compiling_cost()
        if often or not soon:
            with suppress(tiers.NotCompiled), pytest.MonkeyPatch.context() as patch:
                patch.setattr(store, "lock", lock_now)
                with tier.compiling():
                    return dispatcher()(*arguments)
        return interpret(*arguments)

    return call


@contextmanager
def hot_kernels_compiled() -> Iterator[None]:
    """Compile the kernels of `HOT` where all others are interpreted."""
    with pytest.MonkeyPatch.context() as patch:
        for name, kernels in HOT.items():
            for kernel in kernels:
                found = getattr(import_module(f"gputree.{name}"), kernel)
                patch.setattr(found, "interpret", compiled(found))
        yield
