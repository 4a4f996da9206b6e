"""Tables with a column of ordered categories, and the same with numbers in its place."""

from __future__ import annotations

import numpy as np
import pandas as pd

LEVELS = ["very low", "low", "medium", "high", "top, above all"]


def ordered_table(n=120, seed=0, missing=True):
    """A frame of ordered categories, numbers and text; labels and targets.

    The target does not follow the order of the levels; missing ones count among the highest.
    """
    rng = np.random.default_rng(seed)
    code = rng.integers(0, len(LEVELS), n)
    z = rng.normal(size=n).round(2)
    target = np.array([0.0, 3.0, 1.0, 2.5, 0.5])[code] + z + (code > 2) * z
    X = pd.DataFrame(
        {
            "level": pd.Categorical.from_codes(code, LEVELS, ordered=True),
            "z": z,
            "c": rng.choice(["x", "y", "w"], n),
        }
    )
    if missing:
        X.loc[rng.random(n) < 0.15, "level"] = None
        target = np.where(X["level"].isna(), 4.0, target)
    labels = np.array(["few", "some", "many"])[np.digitize(target, [0.8, 2.2])]
    return X, labels, target


def as_text(X):
    """The levels as text, whose type has no order."""
    return X.assign(level=X["level"].astype(object).where(X["level"].notna(), None))


def by_rank(X):
    """Ranks in place of the levels, NaN where they are missing or unknown."""
    place = {level: float(rank) for rank, level in enumerate(LEVELS)}
    return X.assign(level=[place.get(level, np.nan) for level in X["level"]])


def asked(X):
    """Rows to predict: as in `X`, but text, some levels unknown and some missing."""
    rows = as_text(X).head(60).copy()
    rows.loc[rows.index[::7], "level"] = "beyond"
    rows.loc[rows.index[3::11], "level"] = None
    return rows
