"""Trees that textbooks draw, and their figures."""

from typing import Any

import numpy as np
import pytest

from gputree import C45Classifier, ID3Classifier, datasets, load_model, save_model
from gputree.datasets import load_watermelon
from gputree.export import to_dict

LEARNERS = {"id3": ID3Classifier, "c45": C45Classifier}


def fit(learner: str, table: str, **parameters) -> tuple[Any, list[str]]:
    """A model of a table whose columns are all categories, and their names."""
    bunch = getattr(datasets, f"load_{table}")()
    every = np.ones(len(bunch.feature_names), dtype=bool)
    model = LEARNERS[learner](categorical_features=every, device="cpu", **parameters)
    return model.fit(bunch.data, bunch.target), bunch.feature_names


FISH = {"no surfacing": {0: "no", 1: {"flippers": {0: "no", 1: "yes"}}}}
LOAN = {"owns house": {"yes": "yes", "no": {"has job": {"yes": "yes", "no": "no"}}}}
GOLF = {
    "outlook": {
        "sunny": {"humidity": {"high": "no", "normal": "yes"}},
        "overcast": "yes",
        "rain": {"wind": {"strong": "no", "weak": "yes"}},
    }
}
BLACK = {"touch": {"smooth": "yes", "sticky": "no"}}
WATERMELON = {  # Zhou, figure 4.4, without the branch that has no rows
    "texture": {
        "clear": {
            "stalk": {
                "curled": "yes",
                "slightly curled": {"colour": {"green": "yes", "black": BLACK}},
                "stiff": "no",
            }
        },
        "slightly blurred": {"touch": {"smooth": "no", "sticky": "yes"}},
        "blurred": "no",
    }
}
AGE_OF_FAR_SIGHTED = {"young": "hard", "pre-presbyopic": "none", "presbyopic": "none"}
SOFT_LENSES = {
    "young": "soft",
    "pre-presbyopic": "soft",
    "presbyopic": {"prescription": {"myope": "none", "hypermetrope": "soft"}},
}
HARD_LENSES = {"myope": "hard", "hypermetrope": {"age": AGE_OF_FAR_SIGHTED}}
CONTACT_LENSES = {
    "tear rate": {
        "reduced": "none",
        "normal": {
            "astigmatism": {"no": {"age": SOFT_LENSES}, "yes": {"prescription": HARD_LENSES}}
        },
    }
}


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        ("fish", FISH),
        ("loan", LOAN),
        ("golf", GOLF),
        ("watermelon", WATERMELON),
        ("contact_lenses", CONTACT_LENSES),
    ],
)
def test_id3_trees(table, expected):
    model, names = fit("id3", table)
    assert to_dict(model, feature_names=names) == expected


@pytest.mark.parametrize(
    ("table", "entropy", "gain"),
    [
        ("fish", 0.970950594455, 0.419973094022),
        ("loan", 0.971, 0.420),
        ("golf", 0.940, 0.247),
        ("watermelon", 0.998, 0.381),
        ("contact_lenses", 1.326, 0.549),
    ],
)
@pytest.mark.parametrize("learner", LEARNERS)
def test_entropy_and_gain_of_the_root(learner, table, entropy, gain):
    tree = fit(learner, table)[0].tree_
    assert tree.impurity[0] == pytest.approx(entropy, abs=5e-4)
    assert tree.gain[0] == pytest.approx(gain, abs=5e-4)


def test_a_threshold_of_gain_ends_growth():
    """Li Hang, algorithm 5.2: the loan table's second split gains 0.918 bits, its first 0.420."""
    assert fit("id3", "loan", min_gain=0.42)[0].get_n_leaves() == 1
    assert fit("id3", "loan", min_gain=0.41)[0].get_n_leaves() == 3


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        ("loan", LOAN),
        ("golf", GOLF),
        (
            "contact_lenses",
            {
                "tear rate": {
                    "reduced": "none",
                    "normal": {
                        "astigmatism": {
                            "no": "soft",
                            "yes": {"prescription": {"myope": "hard", "hypermetrope": "none"}},
                        }
                    },
                }
            },
        ),
    ],
)
def test_c45_trees(table, expected):
    """Two branches of two rows, collapse and pessimistic pruning leave these."""
    model, names = fit("c45", table)
    assert to_dict(model, feature_names=names) == expected


