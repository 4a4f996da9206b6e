"""The model file: what is written comes back, and damage is reported, never guessed at."""

import errno
import io
import json
import os
import re
import zipfile
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest
from damage import pack, unpack
from hand_made_trees import make_tree

from gputree import C45Classifier
from gputree.base.dtypes import BRANCH_SPLIT, MISSING_STOPS, NO_FEATURE, NO_THRESHOLD
from gputree.persistence import FORMAT_VERSION, Contents, read_contents, write_contents
from gputree.persistence.container import npy_bytes
from gputree.persistence.trees import ARRAYS, BOUNDS, SOFT
from gputree.tree import Tree

MODEL_FILES = Path(__file__).with_name("model_files")  # one of each format version
HEADER = {"algorithm": "DecisionTreeClassifier", "note": "größer ≤", "params": {"max_depth": None}}


def small_tree() -> Tree:
    """A stump on column 1 of 3 whose second child splits by a column of 4 categories."""
    return make_tree(
        [2, 0, 2, 0, 0],
        task="classification",
        criterion="gini",
        n_features=3,
        split_kind=[1, 0, BRANCH_SPLIT, 0, 0],
        feature=[1, NO_FEATURE, 2, NO_FEATURE, NO_FEATURE],
        threshold=[0.1 + 0.2] + [NO_THRESHOLD] * 4,
        missing_child=[1, MISSING_STOPS, 0, MISSING_STOPS, MISSING_STOPS],
        weight=[10.0, 4, 6, 3, 3],
        n_rows=[10, 4, 6, 3, 3],
        statistics=[[5.0, 5], [4, 0], [1, 5], [1, 2], [0, 3]],
        impurity=[0.5, 0, 10 / 36, 4 / 9, 0],
        gain=[1 / 3, 0, 1 / 18, 0, 0],
        branch_begin=[0, 0, 0, 0, 1],
        branch_end=[0, 0, 0, 1, 3],
        branch_code=[0, 3, 1],
    )


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "tree.gputree"
    write_contents(path, Contents(HEADER, [small_tree()]), False)
    return path


def rewrite(path, change):
    """Write the archive anew with its members passed through `change(dict)`."""
    members = unpack(path)
    change(members)
    pack(path, members)


def edit_header(path, **changes):
    def change(members):
        header = json.loads(members["model.json"]) | changes
        members["model.json"] = json.dumps(header).encode()

    rewrite(path, change)


def edit_array(path, name, array):
    rewrite(path, lambda members: members.update({f"tree/{name}.npy": npy_bytes(array)}))


def test_round_trip(model):
    header, (tree,), _ = read_contents(model)
    assert tree.equals(small_tree())
    assert HEADER.items() <= header.items()
    assert header["format"] == "gputree-model"
    assert header["format_version"] == 3  # bounds are not written where there are none
    assert all(getattr(tree, name).flags.writeable for name in ARRAYS)


def held_tree():
    """Return the small tree with bounds on its predictions."""
    return small_tree().within(np.full(5, -np.inf), np.array([np.inf, 0.25, 1.0, 0.5, 1.0]))


def test_bounds_of_answers_make_a_file_of_version_4(tmp_path):
    tree, held = small_tree(), held_tree()
    write_contents(tmp_path / "held.gputree", Contents(HEADER, [held]), False)
    header, (found,), _ = read_contents(tmp_path / "held.gputree")
    assert header["format_version"] == 4
    assert found.equals(held)
    assert not found.equals(tree)


def soft_tree():
    """The small tree with smoothed shares and a soft threshold."""
    tree = small_tree()
    soft = tree.threshold - 0.5 * (np.arange(5) == 0), tree.threshold + 0.25 * (np.arange(5) == 0)
    return replace(tree, smoothing=1.0, soft_lower=soft[0], soft_upper=soft[1])


