"""Progress: on a terminal, and nowhere else, and only when it takes a while."""

from __future__ import annotations

import io

import pytest

from skylog.kernel import progress as module
from skylog.kernel.progress import Progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def shown(stream: io.StringIO, monkeypatch: pytest.MonkeyPatch, *, quiet: bool = False) -> str:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("sys.stderr", stream)
    with Progress("orders", 4 * 1024 * 1024, quiet=quiet, in_bytes=True) as progress:
        progress.add(1024 * 1024)
        progress.add(3 * 1024 * 1024)
    return stream.getvalue()


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_SILENT_SECONDS", 0.0)


@pytest.mark.usefixtures("at_once")
def test_a_terminal_shows_the_topic_and_the_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    said = shown(Terminal(), monkeypatch)
    assert "orders" in said
    assert "4.0/4.0 MiB" in said


@pytest.mark.usefixtures("at_once")
def test_anything_else_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert shown(io.StringIO(), monkeypatch) == ""
    assert shown(Terminal(), monkeypatch, quiet=True) == ""


def test_what_is_done_soon_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert shown(Terminal(), monkeypatch) == ""