# Quinlan 1993, table 2.1: outlook, temperature, humidity, windy; play?
QUINLAN_GOLF = [
    ("sunny", 75, 70, True, "play"),
    ("sunny", 80, 90, True, "don't play"),
    ("sunny", 85, 85, False, "don't play"),
    ("sunny", 72, 95, False, "don't play"),
    ("sunny", 69, 70, False, "play"),
    ("overcast", 72, 90, True, "play"),
    ("overcast", 83, 78, False, "play"),
    ("overcast", 64, 65, True, "play"),
    ("overcast", 81, 75, False, "play"),
    ("rain", 71, 80, True, "don't play"),
    ("rain", 65, 70, True, "don't play"),
    ("rain", 75, 80, False, "play"),
    ("rain", 68, 80, False, "play"),
    ("rain", 70, 96, False, "play"),
]


@pytest.fixture(scope="module")
def golf_with_a_hole() -> tuple[C45Classifier, np.ndarray]:
    """Chapter 3: the outlook of the first overcast day is unknown."""
    cells = np.array(QUINLAN_GOLF, dtype=object)
    X, y = cells[:, :-1], cells[:, -1].astype(str)
    X[5, 0] = None
    model = C45Classifier(
        pruning=None, mdl_correction=False, threshold_placement="data", device="cpu"
    )
    return model.fit(X, y), X


def test_gain_with_an_unknown_value(golf_with_a_hole):
    """Section 3.1: 13/14 of 0.961 - 0.747 bits."""
    model, _ = golf_with_a_hole
    assert model.tree_.feature[0] == 0
    assert model.tree_.gain[0] == pytest.approx(0.199, abs=5e-4)


def test_fractions_of_the_row_are_in_every_branch(golf_with_a_hole):
    """Section 3.2: 5/13, 3/13 and 5/13 of it."""
    tree = golf_with_a_hole[0].tree_
    play = {"overcast": 3 + 3 / 13, "rain": 3 + 5 / 13, "sunny": 2 + 5 / 13}
    not_play = {"overcast": 0, "rain": 2, "sunny": 3}
    expected = [[not_play[outlook], play[outlook]] for outlook in ("overcast", "rain", "sunny")]
    np.testing.assert_allclose(tree.statistics[1:4], expected, atol=1e-6)


def test_the_threshold_is_a_value_of_the_whole_table(golf_with_a_hole):
    """Section 2.4: humidity <= 75, where sunny days have 70 and 85."""
    tree = golf_with_a_hole[0].tree_
    sunny = tree.children(0)[2]
    assert (tree.feature[sunny], tree.threshold[sunny]) == (2, 75.0)


def test_an_unknown_value_is_answered_by_all_branches(golf_with_a_hole):
    """Section 3.3: sunny, humidity unknown: 44% play, 56% don't."""
    model, _ = golf_with_a_hole
    row = np.array([["sunny", 70, None, False]], dtype=object)
    np.testing.assert_allclose(model.predict_proba(row), [[0.56, 0.44]], atol=5e-3)


# ------------------------------------------------------------------ Zhou, Machine Learning
ZHOU = {
    "criterion": "gain",
    "mdl_correction": False,
    "min_samples_leaf": 1,
    "collapse": False,
    "pruning": None,
}


def test_figure_4_8_of_zhou(tmp_path):
    """Table 4.3, watermelons 3.0: by the gain; density <= 0.381 lies between 0.360 and 0.403."""
    melon = load_watermelon(version="3.0")
    model = C45Classifier(device="cpu", **ZHOU).fit(melon.data, melon.target)
    expected = {
        "texture": {
            "blurred": "no",
            "clear": {"density": {"<= 0.3815": "no", "> 0.3815": "yes"}},
            "slightly blurred": {"touch": {"smooth": "no", "sticky": "yes"}},
        }
    }
    names = melon.feature_names
    assert to_dict(model, feature_names=names) == expected
    save_model(model, tmp_path / "model")
    kept = load_model(tmp_path / "model")
    assert kept.criterion == "gain"
    assert to_dict(kept, feature_names=names) == expected
    by_ratio = C45Classifier(device="cpu", **ZHOU | {"criterion": "gain_ratio"})
    assert to_dict(by_ratio.fit(melon.data, melon.target), feature_names=names) != expected


def test_gains_of_table_4_4_of_zhou():
    """Watermelons 2.0 alpha: of the known rows, times their fraction."""
    melon = load_watermelon(version="2.0 alpha")
    gains = [
        C45Classifier(**ZHOU).fit(melon.data[:, [f]], melon.target).tree_.gain[0] for f in range(6)
    ]
    np.testing.assert_allclose(gains, [0.252, 0.171, 0.145, 0.424, 0.289, 0.006], atol=6e-4)