@pytest.mark.parametrize(
    "parts", [{}, {"soft_lower": None, "soft_upper": None}, {"smoothing": 0.0}]
)
def test_smoothed_shares_and_soft_thresholds_make_a_file_of_version_5(parts, tmp_path):
    tree = replace(soft_tree(), **parts)
    write_contents(tmp_path / "soft.gputree", Contents(HEADER, [tree]), False)
    header, (found,), _ = read_contents(tmp_path / "soft.gputree")
    assert header["format_version"] == 5
    assert found.equals(tree)
    assert not found.equals(small_tree())


def test_files_of_older_releases_are_read():
    for version in range(1, 6):  # of one tree
        expected = {4: held_tree, 5: soft_tree}.get(version, small_tree)()
        header, (tree,), _ = read_contents(MODEL_FILES / f"version_{version}.gputree")
        assert header["format_version"] == version
        assert header["algorithm"] == "DecisionTreeClassifier"
        assert tree.equals(expected)


def test_every_array_of_the_tree_is_in_the_file():
    others = {"task", "criterion", "n_features", "smoothing", "target_classes"}
    names = {field.name for field in fields(Tree)} - others
    assert ARRAYS.keys() | BOUNDS.keys() | SOFT.keys() == names
    tree = C45Classifier().fit([["a"], ["b"]] * 4, [0, 1] * 4).tree_
    for name, (dtype, n_dimensions) in ARRAYS.items():
        assert getattr(tree, name).dtype == dtype
        assert getattr(tree, name).ndim == n_dimensions


def test_numpy_alone_can_read_the_file(model):
    with zipfile.ZipFile(model) as archive, archive.open("tree/threshold.npy") as member:
        np.testing.assert_array_equal(np.lib.format.read_array(member), small_tree().threshold)


def test_equal_models_are_equal_bytes(model, tmp_path):
    write_contents(tmp_path / "again", Contents(HEADER, [small_tree()]), False)
    assert (tmp_path / "again").read_bytes() == model.read_bytes()


def test_big_endian_arrays_are_converted(model):
    edit_array(model, "threshold", small_tree().threshold.astype(">f8"))
    assert read_contents(model).trees[0].equals(small_tree())


def test_a_flipped_byte_never_changes_the_tree(model):
    content = model.read_bytes()
    told = 0
    for position in range(0, len(content), 7):
        damaged = bytearray(content)
        damaged[position] ^= 0xFF
        model.write_bytes(damaged)
        try:
            header, (tree,), _ = read_contents(model)
        except ValueError:
            told += 1
        else:  # a byte that means nothing, such as a member's date
            assert tree.equals(small_tree())
            assert HEADER.items() <= header.items()
    assert told > len(content) / 7 / 2


@pytest.mark.parametrize("content", [b"", b"not a model", b"PK\x03\x04" + b"\0" * 100])
def test_not_a_model_file(tmp_path, content):
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(ValueError, match="not a gputree model file"):
        read_contents(tmp_path / "file")


def test_json_is_read_by_another(tmp_path):
    (tmp_path / "tree.json").write_text("{}")
    with pytest.raises(ValueError, match=r"truncated\. JSON is read by read_json"):
        read_contents(tmp_path / "tree.json")


def test_another_zip(tmp_path):
    np.savez(tmp_path / "other.npz", a=np.arange(3))
    with pytest.raises(ValueError, match=r"it holds no model\.json"):
        read_contents(tmp_path / "other.npz")


def test_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError, match="no model file"):
        read_contents(tmp_path / "absent")


