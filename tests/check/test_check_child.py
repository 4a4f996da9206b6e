"""The process that checks a device, without a device: what it sends to the one that waits."""

import io
import json
from contextlib import nullcontext
from types import SimpleNamespace

from gputree.backends.cuda import machine
from gputree.check import trust


def test_a_child_sends_headings_and_its_verdict(monkeypatch):
    """Output that libraries print is not sent."""
    sent, moved = io.StringIO(), []
    sent.close = lambda: None
    monkeypatch.setattr(trust.sys, "argv", ["-c", "3"])
    monkeypatch.setattr(trust.os, "dup", lambda number: number)
    monkeypatch.setattr(trust.os, "fdopen", lambda number, *_, **__: sent)
    monkeypatch.setattr(trust.os, "dup2", lambda *numbers: moved.append(numbers))
    chosen = []
    monkeypatch.setattr(machine, "device", lambda number: chosen.append(number) or nullcontext())
    report = SimpleNamespace(differences=["a: b"], completed=False)

    def compare(send):
        send("one table")
        return ["identity"], report

    monkeypatch.setattr(trust, "compare_device", compare)
    trust.main()
    lines = [json.loads(line) for line in sent.getvalue().splitlines()]
    verdict = {"identity": ["identity"], "differences": ["a: b"], "completed": False}
    assert lines == ["one table", verdict]
    assert chosen == [3]
    assert moved == [(2, 1)]


def test_the_end_of_a_child_is_its_status_and_its_last_error():
    errors = io.BytesIO("Traceback\n  in line 3\nno driver é\n\n".encode())
    assert trust._how_ended(SimpleNamespace(returncode=1), errors) == "status 1: no driver é"
    ended = trust._how_ended(SimpleNamespace(returncode=-6), io.BytesIO(b"cut off"))
    assert ended == "Aborted"
