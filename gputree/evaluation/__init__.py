"""Quality of a model's predictions: measures over rows, and reports of them."""

from gputree.evaluation.predictions import (
    AS_WEKA,
    Answers,
    PerClass,
    answers_by_target,
    confusion_rows,
    in_blocks,
    measures_of_classes,
    pooled,
    score_rows,
)
from gputree.evaluation.reports import (
    Lines,
    Report,
    TableSums,
    report,
    rows_of,
    table_texts,
    usage_lines,
)
from gputree.evaluation.sums import Measure, Moments, Sums

__all__ = [
    "AS_WEKA",
    "Answers",
    "Lines",
    "Measure",
    "Moments",
    "PerClass",
    "Report",
    "Sums",
    "TableSums",
    "answers_by_target",
    "confusion_rows",
    "in_blocks",
    "measures_of_classes",
    "pooled",
    "report",
    "rows_of",
    "score_rows",
    "table_texts",
    "usage_lines",
]
