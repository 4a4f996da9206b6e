"""Kernels that default tests compile, as interpreting them would take a sixth of all time."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from importlib import import_module
from typing import Any

import pytest

from gputree.compilation import dispatchers, tiers
from gputree.compilation.declared import declare
from gputree.compilation.decorators import Kernel

# Together they compile in about half a minute, once on a machine.
HOT = {
    "backends.cpu.encode": ("encode_rows", "fill_grid", "inspect_columns", "take_columns"),
    "backends.cpu.lists.score": ("score_columns",),
    "backends.cpu.sort": ("sort_keys",),
    "criteria.entropy": ("_terms", "node_entropies"),
    "prediction.descent": ("walk",),
    "prediction.forest": ("add_answers",),
    "rules.selection": ("_best_subset",),
    "tree.branches": ("add_to_parents",),
}


# Forms of arguments that few tests use are interpreted, up to this part of the time to compile.
INTERPRETED = 0.3


def compiled(kernel: Kernel) -> Callable[..., Any]:
    """The kernel as a function that is compiled if that pays, without a message."""
    tier, interpret = kernel.tier, kernel.interpret

    @cache
    def dispatcher() -> Any:
        with pytest.MonkeyPatch.context() as patch:
            declare()  # where a module of tests fits models while it is collected
            patch.setattr(dispatchers, "_timed", lambda function, tier, compile_: compile_)
            return dispatchers.of_kernel(kernel.py_func, tier)

    def call(*arguments: Any) -> Any:
        declare()  # as `_timed` would before it compiles
        with suppress(tiers.NotCompiled):  # in this form
            return dispatcher()(*arguments)
        if tier.seconds + tier._predict(arguments) < INTERPRETED * tier.compiling_cost():
            return interpret(*arguments)
        with tier.compiling():
            return dispatcher()(*arguments)

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
