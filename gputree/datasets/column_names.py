"""Names of the columns of a file: choice of the features, and checks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from gputree._texts import hint
from gputree.datasets.conversion import listed
from gputree.datasets.csv_head import Opened
from gputree.datasets.dialect import DELIMITERS as MARKS
from gputree.datasets.first_rows import header_is_row
from gputree.errors import InputError


def check_header(label: str, present: list[str], wanted: Sequence[str]) -> None:
    """Raise ValueError unless names differ and all that are wanted are there."""
    forbid_repeated(label, present)
    check_present(label, present, wanted)


def forbid_repeated(label: str, present: Sequence[str], opened: Opened | None = None) -> None:
    """Raise ValueError where two columns have the same name."""
    if repeated := _repeated(present):
        hint = ""
        if opened is not None and not opened.is_headless and header_is_row(present, opened.rows):
            hint = " If these are values, add has_header=False."
        raise InputError(f"{label} has columns of the same name: {listed(repeated)}.{hint}")


def _repeated(names: Sequence[str]) -> list[str]:
    return [name for name, count in Counter(names).items() if count > 1]


def feature_names(
    label: str,
    present: list[str],
    target: str | None,
    columns: Sequence[str] | None,
    ignore: Sequence[str],
) -> list[str]:
    """Names of the feature columns."""
    wanted = [name for name in present if name != target] if columns is None else list(columns)
    check_present(label, present, [*wanted, *ignore, *([] if target is None else [target])])
    if target in wanted:
        raise InputError(f"The target column {target!r} cannot also be a feature column.")
    if repeated := _repeated(wanted):
        raise InputError(f"{listed(repeated)} is listed twice in columns.")
    wanted = [name for name in wanted if name not in ignore]
    if not wanted:
        raise InputError(
            f"{label} has no feature columns other than the target and those left out."
        )
    return wanted


def check_present(label: str, present: list[str], wanted: Sequence[str]) -> None:
    """Raise ValueError unless a file has all columns that are wanted."""
    missing = [name for name in wanted if name not in set(present)]
    if missing:
        column = "column" if len(missing) == 1 else "columns"
        raise InputError(
            f"{label} has no {column} {listed(missing)}.{hint(missing[0], present)} Its columns "
            f"are: {listed(present)}.{_separator_hint(present)}"
        )


def _separator_hint(present: list[str]) -> str:
    """Hint for an error: a separator, if a file seems to have one column."""
    found = [mark for mark in MARKS if len(present) == 1 and mark in present[0]]
    if len(present) == 1 and not found and " " in present[0].strip():
        return (
            " If blanks separate the cells, single ones are a delimiter: delimiter=' '. Make "
            "single ones of several: tr -s ' '"
        )
    if not found:
        return ""
    return (
        f" The separator seems to be {found[0]!r}; it must be a tab in .tsv, and in .csv part all "
        "rows alike."
    )
