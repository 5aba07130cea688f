r"""Java's ``.properties`` syntax, which ``server.properties`` is written in.

A logical line is ``key=value``, ``key:value`` or ``key value``; ``#`` and ``!`` begin a comment;
a line that ends in an odd number of backslashes continues in the next one. ``\t \n \r \f \uXXXX``
are escapes; before any other character the backslash is dropped. The last of two equal keys wins,
as in Java.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from skylog.kernel.errors import ConfigError

_BLANK: Final = " \t\f"
_NEWLINE: Final = re.compile(r"\r\n|\r|\n")
_ESCAPES: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_HEX: Final = re.compile(r"[0-9a-fA-F]{4}")


def parse_properties(text: str) -> dict[str, str]:
    """Parse a properties file; raises ConfigError that names the line."""
    found: dict[str, str] = {}
    for number, line in _logical_lines(text):
        key, value = _split(line)
        try:
            found[_unescape(key)] = _unescape(value)
        except ValueError as error:
            raise ConfigError(f"line {number}: {error}: {line[:80]}") from None
    return found


def format_properties(values: dict[str, str]) -> str:
    """Write what ``parse_properties`` parses."""
    lines = (f"{_escape(key, ' =:')}={_escape(value, '')}\n" for key, value in values.items())
    return "".join(lines)


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    pending: str | None = None
    start = 0
    for number, natural in enumerate(_NEWLINE.split(text), 1):
        line = natural.lstrip(_BLANK)
        if pending is None:
            if not line or line[0] in "#!":
                continue
            pending, start = "", number
        backslashes = len(line) - len(line.rstrip("\\"))
        if backslashes % 2:
            pending += line[:-1]
            continue
        yield start, pending + line
        pending = None
    if pending:
        yield start, pending


def _split(line: str) -> tuple[str, str]:
    end = 0
    while end < len(line) and line[end] not in "=:" + _BLANK:
        end += 2 if line[end] == "\\" else 1
    rest = line[end:].lstrip(_BLANK)
    if rest[:1] in ("=", ":"):
        rest = rest[1:].lstrip(_BLANK)
    return line[:end], rest


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    parts: list[str] = []
    at = 0
    while at < len(text):
        character = text[at]
        at += 1
        if character == "\\" and at < len(text):
            escape = text[at]
            at += 1
            if escape == "u":
                code = _HEX.match(text, at)
                if code is None:
                    raise ValueError("malformed \\uXXXX escape")
                character = chr(int(code[0], 16))
                at += 4
            else:
                character = _ESCAPES.get(escape, escape)
        parts.append(character)
    # Characters beyond the Basic Multilingual Plane are written as two escapes.
    joined = "".join(parts)
    return joined.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _escape(text: str, special: str) -> str:
    written = text.replace("\\", "\\\\")
    for letter, character in _ESCAPES.items():
        written = written.replace(character, "\\" + letter)
    for character in special:
        written = written.replace(character, "\\" + character)
    return "\\" + written if written[:1] in (" ", "#", "!") else written
