"""The textbook tables shipped with the package."""

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import DTypeLike, NDArray
from sklearn.utils import Bunch

from gputree.base.texts import fill
from gputree.errors import InputError

_FOLDER = Path(__file__).with_name("data")


_SECTIONS = """Parameters
    ----------
    return_X_y : bool, default=False
        Return ``(data, target)`` instead of a Bunch.

    Returns
    -------
    Bunch
        With `data` ({data}), `target` ({target}),
        `feature_names`, `target_name`, `DESCR` and `filename`."""


def _load(
    name: str,
    data: DTypeLike,
    description: str,
    return_X_y: bool,
    target: DTypeLike = np.str_,
    numbers: Sequence[int] = (),
) -> Any:
    """The table of a file; `numbers` are columns of numbers where `data` is object."""
    path = _FOLDER / f"{name}.csv"
    with path.open(newline="", encoding="utf-8") as lines:
        header, *rows = csv.reader(lines)
    cells = np.array(rows, dtype=object)
    cells[cells == ""] = None
    cells[:, numbers] = cells[:, numbers].astype(np.float64)
    bunch = Bunch(
        data=cells[:, :-1].astype(data),
        target=cells[:, -1].astype(target),
        feature_names=header[:-1],
        target_name=header[-1],
        DESCR=description,
        filename=str(path),
    )
    return (bunch.data, bunch.target) if return_X_y else bunch


@fill(sections=_SECTIONS, data="int64, shape (5, 2)", target="str, shape (5,)")
def load_fish(*, return_X_y: bool = False) -> Bunch | tuple[NDArray, NDArray]:
    """Load the fish table: is an animal a fish?

    Five rows, two columns of 0 and 1. The class entropy is 0.971 bits, and the
    first split is on ``no surfacing``.

    {sections}
    """
    description = (
        "Fish: does the animal survive without surfacing, does it have flippers; is it a fish? "
        "5 rows, 2 columns, classes no (3) and yes (2). A common first example of ID3."
    )
    return _load("fish", np.int64, description, return_X_y)


@fill(sections=_SECTIONS, data="object array of str, shape (15, 4)", target="str, shape (15,)")
def load_loan(*, return_X_y: bool = False) -> Bunch | tuple[NDArray, NDArray]:
    """Load the loan table: is an application approved?

    15 rows, four nominal columns. The class entropy is 0.971 bits; the information gains are 0.083
    (age), 0.324 (has job), 0.420 (owns house) and 0.363 (credit).

    {sections}
    """
    description = (
        "Loan applications: age, has job, owns house, credit; approved? 15 rows, 4 nominal "
        "columns, classes no (6) and yes (9). Li Hang, Statistical Learning Methods, table 5.1."
    )
    return _load("loan", object, description, return_X_y)


# Of the versions of the watermelon table: the file, what it has beyond 6 nominal columns, the table
# of the book, and its columns of numbers.
_WATERMELONS: dict[str, tuple[str, str, str, Sequence[int]]] = {
    "2.0": ("watermelon", "", "4.1", ()),
    "2.0 alpha": ("watermelon_2_alpha", ", 13 missing values", "4.4", ()),
    "3.0": ("watermelon_3", ", density and sugar content", "4.3", (6, 7)),
}


