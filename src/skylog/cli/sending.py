"""Sends many records and counts them, without keeping them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from skylog.client.producer import Producer, RecordMetadata
from skylog.kernel.errors import KafkaError
from skylog.wire.records import Header


class Sender:
    """Counts stored records by partition; the first failure stops the sending."""

    def __init__(
        self,
        producer: Producer,
        topic: str,
        partition: int | None = None,
        headers: Sequence[Header] = (),
    ) -> None:
        self._producer = producer
        self._topic = topic
        self._partition = partition
        self._headers = headers
        self._stored: dict[int, list[int]] = {}
        self._failure: BaseException | None = None
        self.sent = 0
        self.stored = 0

    async def send(
        self,
        key: bytes | None,
        value: bytes | None,
        then: Callable[[], None] | None = None,
    ) -> None:
        """Send a record; raises the failure of an earlier one. ``then`` is called when it is
        stored."""
        self.raise_failure()
        result = await self._producer.send(
            self._topic, value, key=key, partition=self._partition, headers=self._headers
        )
        self.sent += 1
        result.add_done_callback(lambda done: self._note(done, then))

    def _note(self, done: asyncio.Future[RecordMetadata], then: Callable[[], None] | None) -> None:
        if done.cancelled():
            return
        error = done.exception()
        if error is not None:
            self._failure = self._failure or error
            return
        stored = done.result()
        self.stored += 1
        counts = self._stored.setdefault(stored.partition, [0, -1])
        counts[0] += 1
        counts[1] = max(counts[1], stored.offset)
        if then is not None:
            then()

    def raise_failure(self) -> None:
        if self._failure is None:
            return
        if isinstance(self._failure, KafkaError):
            message = f"after {self.stored} stored records: {self._failure.message or ''}"
            raise KafkaError(
                self._failure.code, message.rstrip(": "), ambiguous=self._failure.ambiguous
            ) from None
        raise self._failure

    def by_partition(self) -> list[dict[str, Any]]:
        """Records and last offset by partition; the offset is −1 if the broker returns none."""
        return [
            {"partition": partition, "records": count, "last_offset": last}
            for partition, (count, last) in sorted(self._stored.items())
        ]
