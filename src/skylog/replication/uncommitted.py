"""How many bytes become readable when the high watermark moves. Pure."""

from __future__ import annotations

from collections import deque
from typing import Final

# Beyond this many appends the newest are counted as one: the high watermark may stall for long.
_APPENDS_MAX: Final = 1_024


class Uncommitted:
    """Bytes that were appended and are not committed yet."""

    __slots__ = ("_appends",)

    def __init__(self) -> None:
        self._appends: deque[tuple[int, int]] = deque()  # end offset, bytes

    def __len__(self) -> int:
        return len(self._appends)

    def add(self, end_offset: int, size: int) -> None:
        if len(self._appends) >= _APPENDS_MAX:
            size += self._appends.pop()[1]
        self._appends.append((end_offset, size))

    def take(self, high_watermark: int) -> int:
        """The bytes of appends committed up to here, each counted once."""
        total = 0
        while self._appends and self._appends[0][0] <= high_watermark:
            total += self._appends.popleft()[1]
        return total

    def clear(self) -> None:
        self._appends.clear()
