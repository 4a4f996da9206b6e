"""Ten thousand rows of words and numbers through formats that take them: as by `predict`.

Predictions of random trees are compared on codes, in the tests of each format.
"""

import numpy as np
import pandas as pd
import pytest
from programs import PROGRAMS

from gputree import DecisionTreeClassifier, DecisionTreeRegressor

N_ROWS = 10_000
WORDS = np.array(["Bern", "Kyiv", "L'Aquila", 'say "so"', "", "Lima", None], object)


@pytest.mark.full
@pytest.mark.parametrize("kind", [DecisionTreeClassifier, DecisionTreeRegressor])
def test_fitted_estimators_asked_by_words(kind, tmp_path):
    """Predict numbers, words, missing values, and words that training did not have."""
    rng = np.random.default_rng(1)
    words = WORDS[rng.integers(0, WORDS.size, N_ROWS)]
    table = pd.DataFrame({"x": rng.normal(size=N_ROWS).round(3), "word": words})
    table["y"] = rng.integers(0, 50, N_ROWS) / 4
    table.loc[rng.random(N_ROWS) < 0.1, "x"] = None
    model = kind(max_depth=10).fit(table[:2000], rng.integers(0, 3, 2000))
    table.loc[rng.random(N_ROWS) < 0.1, "word"] = "nowhere"
    for program in ("Python", "JSON", "SQLite", "DuckDB"):
        PROGRAMS[program](model, table, tmp_path)
