"""Log lines: form, levels, and that nothing in a value can forge or break a line."""

from __future__ import annotations

import io
import json
import logging as standard
from collections.abc import Iterator

import pytest

from skylog.kernel import logging
from skylog.kernel.clock import ManualClock
from skylog.kernel.errors import ConfigError
from skylog.kernel.limits import (
    LOG_FIELD_CHARACTERS_MAX,
    LOG_LINES_PER_SECOND_MAX,
    LOG_TRACEBACK_CHARACTERS_MAX,
)
from skylog.kernel.logging import Hub, Level, configure, get_logger, hub
from skylog.kernel.secret import Secret


def make(as_json: bool) -> tuple[Hub, io.StringIO]:
    made, stream = Hub(), io.StringIO()
    made.direct(stream, as_json=as_json, clock=ManualClock(1_700_000_000_123))
    return made, stream


def test_text() -> None:
    made, stream = make(as_json=False)
    made.logger("a.b").warning("closed", address="::1", why="a b", count=3)
    expected = '2023-11-14T22:13:20.123Z WARN  a.b: closed address=::1 why="a b" count=3\n'
    assert stream.getvalue() == expected


def test_of_lines_that_come_too_often_only_some_are_written() -> None:
    made, stream, clock = Hub(), io.StringIO(), ManualClock()
    made.direct(stream, as_json=False, clock=clock)
    for number in range(LOG_LINES_PER_SECOND_MAX + 7):
        made.logger("a").warning("refused", number=number)
        made.logger("b").debug("below the level")
    made.logger("a").warning("something else")
    lines = stream.getvalue().splitlines()
    assert len(lines) == LOG_LINES_PER_SECOND_MAX + 1
    assert lines[-1].endswith("a: something else")
    clock.advance(1000)
    made.logger("a").warning("refused", number=0)
    told, again = stream.getvalue().splitlines()[len(lines) :]
    assert told.endswith("WARN  a: lines suppressed of=refused count=7")
    assert again.endswith("a: refused number=0")


def test_json() -> None:
    made, stream = make(as_json=True)
    made.logger("a").info("closed", count=3, on=True, none=None, message="x", thing=[1])
    assert json.loads(stream.getvalue()) == {
        "time": "2023-11-14T22:13:20.123Z",
        "level": "INFO",
        "logger": "a",
        "message": "closed",
        "count": 3,
        "on": True,
        "none": None,
        "field_message": "x",
        "thing": "[1]",
    }


@pytest.mark.parametrize("as_json", [True, False])
def test_a_value_cannot_begin_a_line(as_json: bool) -> None:
    made, stream = make(as_json)
    made.logger("a").info("m", name="x\n2023 INFO forged\r\x1b[31m")
    assert stream.getvalue().count("\n") == 1
    assert "\r" not in stream.getvalue() and "\x1b" not in stream.getvalue()


@pytest.mark.parametrize("as_json", [True, False])
def test_values_have_a_limit(as_json: bool) -> None:
    made, stream = make(as_json)
    made.logger("a").info("m", name="x" * LOG_FIELD_CHARACTERS_MAX)
    assert "x" * LOG_FIELD_CHARACTERS_MAX in stream.getvalue()
    assert "characters" not in stream.getvalue()
    made.logger("a").info("m", name="y" * (LOG_FIELD_CHARACTERS_MAX + 1))
    assert "y" * (LOG_FIELD_CHARACTERS_MAX + 1) not in stream.getvalue()
    assert f"({LOG_FIELD_CHARACTERS_MAX + 1} characters)" in stream.getvalue()


@pytest.mark.parametrize("as_json", [True, False])
def test_an_exception_comes_with_its_traceback(as_json: bool) -> None:
    made, stream = make(as_json)
    try:
        raise ValueError("why" * LOG_TRACEBACK_CHARACTERS_MAX)
    except ValueError:
        made.logger("a").exception("failed")
    assert "failed" in stream.getvalue() and "why" in stream.getvalue()
    assert len(stream.getvalue()) < LOG_TRACEBACK_CHARACTERS_MAX + 500


def test_secrets_do_not_show() -> None:
    made, stream = make(as_json=True)
    made.logger("a").info("m", password=Secret("hunter2"))
    assert "hunter2" not in stream.getvalue() and "[hidden]" in stream.getvalue()


def test_levels_come_from_the_nearest_that_has_one() -> None:
    made, stream = make(as_json=False)
    logger, other = made.logger("broker.server"), made.logger("log")
    logger.debug("no")
    made.set_level("broker", Level.DEBUG)
    logger.debug("yes")
    other.debug("no")
    made.set_level("root", Level.ERROR)
    other.warning("no")
    other.error("yes")
    logger.debug("yes")
    made.unset_level("broker")
    logger.warning("no")
    made.unset_level("root")
    logger.fatal("yes")
    assert "no" not in [line.split()[3] for line in stream.getvalue().splitlines()]
    assert stream.getvalue().count("yes") == 4


def test_levels_are_listed_and_names_known() -> None:
    made, _ = make(as_json=False)
    made.logger("b.c")
    made.logger("a")
    made.set_level("b", Level.TRACE)
    assert made.levels() == {"a": Level.INFO, "b.c": Level.TRACE, "root": Level.INFO}
    assert made.knows("root") and made.knows("a") and not made.knows("z")
    assert made.logger("b.c").enabled(Level.TRACE) and not made.logger("a").enabled(Level.DEBUG)


def test_a_broken_stream_raises_nothing() -> None:
    made, stream = make(as_json=False)
    stream.close()
    made.logger("a").error("lost")


@pytest.fixture
def process_logging() -> Iterator[io.StringIO]:
    """The process's log hub, restored afterwards."""
    root = standard.getLogger()
    handlers = list(root.handlers)
    yield io.StringIO()
    hub().set_level("root", Level.INFO)
    hub().direct(None, as_json=False, clock=logging.SystemClock())
    root.handlers[:] = handlers


def test_configure(process_logging: io.StringIO) -> None:
    configure(level="debug", format="auto", stream=process_logging)
    get_logger("x").debug("seen", a=1)
    assert json.loads(process_logging.getvalue())["a"] == 1  # no terminal: JSON
    assert get_logger("x") is get_logger("x")
    with pytest.raises(ConfigError, match="LOUD"):
        configure(level="LOUD")
    with pytest.raises(ConfigError, match="xml"):
        configure(format="xml")


def test_log_lines_of_libraries_have_our_format(process_logging: io.StringIO) -> None:
    configure(format="json", stream=process_logging)
    configure(format="json", stream=process_logging)
    standard.getLogger("asyncio").error("task %s failed", 7)
    standard.getLogger("asyncio").debug("not this")
    (line,) = process_logging.getvalue().splitlines()
    entry = json.loads(line)
    assert (entry["level"], entry["logger"], entry["message"]) == (
        "ERROR",
        "asyncio",
        "task 7 failed",
    )
