"""Traffic through the broker, counted per topic; read by /metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from skylog.wire.batch import Batch


class TopicTraffic:
    """Totals of one topic since the broker started."""

    __slots__ = (
        "bytes_in",
        "bytes_out",
        "messages_in",
        "produce_requests",
        "rejected_batches",
        "replication_bytes_in",
        "replication_bytes_out",
    )

    def __init__(self) -> None:
        self.bytes_in = 0
        self.bytes_out = 0
        self.messages_in = 0
        self.produce_requests = 0
        self.rejected_batches = 0
        self.replication_bytes_in = 0
        self.replication_bytes_out = 0


class Traffic:
    """Totals by topic; a topic that is deleted takes its totals with it."""

    def __init__(self) -> None:
        self.topics: dict[str, TopicTraffic] = {}

    def produced(self, topic: str, batch: Batch) -> None:
        totals = self._of(topic)
        totals.bytes_in += batch.size
        totals.messages_in += batch.record_count
        totals.produce_requests += 1

    def committed(self, topic: str, size: int) -> None:
        """A batch that a bulk writer staged in the bucket."""
        self._of(topic).bytes_in += size

    def rejected(self, topic: str) -> None:
        self._of(topic).rejected_batches += 1

    def fetched(self, topic: str, size: int) -> None:
        self._of(topic).bytes_out += size

    def replicated_in(self, topic: str, size: int) -> None:
        """A follower here has fetched this."""
        self._of(topic).replication_bytes_in += size

    def replicated_out(self, topic: str, size: int) -> None:
        """A leader here has sent this to a follower."""
        self._of(topic).replication_bytes_out += size

    def forget(self, topic: str) -> None:
        self.topics.pop(topic, None)

    def _of(self, topic: str) -> TopicTraffic:
        totals = self.topics.get(topic)
        if totals is None:
            totals = self.topics[topic] = TopicTraffic()
        return totals
