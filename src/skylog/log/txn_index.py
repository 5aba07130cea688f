"""A segment's ``.txnindex``: the aborted transactions whose marker is in the segment.

34-byte entries: i16 version, i64 producer, i64 first, last and last stable offset

Last offsets ascend and last stable offsets never decrease, so a search reads little more than it
finds. Most segments have no such file. It is in memory as on disk, and an entry that could not be
written stays there: an unclean start rebuilds the index from the batches.
"""

from __future__ import annotations

from bisect import bisect_left
from pathlib import Path
from typing import Final

from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.log.aborted import ENTRY, AbortedTransaction, decode_aborted, encode_aborted
from skylog.log.files import Files, WouldBlock

_SIZE: Final = ENTRY.size
# Entries that a search decodes at once.
_CHUNK: Final = 64


class TxnIndex:
    """Not read before it is needed; ``reset`` starts an empty one."""

    __slots__ = ("_data", "_files", "_path", "_written", "base_offset", "unsynced")

    def __init__(self, files: Files, path: str, base_offset: int) -> None:
        self._files = files
        self._path = path
        self._data: bytearray | None = None
        self._written = 0
        self.base_offset = base_offset
        self.unsynced = False

    def reset(self) -> None:
        """An empty index: it has no file until a transaction is aborted."""
        if Path(self._path).exists():  # rare, and cheaper to check than to remove
            self._files.remove(self._path)
        self._data = bytearray()
        self._written = 0
        self.unsynced = False

    def look(self) -> None:
        """Check whether there is a file: if it is lost later, that must not look like an empty
        index."""
        if not Path(self._path).exists():
            self._data = bytearray()

    @property
    def is_empty(self) -> bool:
        """Whether no transaction was aborted: then there is no file."""
        return self._data is not None and not self._data

    def drop(self) -> None:
        """Free the memory; everything is in the file. An empty index takes none."""
        if self._data and self._written == len(self._data):
            self._data = None

    def load(self, *, block: bool) -> bytearray:
        """Read the file if necessary. For the last segment, only the appender may do this."""
        data = self._data
        if data is not None:
            return data
        size = Path(self._path).stat().st_size
        found = self._files.read(self._path, 0, size, block=block) if size else b""
        if len(found) < size:
            raise WouldBlock
        data = bytearray(found)
        if not is_sane(data, self.base_offset):
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{self._path} is damaged")
        self._written = size
        self._data = data
        return data

    def append(self, entry: AbortedTransaction) -> bool:
        """Add an entry, at least in memory; True if it creates the file."""
        data = self.load(block=True)
        is_first = not data
        data += encode_aborted([entry])
        return is_first

    def write(self) -> None:
        """Write the entries that are only in memory to the file."""
        data = self._data
        if data is None or self._written == len(data):
            return
        if not self._written:
            self._files.create(self._path)
        start, end = self._written, len(data)
        self._files.write_all(self._path, [bytes(data[start:end])], start)
        self._written = end
        self.unsynced = True

    def sync(self) -> None:
        if self.unsynced:
            self.unsynced = False
            self._files.sync(self._path)

    def truncate_to(self, offset: int) -> None:
        """Drop the transactions that end at or above ``offset``."""
        data = self.load(block=True)
        end = self._slot(data, offset) * _SIZE
        if end == len(data):
            return
        # A new object: a reader on another thread may be searching the old one.
        self._data = data[:end]
        if self._written > end:
            self._files.truncate(self._path, end)
            self._written = end
            self.unsynced = True

    @staticmethod
    def _slot(data: bytearray, offset: int) -> int:
        """The first entry whose transaction ends at or above ``offset``."""
        count = len(data) // _SIZE
        return bisect_left(
            range(count), offset, key=lambda slot: ENTRY.unpack_from(data, slot * _SIZE)[3]
        )

    def entries(self, *, block: bool) -> list[AbortedTransaction]:
        return decode_aborted(bytes(self.load(block=block)))

    def collect(
        self, start: int, end: int, found: list[AbortedTransaction], *, block: bool
    ) -> bool:
        """Add the transactions that overlap the offsets from ``start`` to ``end``.

        True if no later segment can have any.
        """
        data = self.load(block=block)
        at = self._slot(data, start) * _SIZE
        while at < len(data):
            chunk = bytes(data[at : at + _CHUNK * _SIZE])
            at += len(chunk)
            for entry in decode_aborted(chunk):
                if entry.first_offset < end:
                    found.append(entry)
                if entry.last_stable_offset >= end:
                    return True
        return False


def is_sane(data: bytes | bytearray, base_offset: int) -> bool:
    """Whether these are sorted entries of a segment that begins at ``base_offset``."""
    if len(data) % _SIZE:
        return False
    before = base_offset - 1
    for version, _, first, last, _ in ENTRY.iter_unpack(bytes(data)):
        if version != 0 or first > last or last <= before:
            return False
        before = last
    return True
