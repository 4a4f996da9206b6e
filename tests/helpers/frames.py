"""A data frame of columns of every type, with labels and targets."""

import numpy as np
import pandas as pd


def mixed(n=60, seed=0):
    """Numbers with missing values and ties, text, labels and targets."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "a": np.where(rng.random(n) < 0.2, np.nan, rng.normal(size=n)),
            "b": rng.integers(0, 5, n).astype(float),
            "c": rng.choice(["x", "y", "z", "w"], n),
            "d": rng.normal(size=n),
        }
    )
    y = X["d"] + (X["c"] == "x") + 0.3 * rng.normal(size=n)
    return X, np.array(["low", "mid", "high"])[np.digitize(y, [0, 1])], y.to_numpy()
