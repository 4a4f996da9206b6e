"""Defaults that docstrings and the help of the command name are those of the code."""

import argparse
import ast
import inspect
import re

import pytest
from test_docstrings import public_names

from gputree import C45Classifier
from gputree.check import check_device
from gputree.cli import _COMMANDS, _parser
from gputree.rules import C45Rules

DOCUMENTED = re.compile(r"^(\w+(?:, \w+)*) : .*?\bdefault=(.+)$", re.MULTILINE)
PUBLIC = {**public_names(), "check_device": check_device}
del PUBLIC["TreePage"]  # has the parameters of str
# Boosting has the parameters of its trees and rules, which these document.
FAMILY = {**dict.fromkeys(("BoostedC45Classifier",), (C45Classifier,)),
          "BoostedC45Rules": (C45Classifier, C45Rules), "to_rules": (C45Rules,)}  # fmt: skip


def documented(thing):
    """Texts of defaults by parameter; a type may go on in the next line."""
    section = (inspect.getdoc(thing) or "").partition("\nParameters\n---")[2]
    section = re.split(r"\n\w+\n---+\n", section)[0]
    found = DOCUMENTED.findall(re.sub(r",\n\s+", ", ", section))
    return {name: text.strip() for names, text in found for name in names.split(", ")}


def value_of(text):
    try:
        return ast.literal_eval(text)
    except (SyntaxError, ValueError):
        return text


def given_defaults(thing):
    parameters = inspect.signature(thing).parameters.values()
    return {p.name: p.default for p in parameters if p.default is not p.empty}


@pytest.mark.parametrize("name", [name for name, thing in PUBLIC.items() if documented(thing)])
def test_documented_defaults(name):
    texts = documented(PUBLIC[name])
    given = given_defaults(PUBLIC[name])
    assert {p: value_of(text) for p, text in texts.items()} == {p: given[p] for p in texts}


@pytest.mark.parametrize("name", [name for name, thing in PUBLIC.items() if hasattr(thing, "fit")])
def test_estimators_document_every_default(name):
    texts = {}
    for thing in (*FAMILY.get(name, ()), PUBLIC[name]):
        texts |= documented(thing)
    for parameter, default in given_defaults(PUBLIC[name]).items():
        assert value_of(texts[parameter]) == default, parameter


@pytest.mark.parametrize("command", _COMMANDS)
def test_numbers_in_the_help(command):
    """Find the number after "default:" among the defaults of public names with the option."""
    parsers = next(
        action for action in _parser([command])._actions
        if isinstance(action, argparse._SubParsersAction)
    )  # fmt: skip
    for action in parsers.choices[command]._actions:
        named = re.search(r"default: (\d[\d.]*\d|\d)", action.help or "")
        if named is not None:
            parameters = {action.dest, action.dest.removeprefix("rule_")}
            taken = {given_defaults(thing).get(p) for thing in PUBLIC.values() for p in parameters}
            known = taken if action.default is None else {action.default}
            assert float(named[1]) in known, action.option_strings
