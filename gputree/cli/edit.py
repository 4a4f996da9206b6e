"""`gputree edit`: other splits, regrown and pruned nodes of a saved tree, by its training rows."""

from __future__ import annotations

import argparse
import json
import re
import sys
import webbrowser
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gputree.base.texts import aligned, hint
from gputree.cli.reading import (
    STANDARD,
    check_inputs,
    check_output,
    forbid_several,
    forbid_terminal,
    load,
    save,
)
from gputree.cli.report import (
    UsageError,
    escape_unknown_characters,
    parse_names,
    say,
    size,
    with_examples,
)
from gputree.cli.tables import add_reading, add_target, tables_with_target
from gputree.cli.targets import add_weights
from gputree.cli.training import files_of
from gputree.errors import InputError
from gputree.export.model import LANGUAGES
from gputree.inputs.targets import forbid_targets

if TYPE_CHECKING:
    from gputree.editing import TreeEditor


def add_edit(parser: argparse.ArgumentParser) -> None:
    """Fill the parser of `gputree edit`."""
    with_examples(
        parser,
        "Edit a saved tree over the rows that it was grown on. Edits are applied in the order of "
        "the options. Nodes have the numbers that are printed where there is no -o; a node keeps "
        "its number, and those that an edit makes get the next ones. The model keeps the edits.",
        "gputree edit iris.gputree --data iris.csv",
        'gputree edit a.gputree --data a.csv --split "2: size <= 5" -o b.gputree',
        "gputree edit a.gputree --data a.csv --grow 5 --prune 9 -o b.gputree",
        "gputree edit next.gputree --data next.csv --replay b.gputree -o c.gputree",
        "gputree edit a.gputree --data a.csv --browser -o b.gputree",
    )
    parser.set_defaults(run=_edit, edits=[])
    parser.add_argument("model", metavar="MODEL", help="model file; - for standard input")
    add_rows(parser, required=True)
    parser.add_argument("--prune", action=_Edit, metavar="NODE,...", help="make these nodes leaves")
    parser.add_argument(
        "--split",
        action=_Edit,
        metavar="TEXT",
        help="split a node in place of what is below it: 'NODE: COLUMN <= NUMBER', "
        "'NODE: COLUMN in A,B' (the categories of the first child), or 'NODE: COLUMN' for the "
        "best cut of the column",
    )
    parser.add_argument(
        "--grow",
        action=_Edit,
        metavar="TEXT",
        help="grow a node again: 'NODE', or with limits 'NODE: max_depth=6,min_samples_leaf=20'; "
        "exclude=COLUMN, which may be repeated, leaves a column out",
    )
    parser.add_argument(
        "--replay",
        action=_Edit,
        metavar="FILE",
        help="apply the edits that a model has, or a file of JSON (show --history prints it)",
    )
    parser.add_argument(
        "--validation",
        metavar="FILE",
        nargs="+",
        help="other rows, whose losses the browser shows",
    )
    parser.add_argument(
        "--browser",
        action="store_true",
        help="show the tree in the browser, where it is edited; saved to -o on request. Ends with "
        "the page, or Ctrl-C",
    )
    add_language(parser)
    about = "model file to write; - for standard output; default: print the tree"
    parser.add_argument("-o", "--output", metavar="OUT", help=about)
    add_target(parser)
    add_weights(parser)
    add_reading(parser)


def add_rows(parser: Any, required: bool = False) -> None:
    """Add `--data`, the rows of a tree that is edited."""
    parser.add_argument(
        "--data",
        metavar="FILE",
        nargs="+",
        required=required,
        help="the table that the tree was grown on; several files as for train",
    )


def add_language(parser: Any) -> None:
    """Add `--language` of pages."""
    parser.add_argument(
        "--language",
        choices=LANGUAGES,
        help="of the labels of the page; default: that of the browser",
    )


class _Edit(argparse.Action):
    """Keeps edits in the order of the command line."""

    def __call__(self, _: Any, namespace: Any, values: Any, option: str | None = None) -> None:
        namespace.edits = [*namespace.edits, (self.dest, values)]


def editor_of(arguments: argparse.Namespace, command: str) -> TreeEditor:
    """An editor of the model of a command line, over the rows of its table."""
    from gputree.editing import TreeEditor
    from gputree.editing.nodes import OtherRowsError

    files = files_of(arguments.data)
    check_inputs(arguments.model, *files)
    estimator = load(arguments.model)
    forbid_several(estimator, command)
    n_outputs = getattr(estimator, "n_outputs_", 1)
    forbid_targets(n_outputs, "An edited tree", "Fit one estimator a target.")
    table, weight = tables_with_target(estimator, arguments, files)
    validation = None
    if getattr(arguments, "validation", None):
        rows, weights = tables_with_target(estimator, arguments, arguments.validation)
        validation = rows.columns, rows.target, weights
    try:
        return TreeEditor(estimator, table.columns, table.target, weight, validation)
    except OtherRowsError as error:
        raise UsageError(
            f"{', '.join(files)} does not have the rows that {arguments.model} was trained on. "
            "--data takes the table of train; for another one train a model, and edit it with "
            "--replay."
        ) from error


