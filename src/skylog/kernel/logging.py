"""Structured log lines: text on a terminal, JSON lines otherwise.

    log = get_logger("broker.connection")
    log.info("connection closed", address=address, why=why)

Loggers form a tree by the dots in their names, with ``root`` at the top; a logger without its own
level inherits its parent's. Levels are Kafka's and can change at run time (by the BROKER_LOGGER
resource of the configuration APIs). A call below the level costs one comparison. Writing a line
never raises: losing a log line must not lose a request. Repeated lines are rate-limited, so that no
client can fill a disk.
"""

from __future__ import annotations

import json
import logging as standard
import sys
import traceback
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime
from enum import IntEnum
from typing import Any, Final, TextIO

from skylog.kernel.clock import Clock, SystemClock
from skylog.kernel.errors import ConfigError
from skylog.kernel.limits import (
    LOG_FIELD_CHARACTERS_MAX,
    LOG_LINES_PER_SECOND_MAX,
    LOG_TRACEBACK_CHARACTERS_MAX,
)

ROOT: Final = "root"
FORMATS: Final = ("auto", "text", "json")


class Level(IntEnum):
    """Kafka's log levels."""

    TRACE = 5
    DEBUG = 10
    INFO = 20
    WARN = 30
    ERROR = 40
    FATAL = 50


class Logger:
    """Writes the lines of one part of the program."""

    __slots__ = ("_hub", "effective", "name")

    def __init__(self, hub: Hub, name: str, effective: Level) -> None:
        self._hub = hub
        self.name = name
        self.effective = effective

    def trace(self, message: str, /, **fields: Any) -> None:
        if self.effective <= Level.TRACE:
            self._hub.write(self.name, Level.TRACE, message, fields)

    def debug(self, message: str, /, **fields: Any) -> None:
        if self.effective <= Level.DEBUG:
            self._hub.write(self.name, Level.DEBUG, message, fields)

    def info(self, message: str, /, **fields: Any) -> None:
        if self.effective <= Level.INFO:
            self._hub.write(self.name, Level.INFO, message, fields)

    def warning(self, message: str, /, **fields: Any) -> None:
        if self.effective <= Level.WARN:
            self._hub.write(self.name, Level.WARN, message, fields)

    def error(self, message: str, /, **fields: Any) -> None:
        if self.effective <= Level.ERROR:
            self._hub.write(self.name, Level.ERROR, message, fields)

    def exception(self, message: str, /, **fields: Any) -> None:
        """An error line with the traceback of the current exception."""
        if self.effective <= Level.ERROR:
            self._hub.write(self.name, Level.ERROR, message, fields, traceback.format_exc())

    def fatal(self, message: str, /, **fields: Any) -> None:
        self._hub.write(self.name, Level.FATAL, message, fields)

    def enabled(self, level: Level) -> bool:
        """Whether lines of ``level`` are written: for fields that are expensive to compute."""
        return self.effective <= level


class Hub:
    """All loggers, their levels, and where their lines go."""

    def __init__(self, level: Level = Level.INFO) -> None:
        self._levels: dict[str, Level] = {ROOT: level}
        self._loggers: dict[str, Logger] = {}
        self._stream: TextIO | None = None
        self._json = False
        self._clock: Clock = SystemClock()
        # How often each line was written in the current second.
        self._second = 0
        self._lines: Counter[tuple[str, str]] = Counter()

    def direct(self, stream: TextIO | None, *, as_json: bool, clock: Clock) -> None:
        """Send lines to ``stream``; None means the current standard error."""
        self._stream = stream
        self._json = as_json
        self._clock = clock

    def logger(self, name: str) -> Logger:
        found = self._loggers.get(name)
        if found is None:
            found = self._loggers[name] = Logger(self, name, self.effective(name))
        return found

    # Levels ---------------------------------------------------------------------------------

    def knows(self, name: str) -> bool:
        return name == ROOT or name in self._loggers

    def effective(self, name: str) -> Level:
        while name not in self._levels:
            parent, dot, _ = name.rpartition(".")
            name = parent if dot else ROOT
        return self._levels[name]

    def levels(self) -> dict[str, Level]:
        """Every logger's effective level, by name."""
        return {name: self.effective(name) for name in sorted({ROOT, *self._loggers})}

    def set_level(self, name: str, level: Level) -> None:
        self._levels[name] = level
        self._refresh()

    def unset_level(self, name: str) -> None:
        """Reset the logger to its parent's level; the root keeps its own."""
        if name != ROOT:
            self._levels.pop(name, None)
            self._refresh()

    def _refresh(self) -> None:
        for name, logger in self._loggers.items():
            logger.effective = self.effective(name)

    # Lines ----------------------------------------------------------------------------------

    def write(
        self,
        name: str,
        level: Level,
        message: str,
        fields: Mapping[str, Any],
        trace: str | None = None,
    ) -> None:
        now_ms = self._clock.now_ms()
        if now_ms // 1000 != self._second:
            self._begin_second(now_ms)
        if level >= Level.INFO:
            self._lines[name, message] += 1
            if self._lines[name, message] > LOG_LINES_PER_SECOND_MAX:
                return
        self._put(now_ms, name, level, message, fields, trace)

    def _begin_second(self, now_ms: int) -> None:
        lines, self._lines, self._second = self._lines, Counter(), now_ms // 1000
        for (name, message), count in lines.items():
            if count > LOG_LINES_PER_SECOND_MAX:
                fields = {"of": message, "count": count - LOG_LINES_PER_SECOND_MAX}
                self._put(now_ms, name, Level.WARN, "lines suppressed", fields, None)

    def _put(
        self,
        now_ms: int,
        name: str,
        level: Level,
        message: str,
        fields: Mapping[str, Any],
        trace: str | None,
    ) -> None:
        line = (json_line if self._json else text_line)(now_ms, level, name, message, fields, trace)
        stream = self._stream or sys.stderr
        try:
            stream.write(line)
            stream.flush()
        except (OSError, ValueError):  # a full disk, a closed pipe or a closed stream
            return


