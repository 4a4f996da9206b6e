"""`gputree warmup`: compile kernels before they are needed, as when an image is built."""

from __future__ import annotations

import argparse
import multiprocessing
import os
import time
from concurrent.futures import ProcessPoolExecutor, as_completed

from gputree.cli.report import UsageError, counted, parse_names, with_examples

# Kinds that half of the time goes to: begun last, they would be waited for.
_LONGEST = ("categories", "forests", "c45")


def add_warmup(parser: argparse.ArgumentParser) -> None:
    """Fill the parser of `gputree warmup`."""
    from gputree.criteria.named import NAMED

    criteria = ", ".join(NAMED).replace("squared_error", "regression")

    with_examples(
        parser,
        "Compile kernels in advance, in several processes, e.g. while a container image is built.",
        "gputree warmup",
        "gputree warmup --kinds gini,regression --jobs 2",
    )
    parser.set_defaults(run=_warm_up)
    parser.add_argument(
        "--kinds",
        type=parse_names,
        metavar="A,B,...",
        help=f"{criteria}, weights (CART); categories (CART over them); "
        "forests; c45; id3; options (one or three classes, monotonic_cst, Shapley values); "
        "pruning; rules; scores (feature scores and MDLPDiscretizer); default: all",
    )
    parser.add_argument(
        "--jobs", type=int, metavar="N", help="processes at a time; default: as many as cores"
    )


def _warm_up(arguments: argparse.Namespace) -> None:
    from gputree.cli.kinds import KINDS, compile_kind
    from gputree.compilation.folders import in_use

    chosen = arguments.kinds or list(KINDS)
    unknown = sorted(set(chosen) - set(KINDS))
    if unknown:
        raise UsageError(f"--kinds knows {', '.join(KINDS)}. Got {unknown[0]!r} instead.")
    jobs = arguments.jobs if arguments.jobs is not None else os.cpu_count() or 1
    if jobs < 1:
        raise UsageError(f"--jobs must be at least 1. Got {jobs} instead.")
    folder = in_use()
    if folder is None:
        raise PermissionError(
            "Compiled kernels cannot be kept: no folder for them can be written. Set "
            "NUMBA_CACHE_DIR to one that can, or run this where gputree is installed."
        )
    start = time.perf_counter()
    context = multiprocessing.get_context("spawn")  # compilers do not survive a fork
    with ProcessPoolExecutor(min(jobs, len(chosen)), mp_context=context) as pool:
        longest_first = sorted(chosen, key=lambda kind: kind not in _LONGEST)
        for done in as_completed([pool.submit(compile_kind, kind) for kind in longest_first]):
            kind, kernels, seconds = done.result()
            news = f"{counted(kernels, 'kernel')} compiled in {seconds:.1f} s"
            print(f"{kind:12}{news if kernels else 'nothing to compile'}", flush=True)
    print(f"{time.perf_counter() - start:.1f} s in all, kept in {folder}")
