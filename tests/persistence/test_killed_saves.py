"""Files that a killed save has left are removed by the next one, and nothing else is."""

import os
import subprocess
import sys
import threading

import pytest

from gputree.base.files import replaced_file

pytestmark = pytest.mark.skipif(os.name != "posix", reason="processes are killed by signals")

CHILD = """
import os, signal, sys
from gputree.base.files import replaced_file
with replaced_file(sys.argv[1]) as file:
    file.write(b"half")
    file.flush()
    os.kill(os.getpid(), signal.SIGKILL)
"""


def kill_a_save(path):
    done = subprocess.run([sys.executable, "-c", CHILD, str(path)])
    assert done.returncode < 0


@pytest.mark.process
def test_the_next_save_cleans_up(tmp_path):
    path, other = tmp_path / "m.gputree", tmp_path / "m.gputree.gputree"
    path.write_bytes(b"old")
    for _ in range(2):
        kill_a_save(path)
    kill_a_save(other)
    left = sorted(name for name in os.listdir(tmp_path) if name.startswith("."))
    assert len(left) == 2  # the second of its kind removed the first
    assert path.read_bytes() == b"old"
    mine = [
        ".m.gputree.0123456789abcde",
        ".m.gputree.0123456789abcdefx",
        "m.gputree.0123456789abcdef",
    ]
    for name in mine:
        (tmp_path / name).touch()
    with replaced_file(path) as file:
        file.write(b"new")
    assert path.read_bytes() == b"new"
    assert sorted(os.listdir(tmp_path)) == sorted(
        [path.name, *mine, *(name for name in left if name.startswith(".m.gputree.gputree."))]
    )


def test_a_save_that_goes_on_is_left_alone(tmp_path):
    path = tmp_path / "m"
    with replaced_file(path) as slow:
        slow.write(b"slow")
        with replaced_file(path) as fast:
            fast.write(b"fast")
        assert path.read_bytes() == b"fast"
    assert path.read_bytes() == b"slow"
    assert os.listdir(tmp_path) == ["m"]


def test_many_saves_at_once(tmp_path):
    path, errors = tmp_path / "m", []

    def save(k):
        try:
            for _ in range(50):
                with replaced_file(path) as file:
                    file.write(bytes([k]) * 100)
        except OSError as error:
            errors.append(error)

    threads = [threading.Thread(target=save, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert len(set(path.read_bytes())) == 1
    assert os.listdir(tmp_path) == ["m"]
