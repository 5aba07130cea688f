"""Pure: the results of a commit as bytes, kept with the file in case the commit is repeated."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Final

from skylog.diskless.plane import CommitResult
from skylog.kernel.errors import ErrorCode

_ANSWER: Final = struct.Struct(">hqqq?")


def pack(results: Iterable[CommitResult]) -> bytes:
    return b"".join(
        _ANSWER.pack(
            r.error, r.assigned_base_offset, r.log_append_time, r.log_start_offset, r.duplicate
        )
        for r in results
    )


def unpack(data: bytes) -> list[CommitResult]:
    return [
        CommitResult(ErrorCode(error), base, time, start, duplicate)
        for error, base, time, start, duplicate in _ANSWER.iter_unpack(data)
    ]