def _edit(arguments: argparse.Namespace) -> None:
    check_output(arguments.output, arguments.model, *files_of(arguments.data))
    if arguments.browser and arguments.output in (None, STANDARD):
        raise UsageError("--browser takes -o, the model file that the page saves to.")
    forbid_terminal(arguments.output, "A model file")
    edits = [(kind, text, _APPLIED[kind][0](text)) for kind, text in arguments.edits]
    editor = editor_of(arguments, "edit")
    before = size(editor.estimator.tree_)
    for kind, text, found in edits:
        try:
            _APPLIED[kind][1](editor, found)
        except InputError as error:
            raise InputError(f"--{kind} {text}: {error}") from error
    escape_unknown_characters()
    if arguments.browser:
        return _serve(editor, arguments)
    if arguments.output is None:
        print(editor, end="")
        return
    save(editor.estimator, arguments.output)
    name = "standard output" if arguments.output == STANDARD else arguments.output
    lines = {"before": before, "after": size(editor.estimator.tree_), "model": name}
    print(aligned(lines), file=sys.stderr if arguments.output == STANDARD else sys.stdout)


def _serve(editor: TreeEditor, arguments: argparse.Namespace) -> None:
    """Serve the tree to the browser, which edits it, until the page is closed."""
    from gputree.editing.server import EditingServer, EditingSession

    output: str = arguments.output

    def save_edited(estimator: Any) -> str:
        save(estimator, output)
        return f"Saved to {output}."

    session = EditingSession(editor, save_edited)
    with EditingServer(session, f"{arguments.model}, edited", arguments.language) as server:
        say(f"the tree is at {server.address} (closing the page, or Ctrl-C, ends this command)")
        webbrowser.open(server.address)
        with suppress(KeyboardInterrupt):
            server.serve_forever()
    if not session.is_saved:
        say(f"the last edits were not saved to {output}")


def node_number(text: str) -> int:
    """Return the number of a node."""
    if not text.strip().isdigit():
        raise UsageError(f"A node is named by its number, got {text!r}.")
    return int(text)


def _parse_split(text: str) -> tuple[int, str]:
    node, colon, condition = text.partition(":")
    if not colon or not condition.strip():
        raise UsageError(f"--split takes 'NODE: COLUMN <= NUMBER' or the like, got {text!r}.")
    return node_number(node), condition.strip()


def _parse_limits(text: str) -> tuple[int, dict[str, Any]]:
    node, _, rest = text.partition(":")
    limits: dict[str, Any] = {}
    for item in filter(None, map(str.strip, rest.split(","))):
        name, equals, value = item.partition("=")
        if equals and name.strip() == "exclude":
            limits.setdefault("exclude", []).append(value.strip())
            continue
        try:
            limits[name.strip().replace("-", "_")] = json.loads(value)
        except ValueError:
            equals = ""
        if not equals:
            raise UsageError(f"--grow takes limits as max_depth=6, got {item!r}.")
    return node_number(node), limits


def _read_edits(file: str) -> Any:
    if not file.lower().endswith(".json"):
        return getattr(load(file), "edits_", [])
    try:
        found = json.loads(Path(file).read_text("utf-8"))
    except ValueError as error:
        raise InputError(f"{file} is no JSON: {error}") from error
    return found.get("edits", []) if isinstance(found, dict) else found  # as export_json has them


def _split(editor: TreeEditor, given: tuple[int, str]) -> None:
    node, condition = given
    estimator = editor.estimator
    names = sorted(map(str, estimator.feature_names_in_), key=len, reverse=True)
    for name in names:
        match = re.fullmatch(r"\s*(?:(<=|in\b|=)\s*(.+?)\s*)?", condition.removeprefix(name))
        if not condition.startswith(name) or match is None:
            continue
        operator, operand = match.groups()
        if operator is None:
            return editor.split(node, name)
        if operator == "<=":
            return editor.split(node, name, threshold=_number(operand))
        words = estimator.columns_.categories[estimator.feature_names_in_.tolist().index(name)]
        known = {} if words is None else {str(word): word for word in words.tolist()}
        listed = [operand] if operator == "=" else parse_names(operand.strip("{}"))
        return editor.split(node, name, categories=[known.get(word, word) for word in listed])
    near = hint(re.split(r"\s*(?:<=|=|\bin\b)", condition)[0], names)
    raise InputError(f"{condition!r} names no column of the model, or no test of one.{near}")


def _number(text: str) -> float | str:
    """A number, or the last of ordered categories."""
    try:
        return float(text)
    except ValueError:
        return text


def _replay(editor: TreeEditor, edits: Any) -> None:
    for skipped in editor.apply(edits):
        say(f"warning: not applied: {skipped}")


_APPLIED: dict[str, tuple[Any, Any]] = {
    "prune": (
        lambda text: list(map(node_number, text.split(","))),
        lambda editor, nodes: editor.prune(nodes),
    ),
    "split": (_parse_split, _split),
    "grow": (_parse_limits, lambda editor, given: editor.grow(given[0], **given[1])),
    "replay": (_read_edits, _replay),
}
