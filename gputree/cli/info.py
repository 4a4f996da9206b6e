"""`gputree info`: versions, devices, threads, folders."""

from __future__ import annotations

import argparse

from gputree.cli.report import with_examples


def add_info(parser: argparse.ArgumentParser) -> None:
    """Fill the parser of `gputree info`."""
    with_examples(
        parser,
        "Print what a bug report should contain: versions, devices, threads, folders.",
        "gputree info",
    )
    parser.set_defaults(run=_info)


def _info(arguments: argparse.Namespace) -> None:
    from gputree._versions import show_versions

    show_versions()
