"""Limits the bytes that clients make a broker hold.

A request that is never completed and a response that is never read cost the broker memory and the
client nothing. Each connection is tracked from the moment it began to hold bytes; beyond the limit
the oldest are closed first. A fast client has always begun recently.
"""

from __future__ import annotations

from typing import Protocol

from skylog.kernel import limits
from skylog.kernel.logging import get_logger

log = get_logger("broker.in_flight")


class Holder(Protocol):
    """A connection."""

    address: str

    @property
    def in_work(self) -> bool:
        """Whether a request is being handled, whose bytes cannot be freed."""
        ...

    def abort(self) -> None: ...


class InFlight:
    """Bytes of one kind, requests or answers, of all connections of a broker."""

    def __init__(self, what: str, bytes_max: int, *, spare_work: bool) -> None:
        self.what = what
        self._spare_work = spare_work
        self.bytes_max = bytes_max
        # In the order in which they began.
        self._held: dict[Holder, int] = {}
        self.total = 0

    def hold(self, holder: Holder, count: int) -> None:
        """A connection holds this many bytes now; 0 when it has released them."""
        self.total += count - self._held.get(holder, 0)
        if not count:
            self._held.pop(holder, None)
            return
        self._held[holder] = count
        if self.total > self.bytes_max:
            self._relieve()

    @property
    def left(self) -> int:
        """How many more bytes fit before half of the limit is reached."""
        return max(self.bytes_max // 2 - self.total, 0)

    def _relieve(self) -> None:
        for holder in tuple(self._held):
            if not (self._spare_work and holder.in_work):
                log.warning(
                    "connection closed: too many bytes in flight",
                    what=self.what,
                    address=holder.address,
                    held=self._held[holder],
                    total=self.total,
                )
                self.hold(holder, 0)
                holder.abort()
                if self.total <= self.bytes_max:
                    return


class Memory:
    """The memory that a broker may hold for its clients."""

    def __init__(self, queued_bytes_max: int) -> None:
        """``queued.max.request.bytes``; below 1, our own limit applies."""
        request_bytes_max = limits.REQUEST_BYTES_IN_FLIGHT_MAX
        if queued_bytes_max > 0:
            request_bytes_max = queued_bytes_max
        self.requests = InFlight("requests", request_bytes_max, spare_work=True)
        self.answers = InFlight("answers", limits.ANSWER_BYTES_IN_FLIGHT_MAX, spare_work=False)
