"""`gputree check`: compare the trees of a device with the trees of the CPU, bit for bit."""

from __future__ import annotations

import argparse

from gputree.base.texts import aligned
from gputree.cli.report import DIFFERENT, escape_unknown_characters, say, with_examples
from gputree.errors import DeviceError


def add_check(parser: argparse.ArgumentParser) -> None:
    """Fill the parser of `gputree check`."""
    with_examples(
        parser,
        "Grow small trees that use every kernel on a device and on the CPU, and compare them bit "
        f"for bit. The exit status is {DIFFERENT} where a tree differs.",
        "gputree check",
        "gputree check --device cpu",
    )
    parser.set_defaults(run=_check)
    parser.add_argument(
        "--device",
        metavar="NAME",
        default="cuda",
        help="cuda (default), or one by its number, as cuda:1: the CUDA device against the CPU; "
        "cpu: many threads against one",
    )


def _check(arguments: argparse.Namespace) -> int:
    from gputree.check import check_device

    escape_unknown_characters()
    if arguments.device.startswith("cuda"):
        _show_requirements(arguments.device)
    report = check_device(arguments.device, tell=lambda line: print(line, flush=True))
    print(f"\n{report.verdict}")
    if report.passed:
        return 0
    if arguments.device != "cpu":
        say(f"--device auto does not use this device; --device {arguments.device} uses it anyway")
    return DIFFERENT


def _show_requirements(device: str) -> None:
    """Print what a CUDA device needs; all that is missing is one error."""
    from gputree.backends.cuda import machine

    needs = machine.requirements(device)
    print(aligned({need.name: need.found or "missing" for need in needs}), end="\n\n", flush=True)
    problems = [str(need.problem) for need in needs if need.problem is not None]
    if not problems:
        return
    if not problems[0].startswith(machine.NEEDS):  # a number that no device has
        raise DeviceError(problems[0])
    missing = [
        problem.removeprefix(machine.NEEDS).removesuffix(machine.INSTEAD).strip(" .")
        for problem in problems
    ]
    raise DeviceError(
        f"a CUDA device needs {'; and '.join(missing)}. Trees are grown on the CPU without one; "
        "gputree check --device cpu checks that."
    )
