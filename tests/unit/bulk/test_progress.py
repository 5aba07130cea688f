"""The bar of bytes: on a terminal, and nowhere else."""

from __future__ import annotations

import io

import pytest

from skylog.bulk.progress import BytesProgress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def shown(stream: io.StringIO, monkeypatch: pytest.MonkeyPatch, *, wanted: bool = True) -> str:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("sys.stderr", stream)
    with BytesProgress("orders", 4 * 1024 * 1024, wanted=wanted) as progress:
        progress.add(1024 * 1024)
        progress.add(3 * 1024 * 1024)
    return stream.getvalue()


def test_a_terminal_shows_the_topic_and_the_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    said = shown(Terminal(), monkeypatch)
    assert "orders" in said
    assert "4.0/4.0 MiB" in said


def test_anything_else_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert shown(io.StringIO(), monkeypatch) == ""
    assert shown(Terminal(), monkeypatch, wanted=False) == ""
