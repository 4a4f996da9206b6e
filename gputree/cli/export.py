"""`gputree export`: a model in the format of another program, or of people."""

from __future__ import annotations

import argparse
import io
import pprint
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from gputree import export
from gputree.cli.edit import add_language
from gputree.cli.reading import (
    STANDARD,
    add_tree,
    check_inputs,
    check_output,
    chosen,
    forbid_terminal,
    has_rules,
    load,
    opened_output,
    require_one,
    write_text,
)
from gputree.cli.report import UsageError, escape_unknown_characters, with_examples
from gputree.cli.tables import add_reading, add_target, tables_with_target
from gputree.cli.targets import add_weights
from gputree.errors import InputError
from gputree.export.model import averaged
from gputree.inputs.targets import forbid_targets

DEEPEST_PRINTED = 300  # a tree is nested as deep as it is; Python prints by recursion


class Format(NamedTuple):
    """Format of a file that a model is exported to."""

    # of an estimator and keyword arguments, which are those of the function of
    # `gputree.export`; or the name of that
    make: Callable[..., str | bytes] | str
    options: tuple[str, ...]  # of the command, that the format takes
    suffixes: tuple[str, ...]  # of files that are of the format where none is named
    about: str
    of_forests: bool = False  # whether it takes a whole forest


def add_export(parser: argparse.ArgumentParser) -> None:
    """Fill the parser of `gputree export`."""
    with_examples(
        parser,
        "Write a model in another format; rules as text, json or sql, of a boosted model one "
        "member (--tree), a forest in those with a star, and one tree of it in all:\n\n"
        + _table_of_formats(),
        "gputree export adult.gputree -o adult.html",
        "gputree export adult.gputree --format sql --dialect sqlite --table people",
        "gputree export iris.gputree --format c --name iris -o iris.c",
        "gputree export boosted.gputree --tree 1 -o first.html",
    )
    parser.set_defaults(run=_export)
    add = parser.add_argument
    add("model", metavar="MODEL", help="model file; - for standard input")
    add("--format", choices=list(FORMATS), metavar="NAME", help="default: by the suffix of OUT")
    add("-o", "--output", metavar="OUT", default=STANDARD, help="default, and -: standard output")
    add_tree(parser)
    _add_format_options(parser)


def _add_format_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("options of some formats")
    add = group.add_argument
    add("--dialect", choices=["duckdb", "postgres", "sqlite"], help="of sql; default: duckdb")
    add(
        "--table",
        metavar="NAME",
        help="sql: a query that adds the prediction to the rows of a table",
    )
    add(
        "--probability-of",
        metavar="CLASS",
        help="sql: the probability of a class instead of the prediction",
    )
    add(
        "--missing-rows",
        choices=["error", "largest"],
        help="where rows with missing values go to all children (c45) and the format does not "
        "support this: raise an error (default), or send them to the largest child, which changes "
        "their predictions",
    )
    add("--name", metavar="NAME", help="c: prefix of all names; default: tree")
    add("--title", metavar="TEXT", help="html")
    add_language(group)
    add(
        "--validation",
        metavar="FILE",
        nargs="+",
        help="html: other rows with the target, whose error the slider shows",
    )
    add_target(group)
    add_weights(group)
    add_reading(group, is_format_taken=True)
    add("--max-depth", type=int, metavar="N", help="text and drawings: show no deeper nodes")
    add(
        "--all-categories",
        action="store_const",
        const=True,
        help="drawings: list all categories of a long set",
    )
    add(
        "--decimals",
        type=int,
        metavar="N",
        help="decimals of thresholds and predictions in text and drawings; default: 4",
    )


def _export(arguments: argparse.Namespace) -> None:
    output: str = arguments.output
    check_output(output, arguments.model)
    name = arguments.format or _by_suffix(output)
    form = FORMATS[name]
    given = {key: getattr(arguments, _attribute(key)) for key in _OPTIONS}
    given = {key: value for key, value in given.items() if value is not None}
    for key in set(given).difference(form.options):
        raise UsageError(f"{_flag(key)} is no option of --format {name}.")
    if name in _BINARY:
        forbid_terminal(output, f"The format {name}")
    estimator = chosen(load(arguments.model), arguments.tree)
    if "validation" in given:
        check_inputs(*given["validation"])
        rows, weights = tables_with_target(estimator, arguments, given["validation"])
        given["validation"] = rows.columns, rows.target, weights
    made = _made(name, estimator, given)
    escape_unknown_characters()
    if isinstance(made, str):
        write_text(made if made.endswith("\n") else f"{made}\n", output)
        return
    with opened_output(output) as file:
        file.write(made)


def _made(name: str, estimator: Any, given: dict[str, Any]) -> str | bytes:
    if not (FORMATS[name].of_forests and averaged(estimator)):
        require_one(estimator, "export")
    if name not in _OF_TARGETS:
        advice = f"Formats of several are {', '.join(_OF_TARGETS)}."
        forbid_targets(getattr(estimator, "n_outputs_", 1), f"--format {name}", advice)
    if not has_rules(estimator):
        make = FORMATS[name].make
        return (getattr(export, make) if isinstance(make, str) else make)(estimator, **given)
    if name not in _OF_RULES:
        raise UsageError(
            f"--format {name} takes a tree, and this model has rules, which can be "
            f"{', '.join(_OF_RULES)}."
        )
    method, options = _OF_RULES[name]
    for key in set(given).difference(options):
        raise UsageError(f"{_flag(key)} is no option of --format {name} for rules.")
    return getattr(estimator.rules_, method)(**given)


