"""Finds the batches in records that are in parts, without joining them. Pure.

A large batch comes as a new header and a view of its WAL object; small ones come many to a part.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.wire.batch import HEADER_BYTES, Batch, batch_size
from skylog.wire.buffers import Buffer


class Span(NamedTuple):
    """Bytes of a part."""

    part: memoryview
    start: int
    end: int


class Run:
    """Batches that are written together; ``spans`` are their bytes."""

    def __init__(self) -> None:
        self.batches: list[Batch] = []
        self.size = 0
        self._spans: list[Span] = []

    def add(self, batch: Batch, spans: Iterable[Span]) -> None:
        self.batches.append(batch)
        self.size += batch.size
        for span in spans:
            last = self._spans[-1] if self._spans else None
            if last is not None and last.part is span.part and last.end == span.start:
                self._spans[-1] = Span(span.part, last.start, span.end)
            else:
                self._spans.append(span)

    @property
    def buffers(self) -> list[Buffer]:
        return [part[start:end] for part, start, end in self._spans]


def batches_in(parts: Iterable[Buffer]) -> Iterator[tuple[Batch, list[Span]]]:
    """Each batch and its bytes; of one that is in several parts, ``buffer`` is only the header.
    CORRUPT_MESSAGE if there is anything else."""
    rest: list[Span] = []  # of a batch that is not complete
    missing = 0  # bytes of it, once its header is known
    for part in parts:
        view = memoryview(part)
        at, end = 0, len(view)
        while at < end:
            if not rest and end - at >= HEADER_BYTES:
                size = _size(view, at)
                if size <= end - at:
                    yield Batch(view[at : at + size]), [Span(view, at, at + size)]
                    at += size
                    continue
            known = sum(span.end - span.start for span in rest)
            wanted = missing or HEADER_BYTES - known
            stop = min(at + wanted, end)
            rest.append(Span(view, at, stop))
            known, at = known + stop - at, stop
            if known < HEADER_BYTES:
                continue
            header = _header(rest)
            missing = _size(header, 0) - known
            if not missing:
                yield Batch(header), rest
                rest = []
    if rest:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, "records end within a batch")


def _header(spans: Iterable[Span]) -> bytes:
    header = b""
    for part, start, end in spans:
        header += part[start : min(end, start + HEADER_BYTES - len(header))]
    return header


def _size(data: Buffer, at: int) -> int:
    size = batch_size(data, at)
    if size < HEADER_BYTES:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"batch claims {size} bytes")
    return size