@fill(
    sections=_SECTIONS.replace(
        "return_X_y :",
        'version : {"2.0", "2.0 alpha", "3.0"}, default="2.0"\n'
        "        Of the table, as the book numbers them.\n    return_X_y :",
    ),
    data="object array, shape (17, 6), or (17, 8) in version 3.0",
    target="str, shape (17,)",
)
def load_watermelon(
    *, version: Literal["2.0", "2.0 alpha", "3.0"] = "2.0", return_X_y: bool = False
) -> Bunch | tuple[NDArray, NDArray]:
    """Load the watermelon tables of Zhou's book: is a watermelon ripe?

    Version 2.0 has 17 rows and six nominal columns. The class entropy is 0.998 bits; the
    information gain of ``texture`` is 0.381, that of ``colour`` 0.109. In version 2.0 alpha
    13 cells are missing (None); version 3.0 has the numbers ``density`` and ``sugar`` as well.

    {sections}

    Raises
    ------
    ValueError
        There is no such version.
    """
    if version not in _WATERMELONS:
        raise InputError(
            "The 'version' parameter of load_watermelon must be a str among "
            f"{{{', '.join(map(repr, _WATERMELONS))}}}. Got {version!r} instead."
        )
    name, more, table, numbers = _WATERMELONS[version]
    description = (
        "Watermelons: colour, stalk, sound, texture, navel, touch; ripe? 17 rows, 6 nominal "
        f"columns{more}; classes no (9) and yes (8). Zhou Zhihua, Machine Learning, table {table}."
    )
    return _load(name, object, description, return_X_y, numbers=numbers)


@fill(sections=_SECTIONS, data="object array of str, shape (14, 4)", target="str, shape (14,)")
def load_golf(*, return_X_y: bool = False) -> Bunch | tuple[NDArray, NDArray]:
    """Load the golf table, also known as play tennis: does the weather suit play?

    14 rows, four nominal columns. The information gains are 0.247 (outlook),
    0.152 (humidity), 0.048 (wind) and 0.029 (temperature) bits.

    {sections}
    """
    description = (
        "Golf (play tennis): outlook, temperature, humidity, wind; play? 14 rows, 4 nominal "
        "columns, classes no (5) and yes (9). Quinlan, Induction of Decision Trees, Machine "
        "Learning 1 (1986), table 1."
    )
    return _load("golf", object, description, return_X_y)


@fill(sections=_SECTIONS, data="object array of str, shape (24, 4)", target="str, shape (24,)")
def load_contact_lenses(*, return_X_y: bool = False) -> Bunch | tuple[NDArray, NDArray]:
    """Load the contact lenses table: which lenses suit a patient?

    All 24 combinations of four nominal columns, three classes, no noise.

    {sections}
    """
    description = (
        "Contact lenses: age, prescription, astigmatism, tear rate; lenses to fit. 24 rows, 4 "
        "nominal columns, classes hard (4), none (15) and soft (5). Cendrowska, PRISM, "
        "International Journal of Man-Machine Studies 27 (1987)."
    )
    return _load("contact_lenses", object, description, return_X_y)


@fill(sections=_SECTIONS, data="float64, shape (150, 4)", target="str, shape (150,)")
def load_iris(*, return_X_y: bool = False) -> Bunch | tuple[NDArray, NDArray]:
    """Load Fisher's iris table: three species by four lengths in centimetres.

    {sections}
    """
    description = (
        "Iris: sepal and petal, length and width in cm; species. 150 rows, 4 numeric columns, "
        "classes setosa, versicolor and virginica (50 each). Fisher, The use of multiple "
        "measurements in taxonomic problems, Annals of Eugenics 7 (1936); values as in the paper."
    )
    return _load("iris", np.float64, description, return_X_y)


@fill(sections=_SECTIONS, data="float64 with NaN, shape (398, 7)", target="float64, shape (398,)")
def load_auto_mpg(*, return_X_y: bool = False) -> Bunch | tuple[NDArray, NDArray]:
    """Load the fuel consumption of 398 cars, in miles per gallon (regression).

    Six values of ``horsepower`` are missing.

    {sections}
    """
    description = (
        "Auto MPG: cylinders, displacement (cubic inches), horsepower, weight (pounds), "
        "acceleration (seconds to 60 mph), model year, origin; miles per gallon. 398 rows, 7 "
        "numeric columns, 6 missing values. Quinlan, Auto MPG, UCI Machine Learning Repository "
        "(1993), doi:10.24432/C5859H, CC BY 4.0."
    )
    return _load("auto_mpg", np.float64, description, return_X_y, np.float64)
