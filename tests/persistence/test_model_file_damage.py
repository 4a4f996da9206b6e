"""Model files that are damaged, or forged: a clear ValueError, and no more memory than allowed.

Files of one tree, of several and of rules are tested.
"""

import bz2
import io
import json
import zipfile
from contextlib import suppress

import numpy as np
import pytest
from damage import MIB, at_most, change_header, change_values, npy_of_zeros, pack, unpack
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from saved_models import FRAME, fitted
from strategies import examples

from gputree import C45Classifier, DecisionTreeClassifier, DecisionTreeRegressor
from gputree.export.describe import describe
from gputree.export.text import text_lines
from gputree.persistence import container, load_model, read_saved, save_model
from gputree.persistence.container import npy_bytes

ROWS = np.random.default_rng(0)
NUMBERS = ROWS.normal(size=(60, 3))
WORDS = np.array([["a", "b"], ["b", "c"], ["c", None]] * 20, object)
SLOW = examples(60, suppress_health_check=[HealthCheck.function_scoped_fixture])

TREES = {
    "regression": DecisionTreeRegressor(max_depth=3).fit(NUMBERS, NUMBERS[:, 0]),
    "multiway": C45Classifier(pruning=None).fit(WORDS, ["x", "y", "z"] * 20),
    "subsets": DecisionTreeClassifier(max_depth=3, class_weight={"x": 2.0}).fit(
        WORDS, ["x", "y", "x", "z"] * 15
    ),
}
SEVERAL = ("boosted, costs", "boosted, winnowed", "rules, a frame", "boosted rules, a frame")


def saved(case, folder):
    path = folder / "model.gputree"
    save_model(TREES[case] if case in TREES else fitted(case), path)
    return path


@pytest.fixture(params=TREES)
def model(request, tmp_path):
    """The file of one tree."""
    return saved(request.param, tmp_path)


@pytest.fixture(params=SEVERAL)
def several(request, tmp_path):
    return saved(request.param, tmp_path)


@pytest.fixture(params=[*TREES, *SEVERAL])
def any_model(request, tmp_path):
    return saved(request.param, tmp_path)


def load_or_refuse(path):
    """Refuse a file in the way it should be, or load a whole model that predicts."""
    is_shown = is_shown_or_refused(path)
    try:
        model = load_model(path)
    except ValueError as error:
        assert str(path) in str(error)  # noqa: PT017
        return
    assert is_shown
    if hasattr(model, "tree_"):
        model.tree_.check()
    assert str(getattr(model, "rules_", ""))[:1] != "x"
    for table in (NUMBERS, WORDS, FRAME):
        names = list(getattr(model, "feature_names_in_", []))
        if model.n_features_in_ == table.shape[1] and (not names or names == list(FRAME)):
            with suppress(ValueError):  # text where another kind of column is expected
                assert len(model.predict(table)) == len(table)
                if hasattr(model, "classes_"):
                    assert np.isfinite(model.predict_proba(table)).all()


def is_shown_or_refused(path):
    """Return whether the tree of a file, whatever its parameters are, has lines."""
    try:
        shown = read_saved(path)
        return not hasattr(shown, "tree_") or bool(list(text_lines(describe(shown))))
    except ValueError as error:
        assert str(path) in str(error)  # noqa: PT017
        return False


# ------------------------------------------------------------------ damage
@SLOW
@given(data=st.data())
def test_broken_bytes(any_model, data):
    """Bytes changed, cut out, put in, or cut off."""
    content = bytearray(any_model.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(content)))
        length = data.draw(st.integers(0, 30))
        content[at : at + length] = data.draw(st.binary(max_size=30))
    if data.draw(st.booleans()):
        del content[data.draw(st.integers(0, len(content))) :]
    broken = any_model.with_name("broken")
    broken.write_bytes(content)
    load_or_refuse(broken)


@SLOW
@given(data=st.data())
def test_broken_arrays(any_model, data):
    """Whole members with values that no tree has, or of another shape: past every checksum."""
    parts = unpack(any_model)
    names = sorted(name for name in parts if name.endswith(".npy"))
    for member in data.draw(st.lists(st.sampled_from(names), min_size=1, max_size=3, unique=True)):
        if data.draw(st.booleans()):
            values = np.lib.format.read_array(io.BytesIO(parts[member]))
            parts[member] = npy_bytes(change_values(data, values))
        else:
            content = bytearray(parts[member])
            at = data.draw(st.integers(0, 127))
            content[at : at + 8] = data.draw(st.binary(max_size=12))
            parts[member] = bytes(content)
    broken = any_model.with_name("broken")
    pack(broken, parts)
    load_or_refuse(broken)


@SLOW
@given(data=st.data())
def test_broken_headers(any_model, data):
    """Any value of the header, however deep, becomes another."""
    parts = unpack(any_model)
    parts["model.json"] = change_header(data, parts["model.json"])
    broken = any_model.with_name("broken")
    pack(broken, parts)
    load_or_refuse(broken)


@pytest.mark.parametrize(
    "header",
    [
        b"{'descr': '<f8', 'fortran_order': False, 'shape': (5,), ",
        b"{'descr': '<f8', 'fortran_order': False, 'shape': (5",
        b"(" * 100,
        b"'''",
        b"{'descr': '<f8', 'fortran_order': False, 'shape': (-5,), }",
        b"{'descr': '<f8', 'fortran_order': False, 'shape': (True,), }",
        b"{'descr': ('<f8', (9, 9)), 'fortran_order': False, 'shape': (5,), }",
        b"\xff\xfe",
        b"",
    ],
)
@pytest.mark.parametrize("version", [b"\x01\x00", b"\x02\x00", b"\x03\x00", b"\x09\x09"])
def test_headers_of_arrays(model, header, version):
    """An unclosed one raised tokenize.TokenError."""
    parts = unpack(model)
    head = b"\x93NUMPY" + version + len(header).to_bytes(2 if version[0] == 1 else 4, "little")
    parts["tree/gain.npy"] = head + header + b"\0" * 40
    pack(model, parts)
    with pytest.raises(ValueError, match=r"gain (has no valid header|must be float64|of shape)"):
        load_model(model)


