"""`python -m benchmarks.compare [case ...]`: gputree beside other libraries, on this machine."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from pathlib import Path

from threadpoolctl import threadpool_limits

from benchmarks.compare import fits, report, uses
from benchmarks.compare.timing import THREADS

Case = Callable[[fits.Options], Iterator[report.Row]]
CASES: dict[str, Case] = {
    case.__name__: case
    for case in (
        fits.depth8,
        fits.wide,
        fits.classes,
        fits.mixed,
        fits.unlimited,
        fits.covertype,
        fits.regression,
        fits.absolute_error,
        fits.real,
        uses.iris,
        uses.predict,
        uses.memory,
        uses.cold,
        fits.exactness,
    )
}


def parse_arguments(arguments: list[str] | None = None) -> argparse.Namespace:
    summaries = [f"  {name:11s}{(case.__doc__ or '').strip()}" for name, case in CASES.items()]
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.compare",
        description=__doc__,
        epilog="\n".join(["cases:", *summaries]),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("cases", nargs="*", metavar="case", help="all of them by default")
    parser.add_argument("--repeats", type=int, default=3, help="runs of each (default 3)")
    parser.add_argument("--rows", type=int, help="size of the generated tables")
    parser.add_argument("--output", type=Path, help="file to write, .md or .json")
    options = parser.parse_args(arguments)
    if unknown := set(options.cases) - set(CASES):
        parser.error(f"no such case: {', '.join(sorted(unknown))}; there are {', '.join(CASES)}")
    return options


def main(arguments: list[str] | None = None) -> None:
    options = parse_arguments(arguments)
    rows = []
    print(report.header(), flush=True)
    with threadpool_limits(THREADS):
        for name in options.cases or CASES:
            for row in CASES[name](fits.Options(options.repeats, options.rows)):
                print(report.table_line(row.cells()), flush=True)
                rows.append(row)
    print(f"\n{report.machine_line()}")
    if options.output:
        write = report.as_json if options.output.suffix == ".json" else report.as_markdown
        options.output.write_text(write(rows), encoding="utf-8")


if __name__ == "__main__":
    main()
