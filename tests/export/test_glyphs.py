"""Letters that a font lacks are drawn with an installed one; a warning names those of none."""

import io
import warnings
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("agg")
from matplotlib import font_manager, pyplot  # noqa: E402

from gputree import DecisionTreeClassifier, save_model  # noqa: E402
from gputree.cli import main  # noqa: E402
from gputree.datasets import load_iris  # noqa: E402
from gputree.export import plot_importance, plot_partition, plot_tree  # noqa: E402

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
    bundled = [font for font in manager.ttflist if "matplotlib" in font.fname]
    monkeypatch.setattr(manager, "ttflist", bundled)
    monkeypatch.setattr(font_manager, "findSystemFonts", list)
    with matplotlib.rc_context({"font.family": ["sans-serif"], "font.sans-serif": ["DejaVu Sans"]}):
        yield
    pyplot.close("all")


@pytest.mark.parametrize("plot", [plot_tree, plot_partition])
def test_a_font_that_nobody_has_is_to_be_installed(only_latin, tree, plot):
    with pytest.warns(UserWarning, match="No installed font has 宽瓣花长: .* Install one"):
        plot(tree, feature_names=NAMES)


def test_laying_a_tree_out_tells_no_letter_by_itself(only_latin, tree):
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        plot_tree(tree, feature_names=NAMES)
    assert [str(w.message)[:17] for w in told] == ["No installed font"]


def test_a_drawing_by_the_command_tells_no_letter_by_itself(only_latin, tmp_path, capsys):
    iris = load_iris()
    X = pa.table(list(iris.data[:, 2:].T), names=NAMES)
    save_model(DecisionTreeClassifier(max_depth=1).fit(X, iris.target), tmp_path / "m")
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        assert main(["export", str(tmp_path / "m"), "-o", str(tmp_path / "m.png")]) == 0
    assert [line[:35] for line in capsys.readouterr().err.splitlines()] == [
        "gputree: warning: No installed font"
    ]


@pytest.fixture(params=["known", "since", "medium"])
def with_chinese(request, only_latin, monkeypatch):
    """A font that matplotlib knows, one installed since its list was made, one of medium weight."""
    if request.param == "since":
        monkeypatch.setattr(font_manager, "findSystemFonts", lambda: [str(CHINESE)])
        return
    font_manager.fontManager.addfont(CHINESE)
    if request.param == "medium":
        fonts = font_manager.fontManager.ttflist
        fonts[-1] = replace(fonts[-1], weight=500)


def test_letters_are_drawn_with_an_installed_font(with_chinese, tree, caplog):
    ax, plane = plot_tree(tree, feature_names=NAMES), plot_partition(tree, feature_names=NAMES)
    bars = plot_importance(tree, feature_names=NAMES)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # of each glyph that is missing
        for axes in (ax, plane, bars):
            axes.figure.savefig(io.BytesIO(), dpi=20)
    assert not caplog.records
    assert plane.xaxis.label.get_fontfamily() == ["sans-serif", "Noto Sans CJK SC"]
    assert plane.get_title() == ""
    assert {tuple(t.get_fontfamily()) for t in plane.get_xticklabels()} == {("sans-serif",)}


@pytest.mark.parametrize("with_chinese", ["medium"], indirect=True)
def test_the_command_draws_with_the_font_that_is_there(with_chinese, tmp_path, capsys):
    iris = load_iris()
    X = pa.table(list(iris.data[:, 2:].T), names=NAMES)
    save_model(DecisionTreeClassifier(max_depth=1).fit(X, iris.target), tmp_path / "m")
    for suffix in ("png", "svg", "pdf"):
        assert main(["export", str(tmp_path / "m"), "-o", str(tmp_path / f"m.{suffix}")]) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("with_chinese", ["known"], indirect=True)
def test_letters_of_two_scripts_take_two_fonts(with_chinese, monkeypatch):
    """The font that has the most letters comes first."""
    from gputree.export import palette

    thai = font_manager.FontEntry(fname="thai.ttf", name="Thai")
    font_manager.fontManager.ttflist.append(thai)
    of_file = palette._letters_of
    of_thai = frozenset("ก")
    monkeypatch.setattr(
        palette,
        "_letters_of",
        lambda f, some: some & of_thai if f == "thai.ttf" else of_file(f, some),
    )
    names, left = palette._families_with(frozenset("花瓣ก\u1200"))
    assert names == ["Noto Sans CJK SC", "Thai"]
    assert left == {"\u1200"}


def test_a_font_that_is_gone_is_passed_over(only_latin, tree):
    gone = font_manager.FontEntry(fname="gone.ttf", name="Gone")
    font_manager.fontManager.ttflist.append(gone)
    with pytest.warns(UserWarning, match="No installed font has"):
        plot_tree(tree, feature_names=NAMES)


def test_what_the_fonts_have_is_no_matter(only_latin, tree):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plot_tree(tree, feature_names=["µ ≤ é", "β"])
        font_manager.fontManager.addfont(CHINESE)
        matplotlib.rcParams["font.family"] = ["sans-serif", "Noto Sans CJK SC"]
        plot_tree(tree, feature_names=NAMES)
