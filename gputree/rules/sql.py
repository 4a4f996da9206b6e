"""Rules as one CASE expression of SQL."""

from typing import Literal

import numpy as np

from gputree.base.dtypes import Floats
from gputree.export.model import Names
from gputree.export.sql import forbid_twins
from gputree.export.sql_writer import DIALECTS, Literals
from gputree.rules.conditions import Condition, Rules

Output = Literal["prediction", "confidence", "rule"]


def write_sql(
    names: Names,
    rules: Rules,
    default: int,
    confidence: Floats,
    dialect: str,
    output: Output,
    table: str | None,
) -> str:
    """Write the expression, or the query of a table; see `gputree.rules.RuleSet.to_sql`."""
    forbid_twins(names)
    writer = Literals(names, DIALECTS[dialect])
    predictions = _answers(writer, rules, default, confidence, output)
    tests = [_test(writer, condition) for condition in rules.conditions]
    lines = [
        f"  WHEN {' AND '.join(tests[i] for i in rules.of(rule))} THEN {prediction}"
        for rule, prediction in enumerate(predictions[:-1])
    ]
    expression = "\n".join(["CASE", *lines, f"  ELSE {predictions[-1]}", "END"])
    if not lines:
        expression = predictions[-1]
    if table is None:
        return f"{expression}\n"
    name = writer.dialect.name
    return f"SELECT *,\n{expression} AS {name(output)}\nFROM {name(table)};\n"


def _answers(
    writer: Literals, rules: Rules, default: int, confidence: Floats, output: Output
) -> list[str]:
    """Literals of the output of each rule, and last of no rule."""
    if output == "rule":
        return [*map(str, range(1, rules.label.size + 1)), "0"]
    if output == "confidence":
        return [*map(writer.number, confidence.tolist()), "NULL"]
    assert writer.names.classes is not None
    labels = writer.names.classes.tolist()
    return [writer.literal(labels[c]) for c in [*rules.label.tolist(), default]]


def _test(writer: Literals, condition: Condition) -> str:
    """Write a condition that is true for the rows that satisfy it; false or NULL for others."""
    condition = condition.as_set(writer.names)
    column, is_missing = writer.columns[condition.feature], writer.is_missing(condition.feature)
    if condition.kind == "missing" and condition.codes:
        levels = ", ".join(_words(writer, condition))
        return f"({is_missing} OR {column} NOT IN ({levels}))"
    if condition.kind == "missing":
        return f"({is_missing})"
    if condition.kind == "present":
        return f"NOT ({is_missing})"
    if condition.kind == "in":
        return f"{column} IN ({', '.join(_words(writer, condition))})"
    number = writer.dialect.as_double.format(column)
    test = f"{number} {condition.kind} {writer.number(condition.threshold)}"
    # in databases NaN is greater than all numbers
    return test if condition.kind == "<=" else f"{test} AND NOT ({is_missing})"


def _words(writer: Literals, condition: Condition) -> list[str]:
    """Write the categories of a condition."""
    return writer.literals(condition.feature, np.array(condition.codes, np.int32))