def test_text_nested_without_end(model):
    parts = unpack(model)
    pack(model, parts | {"model.json": b"[" * 100_000})
    with pytest.raises(ValueError, match=r"is damaged: its model.json is no JSON"):
        load_model(model)
    header = json.loads(parts["model.json"])
    deep = b'{"tuple": [' * 400 + b"]}" * 400
    text = json.dumps(header | {"params": {"max_depth": "HERE"}}).encode()
    pack(model, parts | {"model.json": text.replace(b'"HERE"', deep)})
    with pytest.raises(ValueError, match="does not hold a valid estimator"):
        load_model(model)


# ------------------------------------------------------------------- bombs
@pytest.fixture
def narrow(monkeypatch):
    """Bounds for files of kilobytes."""
    monkeypatch.setattr(container, "LEAST_BYTES", 4 * MIB)
    monkeypatch.setattr(container, "LEAST_TEXT_BYTES", MIB)


BOMBS = {
    "an array": {"tree/gain.npy": npy_of_zeros(4 * MIB)},
    "statistics": {"tree/statistics.npy": npy_of_zeros((5, MIB))},
    "a list of branches": {"tree/branch_code.npy": npy_of_zeros(8 * MIB, "<i4")},
    "the header": {"model.json": b'{"format": "gputree-model", "x": [' + b" " * 32 * MIB + b"]}"},
    "a member of no meaning": {"other": bytes(32 * MIB)},
}


@pytest.mark.usefixtures("narrow")
@pytest.mark.parametrize("case", BOMBS)
def test_what_unpacks_to_more_than_is_allowed(model, case):
    """Nothing of it is read: the claim of the archive is enough."""
    pack(model, unpack(model) | BOMBS[case])
    assert model.stat().st_size < 100_000
    with at_most(2 * MIB), pytest.raises(ValueError, match=r"unpacks to .*, [\d,]+ times its size"):
        load_model(model)


@pytest.mark.usefixtures("narrow")
@pytest.mark.parametrize(
    "name", ["trees/0/gain.npy", "trees/0/statistics.npy", "rules/class_weights.npy"]
)
def test_what_unpacks_to_more_anywhere(several, name):
    pack(several, unpack(several) | {name: npy_of_zeros(4 * MIB)})
    with at_most(2 * MIB), pytest.raises(ValueError, match=r"unpacks to .* times its size"):
        load_model(several)


@pytest.mark.usefixtures("narrow")
def test_a_header_of_its_own_bound(model):
    pack(model, unpack(model) | {"model.json": b"[" + b"[]," * MIB + b"[]]"})
    with at_most(2 * MIB), pytest.raises(ValueError, match=r"model.json unpacks to 3,145,7"):
        load_model(model)


def test_a_claim_is_not_believed(model):
    """An archive that names a small size for a long member, and one that names a large one."""
    parts = unpack(model)
    zeros = npy_of_zeros(2 * MIB)
    pack(model, parts | {"tree/gain.npy": zeros})
    content = model.read_bytes()
    for claim in (200, 128 + 40, len(zeros) // 2):
        lying = content.replace(len(zeros).to_bytes(4, "little"), claim.to_bytes(4, "little"))
        model.write_bytes(lying)
        with at_most(4 * MIB), pytest.raises(ValueError, match="is damaged: "):
            load_model(model)


@pytest.mark.usefixtures("narrow")
def test_trust_is_a_parameter(model):
    """`max_bytes` lets a model pass that unpacks to much, and forbids one that does not."""
    parts = unpack(model)
    pack(model, parts | {"other": bytes(32 * MIB)})
    with pytest.raises(ValueError, match=r"pass max_bytes=\d+ to load_model") as refusal:
        load_model(model)
    needed = int(str(refusal.value).split("max_bytes=")[1].split()[0])
    assert load_model(model, max_bytes=needed).tree_.n_nodes > 1
    with pytest.raises(ValueError, match=f"and max_bytes={needed - 1} is allowed"):
        load_model(model, max_bytes=needed - 1)


def test_methods_that_unpack_at_once_are_refused(model):
    """Refuse bz2 and lzma, whose blocks zipfile decompresses whole, however long they get."""
    parts = unpack(model)
    assert len(bz2.compress(parts["tree/gain.npy"])) > 0
    for method in (zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        pack(model, parts, method)
        with pytest.raises(ValueError, match="a method that model files do not use"):
            load_model(model)


@pytest.mark.full
def test_loading_takes_the_memory_of_the_arrays_once(tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(10_000, 2)), rng.normal(size=10_000)
    path = tmp_path / "model"
    save_model(DecisionTreeRegressor().fit(X, y), path)
    with zipfile.ZipFile(path) as archive:
        unpacked = sum(info.file_size for info in archive.infolist())
    assert unpacked < 10 * path.stat().st_size  # far from what is refused
    with at_most(2.2 * unpacked):  # its arrays, and those that the check computes
        load_model(path)


def test_a_permission_that_lacks_is_no_damage(model, monkeypatch):
    def refuse(*args, **kwargs):
        raise PermissionError("denied")

    monkeypatch.setattr(zipfile, "ZipFile", refuse)
    with pytest.raises(PermissionError, match="denied"):
        load_model(model)
