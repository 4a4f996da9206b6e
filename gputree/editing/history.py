"""Edits as JSON: each an object with the path of its node, so that it fits trees that are alike.

    {"edit": "prune", "paths": [[0, 1], [1]]}
    {"edit": "split", "path": [0], "column": "income", "threshold": 4000.0}
    {"edit": "split", "path": [1], "column": "purpose", "categories": ["car", "tv"]}
    {"edit": "grow", "path": [1, 0], "limits": {"max_depth": 6}}

A path lists the ordinals of the children from the root down.
"""

import json
from dataclasses import dataclass
from typing import Any

from gputree.errors import InputError, InputTypeError

Edit = dict[str, Any]

# Fields of each kind of edit, those that it may lack after those that it has.
_FIELDS = {
    "prune": ({"paths"}, set()),
    "split": ({"path", "column"}, {"threshold", "categories"}),
    "grow": ({"path"}, {"limits"}),
}


@dataclass(frozen=True)
class Skipped:
    """An edit that no longer applies to a tree, and the reason."""

    edit: Edit
    reason: str

    def __str__(self) -> str:
        return f"{json.dumps(self.edit, ensure_ascii=False)}: {self.reason}"


def read_history(history: Any) -> list[Edit]:
    """Return the edits of a history, a list or its JSON text, once they are validated.

    ValueError for an edit of no known kind, or that lacks a field or has others.
    """
    if isinstance(history, str):
        try:
            history = json.loads(history)
        except (ValueError, RecursionError) as error:
            raise InputError(f"The history is no JSON: {error}") from error
    if not isinstance(history, list):
        raise InputTypeError(
            "A history is a list of edits, as TreeEditor.history is, or its JSON text, got "
            f"{type(history).__name__}."
        )
    for place, edit in enumerate(history):
        if problem := _problem(edit):
            raise InputError(f"Edit {place} of the history {problem}.")
    return history


def forbid_objects(limits: dict[str, Any]) -> None:
    """Raise TypeError for a limit that JSON has no form of, such as a generator of NumPy."""
    for name, value in limits.items():
        try:
            json.dumps(value)
        except TypeError as error:
            raise InputTypeError(
                f"The history keeps limits as JSON, which has no {type(value).__name__}: pass "
                f"{name!r} as a number or a text."
            ) from error


def _problem(edit: Any) -> str:
    """Describe the fault of an edit; empty without any."""
    if not isinstance(edit, dict) or not isinstance(edit.get("edit"), str):
        return "is no object with a field 'edit'"
    kind = edit["edit"]
    if kind not in _FIELDS:
        return f"is of kind {kind!r}, and must be of one of {sorted(_FIELDS)}"
    needed, others = _FIELDS[kind]
    found = edit.keys() - {"edit"}
    if found - needed - others or needed - found:
        return f"has the fields {sorted(found)}, and {kind!r} takes {sorted(needed | others)}"
    paths = edit["paths"] if kind == "prune" else [edit["path"]]
    if not isinstance(paths, list) or not all(map(_is_path, paths)):
        return "has a path that is no list of ordinals of children"
    if not isinstance(edit.get("limits", {}), dict):
        return "has limits that are no object"
    if not isinstance(edit.get("categories", []), list):
        return "has categories that are no list"
    threshold = edit.get("threshold", 0)
    if not isinstance(threshold, (int, float, str)) or isinstance(threshold, bool):
        return "has a threshold that is neither a number nor a category"
    if kind == "split" and type(edit["column"]) not in (int, str):
        return "has a column that is neither a name nor a number"
    return ""


def _is_path(path: Any) -> bool:
    return isinstance(path, list) and all(type(place) is int and place >= 0 for place in path)
