"""Records of remote segments for tests, in few words."""

from __future__ import annotations

from skylog.kernel.ids import Uuid
from skylog.tiered.metadata.machine import Outcome, RemoteLog
from skylog.tiered.metadata.records import segment_started, segment_updated
from skylog.tiered.segments import RemoteSegment, SegmentState, TopicIdPartition
from skylog.wire.schema import Message

TOPIC_ID = Uuid.parse("lZ6vvmajTWKDBUTV6SQAtQ")
PARTITION = TopicIdPartition(TOPIC_ID, 0)
TOPIC = "topic1"


def segment_id(number: int) -> Uuid:
    return Uuid(number.to_bytes(16, "big"))


def segment(
    number: int,
    start: int,
    end: int,
    epochs: tuple[tuple[int, int], ...] = (),
    **more: object,
) -> RemoteSegment:
    fields: dict[str, object] = {
        "topic": TOPIC,
        "partition": PARTITION,
        "id": segment_id(number),
        "start_offset": start,
        "end_offset": end,
        "broker_id": 1,
        "max_timestamp_ms": end,
        "event_timestamp_ms": 1000,
        "epochs": epochs or ((0, start),),
        "size": end - start + 1,
    }
    return RemoteSegment(**(fields | more))  # type: ignore[arg-type]


def update(of: RemoteSegment, state: SegmentState, epoch: int = -1, log_start: int = -1) -> Message:
    return segment_updated(
        of, state, broker_id=2, now_ms=2000, copier_epoch=epoch, log_start_offset=log_start
    )


class History:
    """A remote log and the records that made it, at offsets 0, 1, 2 …"""

    def __init__(self) -> None:
        self.records: list[Message] = []
        self.log = RemoteLog(PARTITION, TOPIC)

    def add(self, record: Message) -> Outcome:
        self.records.append(record)
        return self.log.apply(record, len(self.records) - 1)

    def started(self, one: RemoteSegment, log_start: int = -1) -> Outcome:
        return self.add(segment_started(one, log_start))

    def update(
        self, one: RemoteSegment, state: SegmentState, epoch: int = -1, log_start: int = -1
    ) -> Outcome:
        return self.add(update(one, state, epoch, log_start))

    def finished(self, one: RemoteSegment, epoch: int = -1) -> Outcome:
        return self.update(one, SegmentState.COPY_FINISHED, epoch)

    def copied(self, *segments: RemoteSegment) -> None:
        for one in segments:
            assert self.started(one) is Outcome.EFFECTIVE
            assert self.finished(one) is Outcome.EFFECTIVE

    def deleted(self, one: RemoteSegment, epoch: int = -1, log_start: int = -1) -> None:
        for state in (SegmentState.DELETE_STARTED, SegmentState.DELETE_FINISHED):
            assert self.update(one, state, epoch, log_start) is Outcome.EFFECTIVE