def test_newer_format(model):
    edit_header(model, format_version=FORMAT_VERSION + 1, gputree_version="99.0", tree="unknown")
    newer = rf"written by a newer gputree \(99\.0, format version {FORMAT_VERSION + 1}\)"
    with pytest.raises(ValueError, match=newer):
        read_contents(model)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"format": "other"}, "does not name the format"),
        ({"format_version": "1"}, "format_version must be"),
        ({"format_version": True}, "format_version must be"),
        ({"format_version": 0}, "format_version must be"),
        ({"tree": {}}, "must have the keys"),
        ({"tree": {"task": "x", "criterion": "gini", "n_features": 3}}, "task must be one of"),
        ({"tree": {"task": ["regression"], "criterion": "gini", "n_features": 3}}, "task must be"),
        ({"tree": {"task": "regression", "criterion": "gini", "n_features": 3}}, "criterion must"),
        ({"tree": {"task": "classification", "criterion": "g", "n_features": 3}}, "criterion must"),
        ({"tree": {"task": "classification", "criterion": {}, "n_features": 3}}, "criterion must"),
        ({"tree": {"task": "classification", "criterion": "gini", "n_features": 0}}, "n_features"),
        ({"tree": {"task": "classification", "criterion": "gini", "n_features": 9**99}}, "to 2147"),
    ],
)
def test_bad_header(model, changes, message):
    edit_header(model, **changes)
    with pytest.raises(ValueError, match=message):
        read_contents(model)


@pytest.mark.parametrize(
    ("name", "array", "message"),
    [
        ("first_child", np.array([1, -1, 2, -1, -1], np.int32), "contiguous"),
        ("n_children", np.array([2, 0, -2, 0, 0], np.int32), "fewer than none"),
        ("threshold", np.zeros(5, np.float32), "threshold must be float64"),
        ("threshold", np.zeros((5, 1)), "with 1 dimensions, got float64 with 2"),
        ("threshold", np.full(5, np.nan), "threshold is NaN"),
        ("feature", np.array([7, -2, 2, -2, -2], np.int32), "feature is out of range"),
        ("weight", np.zeros(4), "differ in length"),
        ("branch_end", np.array([0, 0, 0, 1, 4]), "outside branch_code"),
        ("branch_code", np.array([0, 3, 0], np.int32), "leads to two children"),
    ],
)
def test_arrays_that_are_no_tree(model, name, array, message):
    edit_array(model, name, array)
    with pytest.raises(ValueError, match=message):
        read_contents(model)


def test_missing_array(model):
    rewrite(model, lambda members: members.pop("tree/gain.npy"))
    with pytest.raises(ValueError, match=r"tree/gain\.npy"):
        read_contents(model)


def test_objects_are_never_unpickled(model):
    def change(members):
        buffer = io.BytesIO()
        np.save(buffer, np.array([{}, {}], dtype=object), allow_pickle=True)
        members["tree/gain.npy"] = buffer.getvalue()

    rewrite(model, change)
    with pytest.raises(ValueError, match="gain must be float64 with 1 dimensions, got object"):
        read_contents(model)


def test_array_header_that_claims_too_much(model):
    content = npy_bytes(np.zeros(5))
    huge = content.replace(b"(5,), }" + b" " * 12, b"(5000000000000,), }")
    assert len(huge) == len(content)
    assert huge != content
    rewrite(model, lambda members: members.update({"tree/gain.npy": huge}))
    with pytest.raises(ValueError, match=r"gain of shape .* has 40,000,.* its member holds 40\."):
        read_contents(model)


def test_failed_write_keeps_the_old_file(model, monkeypatch):
    before = model.read_bytes()

    def fail(*args):
        raise OSError("disk full")

    monkeypatch.setattr(zipfile.ZipFile, "writestr", fail)
    with pytest.raises(OSError, match="disk full"):
        write_contents(model, Contents({}, [small_tree()]), False)
    assert model.read_bytes() == before
    assert os.listdir(model.parent) == [model.name]


