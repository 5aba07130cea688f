"""Distinguishes damage from a torn tail, before recovery truncates either.

Recovery ends a log before the first incomplete batch. After a crash that is right: it truncates
only unsynced data. But a damaged batch *before* complete ones was not caused by a crash, and
truncating there would lose committed topics, and then their data: such a log is not opened.
"""

from __future__ import annotations

import mmap
import re
from pathlib import Path
from typing import Final

from skylog.kernel.errors import StorageError
from skylog.log.names import LOG_SUFFIX, parse_file_name
from skylog.wire.batch import HEADER_BYTES, MAGIC, Batch, batch_size

# A possible header: an offset below 2⁴⁸, and the magic number sixteen bytes later.
_HEADER_AT: Final = re.compile(rb"(?=\x00\x00[\s\S]{14}\x02)")


def check_segments(directory: Path) -> None:
    """StorageError if a batch of the metadata log is damaged and complete ones follow it."""
    expected: int | None = None
    paths = [path for path in sorted(directory.glob(f"*{LOG_SUFFIX}")) if path.stat().st_size]
    for path in paths:
        parsed = parse_file_name(path.name)
        if parsed is None:
            continue
        if expected is not None and parsed[0] != expected:
            raise StorageError(
                f"{path} does not follow the previous segment: offset {expected} is missing"
            )
        with (
            path.open("rb") as file,
            mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content,
        ):
            position, expected = _whole_until(content, parsed[0])
            if position == len(content):
                continue
            # A segment is synced before the next one begins, so only the last may be torn.
            if path != paths[-1] or _is_followed(content, position, expected):
                raise StorageError(
                    f"{path} is damaged at position {position} (offset {expected}) and complete "
                    f"batches follow: committed records would be lost. Restore the directory from "
                    "a copy; to give up what follows, truncate the log there"
                )


def _whole_until(content: mmap.mmap, offset: int) -> tuple[int, int]:
    """The end of the valid batches: its position and the next offset."""
    position = 0
    while position < len(content):
        batch = _batch_at(content, position)
        if batch is None or batch.base_offset != offset:
            break
        position += batch.size
        offset = batch.next_offset
    return position, offset


def _is_followed(content: mmap.mmap, position: int, offset: int) -> bool:
    """Whether a complete batch with a later offset follows the damage."""
    for match in _HEADER_AT.finditer(content, position + 1):
        batch = _batch_at(content, match.start())
        if batch is not None and batch.base_offset > offset:
            return True
    return False


def _batch_at(content: mmap.mmap, position: int) -> Batch | None:
    left = len(content) - position
    if left < HEADER_BYTES:
        return None
    header = content[position : position + HEADER_BYTES]
    size = batch_size(header, 0)
    if not HEADER_BYTES <= size <= left or header[16] != MAGIC:
        return None
    batch = Batch(content[position : position + size])
    return batch if batch.last_offset_delta >= 0 and batch.crc_ok() else None
