"""Lines from standard input or a file, read without blocking the event loop."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Final, NamedTuple

from skylog.cli.errors import CommandError

CHUNK_BYTES: Final = 256 * 1024
# Any broker refuses a larger record; the input is most likely not lines at all.
LINE_BYTES_MAX: Final = 64 * 1024 * 1024


class RecordLine(NamedTuple):
    """How a line becomes a record."""

    key_separator: bytes | None
    null_marker: bytes | None


def parse_line(form: RecordLine, line: bytes, number: int) -> tuple[bytes | None, bytes | None]:
    """Key and value of a line; CommandError for a line without the separator."""
    key: bytes | None = None
    value: bytes | None = line
    if form.key_separator is not None:
        key, found, value = line.partition(form.key_separator)
        if not found:
            shown = line[:40].decode(errors="replace")
            separator = form.key_separator.decode()
            raise CommandError(
                f"line {number} has no key separator {separator!r}: {shown!r}; "
                "the lines before it were sent"
            )
    if form.null_marker is not None:
        key = None if key == form.null_marker else key
        value = None if value == form.null_marker else value
    return key, value


class Input:
    """A source of lines."""

    def __init__(self, read: Callable[[int], bytes], file: BinaryIO | None = None) -> None:
        self.read = read
        self._file = file
        self.interactive = file is None and sys.stdin.isatty()

    def __enter__(self) -> Input:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._file is not None:
            self._file.close()


def open_input(path: Path | None) -> Input:
    """A file, or standard input. OSError if it cannot be read."""
    if path is not None:
        file = path.open("rb", buffering=0)
        return Input(lambda size: file.read(size) or b"", file)
    try:
        number = sys.stdin.fileno()
    except OSError:  # tests replace it
        return Input(sys.stdin.buffer.read)
    return Input(lambda size: os.read(number, size))


async def read_lines(source: Input) -> AsyncIterator[bytes]:
    """Lines without their line ends. A line is returned as soon as it is typed."""
    rest = b""
    while chunk := await _read(source):
        lines = (rest + chunk).split(b"\n")
        rest = lines.pop()
        if len(rest) > LINE_BYTES_MAX:
            raise CommandError(f"a line has more than {LINE_BYTES_MAX} bytes; is the input text?")
        for line in lines:
            yield line.removesuffix(b"\r")
    if rest:
        yield rest


async def _read(source: Input) -> bytes:
    """Read in a daemon thread, because a terminal may stay silent when we have to exit."""
    loop = asyncio.get_running_loop()
    chunk: asyncio.Future[bytes] = loop.create_future()

    def settle(data: bytes | OSError) -> None:
        if chunk.done():
            return
        if isinstance(data, OSError):
            chunk.set_exception(data)
        else:
            chunk.set_result(data)

    def work() -> None:
        data: bytes | OSError
        try:
            data = source.read(CHUNK_BYTES)
        except OSError as error:
            data = error
        if not loop.is_closed():
            loop.call_soon_threadsafe(settle, data)

    threading.Thread(target=work, name="skylog-input", daemon=True).start()
    return await chunk