def _attribute(key: str) -> str:
    """Return the name of an option: --missing names marks of missing values."""
    return "missing_rows" if key == "missing" else key


def _flag(key: str) -> str:
    return f"--{_attribute(key).replace('_', '-')}"


def _by_suffix(output: str) -> str:
    suffix = Path(output).suffix.lower()
    for name, one in FORMATS.items():
        if suffix in one.suffixes and output != STANDARD:
            return name
    if output == STANDARD:
        raise UsageError(f"--format must be one of {', '.join(FORMATS)}.")
    raise UsageError(
        f"The suffix of {output} is of no known format: add --format, one of {', '.join(FORMATS)}."
    )


def _rules(estimator: Any, **given: Any) -> str:
    rules = export.path_rules(estimator, **given)
    return "".join(f"{rule}\n" for rule in rules)


def _dict(estimator: Any, **given: Any) -> str:
    if estimator.tree_.max_depth > DEEPEST_PRINTED:
        raise InputError(
            f"The tree has depth {estimator.tree_.max_depth:,}; dictionaries are printed to depth "
            f"{DEEPEST_PRINTED}. Use --format rules or text."
        )
    return pprint.pformat(export.to_dict(estimator, **given), sort_dicts=False, width=80)


def _sql(estimator: Any, probability_of: str | None = None, **given: Any) -> str:
    if probability_of is None:
        return export.export_sql(estimator, **given)
    labels = {str(label): label for label in getattr(estimator, "classes_", [])}
    if probability_of not in labels:
        allowed = f"one of {', '.join(labels)}" if labels else "left out for a regression model"
        raise UsageError(f"--probability-of must be {allowed}. Got {probability_of!r}.")
    label = labels[probability_of]
    return export.export_sql(estimator, output="probability", probability_of=label, **given)


def _bytes(function: str, method: str) -> Callable[..., bytes]:
    """Apply a method to the result of a function of `gputree.export`."""
    return lambda estimator, **given: getattr(
        getattr(export, function)(estimator, **given), method
    )()


def _picture(kind: str) -> Callable[..., bytes]:
    def make(estimator: Any, **given: Any) -> bytes:
        from gputree.base.optional import require

        require("matplotlib", "gputree export").use("Agg")
        image = io.BytesIO()
        with warnings.catch_warnings():  # plot_tree reports all letters without a font at once
            warnings.filterwarnings("ignore", message="Glyph .* missing")
            export.plot_tree(estimator, **given).figure.savefig(image, format=kind)
        return image.getvalue()

    return make


def _json(estimator: Any) -> str:
    from gputree.persistence import export_json

    return export_json(estimator)


_READ = ("decimals",)
_DRAWN = ("max_depth", "all_categories", *_READ)
FORMATS = {
    "text": Format("export_text", ("max_depth", *_READ), (".txt",), "an indented tree"),
    "rules": Format(_rules, _READ, (), "a rule a leaf"),
    "json": Format(_json, (), (".json",), "all of the model, by a published schema", True),
    "dict": Format(_dict, _READ, (), "nested dictionaries of Python"),
    "sql": Format(
        _sql,
        ("dialect", "table", "probability_of", "missing"),
        (".sql",),
        "an expression, or a query: DuckDB, Postgres, SQLite",
        True,
    ),
    "python": Format("export_python", (), (".py",), "a module that needs nothing else", True),
    "c": Format("export_c", ("name",), (".c", ".h"), "C99 that needs nothing else", True),
    "lightgbm": Format(
        "export_lightgbm", ("missing",), (), "LightGBM's model file, which SHAP reads", True
    ),
    "treelite": Format(
        _bytes("to_treelite", "serialize_bytes"),
        ("missing",),
        (".tl",),
        "treelite's model file",
        True,
    ),
    "onnx": Format(
        _bytes("to_onnx", "SerializeToString"), ("missing",), (".onnx",), "for onnxruntime", True
    ),
    "html": Format(
        "export_html",
        ("title", "language", "validation", *_READ),
        (".html", ".htm"),
        "a page for a browser",
    ),
    "graphviz": Format(
        "export_graphviz", _DRAWN, (".dot", ".gv"), "DOT: dot -Tsvg tree.dot -o tree.svg"
    ),
    "png": Format(_picture("png"), _DRAWN, (".png",), "a picture"),
    "svg": Format(_picture("svg"), _DRAWN, (".svg",), "a drawing"),
    "pdf": Format(_picture("pdf"), _DRAWN, (".pdf",), "a page to print"),
}
_OF_TARGETS = ("text", "json", "onnx", "html", "graphviz", "png", "svg", "pdf")
_OF_RULES = {  # methods of `gputree.rules.RuleSet`
    "text": ("to_text", _READ),
    "rules": ("to_text", _READ),
    "json": ("to_json", ()),
    "sql": ("to_sql", ("dialect", "table")),
}
_BINARY = ("treelite", "onnx", "png", "pdf")
_OPTIONS = sorted({option for one in FORMATS.values() for option in one.options})


def _table_of_formats() -> str:
    width = max(map(len, FORMATS)) + 4
    return "\n".join(
        f"  {name + ' *' * one.of_forests:{width}}{one.about}" for name, one in FORMATS.items()
    )
