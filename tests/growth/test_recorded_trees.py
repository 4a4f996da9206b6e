"""Trees with categories are those on record, field by field."""

import json
from dataclasses import replace

import pytest
from recorded_trees import RECORD, digests, generated_cases, grow, real_cases

CONTENT = json.loads(RECORD.read_text("utf-8"))
GENERATED, REAL = dict(generated_cases()), dict(real_cases())


def recorded(name: str) -> dict[str, str]:
    return dict(zip(CONTENT["fields"], CONTENT["trees"][name].split(), strict=True))


def check(name, case):
    expected, found = recorded(name), digests(grow(case))
    assert {field: found[field] for field in expected} == expected


@pytest.mark.full
@pytest.mark.parametrize("name", GENERATED)
def test_trees_of_generated_tables_are_those_on_record(name):
    check(name, GENERATED[name])


@pytest.mark.tables
@pytest.mark.filterwarnings("ignore:Column 'caliper' of X holds 513 numbers as text")
@pytest.mark.parametrize("name", [name for name in CONTENT["trees"] if name not in GENERATED])
def test_trees_of_real_tables_are_those_on_record(name):
    if name not in REAL:
        pytest.skip("GPUTREE_DATA names no folder with this table")
    check(name, REAL[name])


def test_the_last_bit_of_one_threshold_is_seen():
    tree = grow(GENERATED["small-whole"])
    bits = tree.threshold.copy().view("int64")
    bits[-1] ^= 1
    found, expected = digests(replace(tree, threshold=bits.view(float))), recorded("small-whole")
    assert [field for field in expected if found[field] != expected[field]] == ["threshold"]
