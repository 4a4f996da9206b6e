"""Progress bars: for a tree that takes a while to grow, and for other work that takes as long."""

import sys
import warnings
from threading import Lock
from time import monotonic
from types import TracebackType
from typing import Any, Self

# The remaining time of a tree cannot be predicted: no rate, and no remaining time.
_GROWTH_FORMAT = "{desc} {percentage:3.0f}%|{bar}| {elapsed}"


class Progress:
    """Show the number of rows in leaves or set aside in small nodes, level by level.

    The progress bar is full only once the block ends without an error. Nothing is shown, and tqdm
    is not imported, unless `enabled` and in a notebook or with a terminal as standard error.
    """

    def __init__(self, n_rows: int, enabled: bool) -> None:
        self._n_rows = n_rows
        # miniters=0: update even after a level without leaves.
        self._bar = new_bar(n_rows, enabled, bar_format=_GROWTH_FORMAT, miniters=0)

    def level(self, depth: int, open_nodes: int, open_rows: int, nodes: int) -> None:
        """Report that a level is about to be split, or at last that small subtrees are built.

        Open nodes may still be split; at last there are none, and the rows are those set aside.
        `nodes` is the number of nodes of the tree so far.
        """
        if self._bar is None:
            return
        if open_nodes == 0:  # the longest step of many trees, without news
            self._bar.set_description_str(f"building small subtrees, {open_rows:,} rows")
            return
        news = f"level {depth}, {nodes:,} node{'s' * (nodes > 1)}, {open_rows:,} rows open"
        self._bar.set_description_str(news, refresh=False)
        self._bar.update(self._n_rows - open_rows - self._bar.n)

    def ahead(self, depth: int, open_rows: int) -> None:
        """Report that some levels are about to be split at once, and read back together."""
        if self._bar is not None:
            self._bar.set_description_str(f"levels from {depth} on, {open_rows:,} rows open")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._bar is None:
            return
        if kind is None:
            self._bar.update(self._n_rows - self._bar.n)
        self._bar.close()


class ReadingProgress:
    """Show the rows and bytes of values that were read, in each pass over a table."""

    def __init__(self, verbose: bool) -> None:
        self._verbose = verbose
        self._bar: Any = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: Any) -> None:
        self._close()

    def begin(self, what: str, total: int | None) -> None:
        self._close()
        self._bar = new_bar(total, self._verbose, desc=what, unit=" rows", unit_scale=True)
        self._bytes = 0

    def add(self, values: Any) -> None:
        """Report values that were read."""
        if self._bar is not None:
            self._bytes += values.nbytes
            size = self._bar.format_sizeof(self._bytes, "B", 1024)
            self._bar.set_postfix_str(size, refresh=False)
            self._bar.update(len(values))

    def _close(self) -> None:
        if self._bar is not None:
            self._bar.close()


# Seconds between lines, at least.
LINE_SECONDS = 10.0


class Lines:
    """Lines of text in place of a bar, now and then and at the end; threads may update it."""

    def __init__(self, total: int, desc: str) -> None:
        self._total, self._desc, self._n = total, desc, 0
        self._start = self._last = monotonic()
        self._lock = Lock()

    def update(self) -> None:
        """Count one more."""
        with self._lock:
            self._n += 1
            now = monotonic()
            if self._n == self._total or now - self._last >= LINE_SECONDS:
                self._last = now
                elapsed = f"{now - self._start:.1f} s"
                print(f"{self._desc}: {self._n} of {self._total}, {elapsed}", file=sys.stderr)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: Any) -> None:
        pass


def new_bar(total: int | None, enabled: bool, lines: bool = False, **options: Any) -> Any:
    """Return a bar of tqdm for a terminal or a notebook; None if not `enabled`.

    It is removed at the end: the result is what should stay on the screen. Elsewhere, as in a pipe,
    return `Lines`, or None if not `lines`.
    """
    if not enabled or sys.stderr is None:
        return None
    if not (sys.stderr.isatty() or in_notebook()):
        return Lines(total or 0, options["desc"]) if lines else None
    with warnings.catch_warnings():  # that bars are of text where there are no widgets
        warnings.simplefilter("ignore")
        from tqdm.auto import tqdm
    return tqdm(total=total, leave=False, **options)


def in_notebook() -> bool:
    """Return True in the kernel of a notebook, where output is visible."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return "IPKernelApp" in getattr(shell, "config", {})
