"""Options of all tests, and `shared_fixtures`, a plugin, where tests are run."""

import pytest
from ways import WAYS, parse_ways


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--emulate",
        default="ascending",
        type=parse_ways,
        metavar="WAY[:FILL],...",
        help=f"emulate CUDA in these orders of work: {', '.join(WAYS)}. checked is a "
        "random order, with races, accesses out of bounds, undefined operations and reads of "
        "undefined memory reported. ptx runs what NVRTC makes of kernels; where no other way is "
        "named, in tests that name none, too. FILL is every byte of fresh memory, as ascending:ff.",
    )
    parser.addoption(
        "--part",
        default="0/1",
        metavar="K/M",
        help="of the files with tests that are chosen, every M-th from the K-th on. K may be any "
        "number, such as one that counts commits, so that a run of each takes turns.",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Import the package for tests, which takes two seconds, but not to hand them out (xdist)."""
    if config.getoption("dist", "no") == "no" or config.getoption("collectonly"):
        config.pluginmanager.import_plugin("shared_fixtures")