def json_line(
    now_ms: int, level: Level, name: str, message: str, fields: Mapping[str, Any], trace: str | None
) -> str:
    """One JSON object per line; fields with reserved names are prefixed with ``field_``."""
    entry: dict[str, Any] = {
        "time": _timestamp(now_ms),
        "level": level.name,
        "logger": name,
        "message": message,
    }
    for key, value in fields.items():
        plain = value if isinstance(value, bool | int | float) or value is None else _clip(value)
        entry[f"field_{key}" if key in entry else key] = plain
    if trace is not None:
        entry["exception"] = trace[-LOG_TRACEBACK_CHARACTERS_MAX:]
    return json.dumps(entry) + "\n"


def text_line(
    now_ms: int, level: Level, name: str, message: str, fields: Mapping[str, Any], trace: str | None
) -> str:
    """``time LEVEL logger: message key=value``; values that could forge a line are quoted."""
    shown = "".join(f" {key}={_quoted(value)}" for key, value in fields.items())
    line = f"{_timestamp(now_ms)} {level.name:<5} {name}: {message}{shown}\n"
    if trace is None:
        return line
    return line + trace[-LOG_TRACEBACK_CHARACTERS_MAX:].rstrip("\n") + "\n"


def _timestamp(now_ms: int) -> str:
    moment = datetime.fromtimestamp(now_ms // 1000, tz=UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{now_ms % 1000:03d}Z"


def _clip(value: object) -> str:
    text = str(value)
    if len(text) <= LOG_FIELD_CHARACTERS_MAX:
        return text
    return f"{text[:LOG_FIELD_CHARACTERS_MAX]}… ({len(text)} characters)"


def _quoted(value: object) -> str:
    text = _clip(value)
    plain = text.isprintable() and text and not any(mark in text for mark in ' "=')
    return text if plain else json.dumps(text, ensure_ascii=False)


class _Bridge(standard.Handler):
    """Forwards the standard library's log records to our loggers."""

    def emit(self, record: standard.LogRecord) -> None:
        level = max((known for known in Level if known <= record.levelno), default=Level.TRACE)
        trace = None
        if record.exc_info:
            trace = "".join(traceback.format_exception(*record.exc_info))
        target = get_logger(record.name)
        if target.enabled(level):
            _HUB.write(target.name, level, record.getMessage(), {}, trace)


_HUB: Final = Hub()


def get_logger(name: str) -> Logger:
    """The logger of that name; always the same object."""
    return _HUB.logger(name)


def hub() -> Hub:
    """All loggers of this process: for the BROKER_LOGGER resource."""
    return _HUB


def parse_level(text: str) -> Level:
    try:
        return Level[text.upper()]
    except KeyError:
        allowed = ", ".join(level.name for level in Level)
        raise ConfigError(f"log level {text!r} is not one of {allowed}") from None


def configure(
    *,
    level: str = "INFO",
    format: str = "auto",
    stream: TextIO | None = None,
    clock: Clock | None = None,
) -> None:
    """Set the root level and the line format; ``auto`` is text on a terminal, else JSON."""
    if format not in FORMATS:
        raise ConfigError(f"log format {format!r} is not one of {', '.join(FORMATS)}")
    target = stream or sys.stderr
    as_json = format == "json" or (format == "auto" and not target.isatty())
    _HUB.direct(stream, as_json=as_json, clock=clock or SystemClock())
    _HUB.set_level(ROOT, parse_level(level))
    root = standard.getLogger()
    if not any(isinstance(handler, _Bridge) for handler in root.handlers):
        root.addHandler(_Bridge())
