"""Letters that no font has: the warning says which font to take."""

import warnings
from pathlib import Path

import pyarrow as pa
import pytest

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("agg")
from matplotlib import font_manager, pyplot  # noqa: E402

from gputree import DecisionTreeClassifier, save_model  # noqa: E402
from gputree.cli import main  # noqa: E402
from gputree.datasets import load_iris  # noqa: E402
from gputree.export import plot_partition, plot_tree  # noqa: E402

CHINESE = Path(__file__).parents[2] / "docs" / "zh" / "labels.otf"
NAMES = ["花瓣长", "花瓣宽"]

pytestmark = pytest.mark.filterwarnings("ignore:Glyph")


@pytest.fixture
def tree():
    iris = load_iris()
    return DecisionTreeClassifier(max_depth=2).fit(iris.data[:, 2:], iris.target)


@pytest.fixture
def only_latin(monkeypatch):
    """matplotlib's own fonts, whatever else is installed."""
    manager = font_manager.fontManager
    own = [font for font in manager.ttflist if "matplotlib" in font.fname]
    monkeypatch.setattr(manager, "ttflist", own)
    with matplotlib.rc_context({"font.family": ["sans-serif"], "font.sans-serif": ["DejaVu Sans"]}):
        yield
    pyplot.close("all")


@pytest.mark.parametrize("plot", [plot_tree, plot_partition])
def test_a_font_that_nobody_has_is_to_be_installed(only_latin, tree, plot):
    with pytest.warns(UserWarning, match="The font has no 宽瓣花长: .* Install one"):
        plot(tree, feature_names=NAMES)


def test_laying_a_tree_out_tells_no_letter_by_itself(only_latin, tree):
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        plot_tree(tree, feature_names=NAMES)
    assert [str(w.message)[:8] for w in told] == ["The font"]


def test_a_drawing_by_the_command_tells_no_letter_by_itself(only_latin, tmp_path, capsys):
    iris = load_iris()
    X = pa.table(list(iris.data[:, 2:].T), names=NAMES)
    save_model(DecisionTreeClassifier(max_depth=1).fit(X, iris.target), tmp_path / "m")
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        assert main(["export", str(tmp_path / "m"), "-o", str(tmp_path / "m.png")]) == 0
    assert [line[:26] for line in capsys.readouterr().err.splitlines()] == [
        "gputree: warning: The font"
    ]


def test_an_installed_font_is_named(only_latin, tree):
    font_manager.fontManager.addfont(CHINESE)
    with pytest.warns(UserWarning, match="Noto Sans CJK SC is installed and has them: set"):
        plot_tree(tree, feature_names=NAMES)


def test_a_font_that_is_gone_is_passed_over(only_latin, tree):
    gone = font_manager.FontEntry(fname="gone.ttf", name="Gone")
    font_manager.fontManager.ttflist.append(gone)
    with pytest.warns(UserWarning, match="The font has no"):
        plot_tree(tree, feature_names=NAMES)


def test_what_the_fonts_have_is_no_matter(only_latin, tree):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plot_tree(tree, feature_names=["µ ≤ é", "β"])
        font_manager.fontManager.addfont(CHINESE)
        matplotlib.rcParams["font.family"] = ["sans-serif", "Noto Sans CJK SC"]
        plot_tree(tree, feature_names=NAMES)
