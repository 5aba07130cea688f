"""A reader that begins at the earliest record again and again, at one broker after another."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from skylog.kernel.errors import ErrorCode
from skylog.wire.batch import Batch, split_batches
from skylog.wire.records import decode_records
from tests.integration.racks_cluster import ZoneClient
from tests.integration.wire_client import Closed

EARLIEST = -2
PAUSE_SECONDS = 0.05
# What a fetch may say while leaders move, coordinators load or the metadata topic is read.
PASSING = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.REQUEST_TIMED_OUT,
    }
)


class LoopingReader(threading.Thread):
    """Every record once, in order, and the same in every loop; never out of range, unless the log
    start was moved meanwhile."""

    def __init__(
        self, addresses: Callable[[], list[str]], topic: str, more_passing: frozenset[ErrorCode]
    ) -> None:
        """``addresses`` are those of the brokers that run."""
        super().__init__(daemon=True)
        self._addresses = addresses
        self._topic = topic
        self._passing = PASSING | more_passing
        self._enough = threading.Event()
        self.loops = 0
        self.failure: str | None = None
        self.found: dict[int, bytes] = {}

    def run(self) -> None:
        turn = 0
        while not self._enough.is_set() and self.failure is None:
            addresses = self._addresses()
            turn += 1
            try:
                with ZoneClient(addresses[turn % len(addresses)]) as client:
                    self._loop(client)
            except (OSError, Closed, AssertionError):
                continue  # it was killed meanwhile
            # The brokers may be in this process, and need their share of it.
            self._enough.wait(PAUSE_SECONDS)

    def stop(self) -> None:
        self._enough.set()
        self.join(60)

    def _loop(self, client: ZoneClient) -> None:
        start = client.offset(self._topic, EARLIEST)
        if start.error_code:
            return self._refused(start.error_code, "earliest", client, 0)
        at: int = start.offset
        while not self._enough.is_set():
            answer = client.fetch(self._topic, at, wait_ms=0)
            if answer.error_code:
                return self._refused(answer.error_code, at, client, answer.log_start_offset)
            for batch in split_batches(answer.records or b""):
                at = self._take(batch, at)
            if at < 0:
                return None
            if at >= answer.high_watermark:
                self.loops += 1
                return None
        return None

    def _refused(self, error: int, at: object, client: ZoneClient, log_start: int) -> None:
        code = ErrorCode(error)
        is_deleted = code is ErrorCode.OFFSET_OUT_OF_RANGE and isinstance(at, int)
        if is_deleted and client.offset(self._topic, EARLIEST).offset > at:
            return
        if code not in self._passing:
            self.failure = f"{code.name} at {at}, log start {log_start}"

    def _take(self, batch: Batch, at: int) -> int:
        """Where to go on; −1 after a failure."""
        if at < 0 or batch.last_offset < at:
            return at
        if batch.base_offset > at:
            self.failure = f"{batch.base_offset} instead of {at}"
            return -1
        for number, record in enumerate(decode_records(batch)):
            offset, value = batch.base_offset + number, bytes(record.value or b"")
            known = self.found.setdefault(offset, value)
            if known != value:
                self.failure = f"{value!r} at {offset}, where {known!r} was"
                return -1
        return batch.next_offset


@contextmanager
def looping(
    addresses: Callable[[], list[str]],
    topic: str,
    more_passing: frozenset[ErrorCode] = frozenset(),
) -> Iterator[LoopingReader]:
    reader = LoopingReader(addresses, topic, more_passing)
    reader.start()
    try:
        yield reader
    finally:
        reader.stop()
    assert reader.failure is None, reader.failure
    assert reader.loops > 1