def test_invalid_input_writes_nothing(tmp_path):
    path, tree = tmp_path / "model", small_tree()
    with pytest.raises(ValueError, match="reserved"):
        write_contents(path, Contents({"tree": 1}, [tree]), False)
    with pytest.raises(ValueError, match="JSON compliant"):
        write_contents(path, Contents({"value": np.inf}, [tree]), False)
    with pytest.raises(TypeError, match="not JSON serializable"):
        write_contents(path, Contents({"value": object()}, [tree]), False)
    wrong = replace(tree, weight=np.full(5, np.nan))
    with pytest.raises(ValueError, match="Invalid tree"):
        write_contents(path, Contents({}, [wrong]), False)
    assert not list(tmp_path.iterdir())


def test_permissions_follow_the_umask(model):
    (model.parent / "plain").write_text("")
    assert model.stat().st_mode == (model.parent / "plain").stat().st_mode


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: content.replace(b"tree/gain", b"tree/gait"),
        lambda content: content[: len(content) // 2] + b"\0" * 9 + content[len(content) // 2 + 9 :],
        lambda content: content.replace(b"PK\x03\x04", b"PK\x03\x05"),
    ],
)
def test_damage_is_told_without_the_words_of_libraries(model, damage):
    model.write_bytes(damage(model.read_bytes()))
    with pytest.raises(ValueError, match="is damaged: ") as error:
        read_contents(model)
    told = str(error.value)
    assert told.startswith(f"{model} is damaged: ")
    assert not re.search("zip|zlib|CRC|decompress|magic|npy header|archive", told, re.IGNORECASE)


def test_what_is_no_file(tmp_path):
    with pytest.raises(IsADirectoryError, match=f"{tmp_path} is a directory, and no model file"):
        read_contents(tmp_path)
    with pytest.raises(TypeError, match="name of a model file must be a str or path-like, got Non"):
        read_contents(None)
    with pytest.raises(TypeError, match=r"name of a file to write must be .* got list"):
        write_contents([], Contents({}, [small_tree()]), False)


@pytest.mark.parametrize("code", [errno.EIO, errno.ENOSPC, errno.ENOMEM, errno.EACCES])
@pytest.mark.parametrize("place", ["open", "seek", "read"])
def test_errors_of_reading_are_told_as_what_they_are(model, monkeypatch, code, place):
    """No error is taken for damage, whether the first call fails or a later one."""
    for calls in (0,) if place == "open" else (0, 20):
        error = OSError(code, os.strerror(code))
        with monkeypatch.context() as patch:
            patch.setattr("builtins.open", failing_open(place, calls, error))
            with pytest.raises(type(error), match=os.strerror(code)) as found:
                read_contents(model)
        assert found.value.filename == str(model)


def failing_open(place, calls, error):
    """Like `open`, but a call of it, or of what it returns, fails after so many."""
    left = [calls]

    def fail_or(function):
        def call(*arguments, **options):
            if left[0] == 0:
                raise error
            left[0] -= 1
            return function(*arguments, **options)

        return call

    class File:
        def __init__(self, *arguments):
            self.file = open_file(*arguments)

        def __getattr__(self, name):
            found = getattr(self.file, name)
            return fail_or(found) if name == place else found

        def __enter__(self):
            return self

        def __exit__(self, *_):
            self.file.close()

    open_file = open
    return fail_or(File) if place == "open" else File


def test_errors_of_writing_name_the_file_that_was_asked_for(tmp_path, monkeypatch):
    path = tmp_path / "model"

    def full(*args):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(zipfile.ZipFile, "writestr", full)
        with pytest.raises(OSError, match=f"No space left on device: '{path}'"):
            write_contents(path, Contents({}, [small_tree()]), False)
    long = tmp_path / ("m" * 250)  # a name that is not too long, but for what is written first
    with pytest.raises(OSError, match=f"'{long}'$"):
        write_contents(long, Contents({}, [small_tree()]), False)

    def denied(old, new):
        raise PermissionError(errno.EACCES, "Permission denied", old, None, new)

    monkeypatch.setattr(os, "replace", denied)
    with pytest.raises(OSError, match=f"'{path}'$"):
        write_contents(path, Contents({}, [small_tree()]), False)
    assert not list(tmp_path.iterdir())
