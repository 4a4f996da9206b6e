"""Ten thousand rows of words and numbers through formats that take them: as by `predict`.

Predictions of random trees are compared on codes, in the tests of each format.
"""

import numpy as np
import pytest
from databases import in_duckdb, in_sqlite

from gputree import DecisionTreeClassifier, DecisionTreeRegressor, export_json, read_json
from gputree.export import export_python, export_sql

N_ROWS = 10_000
WORDS = np.array(["Bern", "Kyiv", "L'Aquila", 'say "so"', "", "Lima", None], object)


@pytest.mark.full
@pytest.mark.parametrize("kind", [DecisionTreeClassifier, DecisionTreeRegressor])
def test_fitted_estimators_asked_by_words(kind):
    """Predict numbers, words, missing values, and words that training did not have."""
    rng = np.random.default_rng(1)
    table = np.empty((N_ROWS, 3), object)
    table[:, 0], table[:, 2] = rng.normal(size=N_ROWS).round(3), rng.integers(0, 50, N_ROWS) / 4
    table[:, 1] = WORDS[rng.integers(0, WORDS.size, N_ROWS)]
    table[rng.random(N_ROWS) < 0.1, 0] = None
    y = rng.integers(0, 3, 2000)
    model = kind(max_depth=10).fit(table[:2000], y)
    table[rng.random(N_ROWS) < 0.1, 1] = "nowhere"
    expected = model.predict(table).tolist()
    module = {}
    exec(export_python(model), module)
    assert [module["predict"](row) for row in table.tolist()] == expected
    again = read_json(export_json(model))
    assert again.predict(table).tolist() == expected
    columns = {f"x{j}": table[:, j].tolist() for j in range(3)}
    for dialect, ask in (("duckdb", in_duckdb), ("sqlite", in_sqlite)):
        query = export_sql(model, dialect=dialect, table="rows")
        assert ask(query, columns) == expected
