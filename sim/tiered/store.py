"""The object store, and the metadata topic: what all brokers share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from sim.tiered.waiting import Request
from skylog.log.checkpoints import encode_snapshot
from skylog.objects.store import NotFound, ObjectError, Outcome
from skylog.tiered.metadata.machine import RemoteLog
from skylog.tiered.ports import SegmentFiles
from skylog.tiered.segments import IndexType, RemoteSegment, SegmentState, TopicIdPartition
from skylog.wire.messages.remote_log_segment_metadata_record import (
    RemoteLogSegmentMetadataRecord,
)
from skylog.wire.metadata_records import decode_remote_log

if TYPE_CHECKING:
    from sim.tiered.disk import Record, SimLog

PUT_ORDER: Final = ("log", "indexes", "manifest")
DELETE_ORDER: Final = ("manifest", "log", "indexes")


@dataclass(slots=True)
class Stored:
    """What is in the bucket: by segment id, then by name."""

    objects: dict[bytes, dict[str, Any]] = field(default_factory=dict)
    changes: int = 0
    # Segments with a put that may have come behind their deletion.
    late: set[bytes] = field(default_factory=set)

    def put(self, id_: bytes, name: str, content: Any) -> None:
        self.changes += 1
        known = self.objects.setdefault(id_, {}).setdefault(name, content)
        assert known == content, "other bytes under the same key"

    def delete(self, id_: bytes, name: str) -> None:
        self.changes += 1
        found = self.objects.get(id_, {})
        found.pop(name, None)
        if not found:
            self.objects.pop(id_, None)

    def record(self, segment: RemoteSegment, offset: int) -> Record | None:
        log = self.objects.get(segment.id, {}).get("log")
        return None if log is None else log[offset - segment.start_offset]


class SimStorage:
    """Implements ``tiered.ports.RemoteStorage`` for one broker. Each object is one request."""

    def __init__(
        self,
        stored: Stored,
        log: SimLog,
        send: Callable[[Request], None],
        check: Callable[[str, RemoteSegment], None],
    ) -> None:
        self._stored = stored
        self._log = log
        self._send = send
        self._check = check

    async def copy(self, segment: RemoteSegment, files: SegmentFiles) -> bytes | None:
        self._check("put", segment)
        offsets = range(segment.start_offset, segment.end_offset + 1)
        records = [self._log.record(offset) for offset in offsets]
        if None in records:
            raise FileNotFoundError(str(segment.start_offset))
        contents = {"log": records, "indexes": files.leader_epochs, "manifest": segment.size}
        for name in PUT_ORDER:
            await self._ask(
                segment,
                f"put {name}",
                lambda name=name: self._stored.put(segment.id, name, contents[name]),  # type: ignore[misc]
            )
        return None

    async def delete(self, segment: RemoteSegment) -> None:
        for name in DELETE_ORDER:
            self._check("delete", segment)
            await self._ask(
                segment,
                f"delete {name}",
                lambda name=name: self._stored.delete(segment.id, name),  # type: ignore[misc]
            )

    async def fetch(self, segment: RemoteSegment, start: int, end: int) -> bytes:
        raise NotFound(str(segment.id))  # readers are not played here

    async def fetch_index(self, segment: RemoteSegment, kind: IndexType) -> bytes:
        found = await self._ask(
            segment, "get", lambda: self._stored.objects.get(segment.id, {}).get("indexes")
        )
        if found is None:
            raise NotFound(str(segment.id))
        return found if kind is IndexType.LEADER_EPOCH else encode_snapshot(())

    async def _ask(self, segment: RemoteSegment, name: str, act: Callable[[], Any]) -> Any:
        request = Request(name, act, segment.id)
        self._send(request)
        return await request.answered(ObjectError(name, Outcome.AMBIGUOUS))


class MetadataLog:
    """One partition of the metadata topic; ``truth`` is what its committed records say.

    While it has one replica in sync, a power cut loses what was not synced.
    """

    def __init__(self, partition: TopicIdPartition, topic: str) -> None:
        self.values: list[bytes] = []
        self.synced = 0
        self.is_alone = False
        # Grows when records are lost.
        self.life = 0
        self.committed = 0
        self.truth = RemoteLog(partition, topic)
        # Called when a segment that was finished is to be deleted.
        self.on_delete: Callable[[Any], None] = lambda segment: None
        # All ids that were ever begun.
        self.started: set[bytes] = set()

    def finished(self) -> list[RemoteSegment]:
        return [one for one in self.truth.all() if one.state is SegmentState.COPY_FINISHED]

    def append(self, value: bytes) -> int:
        self.values.append(value)
        self.advance()
        return len(self.values) - 1

    @property
    def high_watermark(self) -> int:
        return self.synced if self.is_alone else len(self.values)

    def advance(self) -> None:
        while self.committed < self.high_watermark:
            record = self.record(self.committed)
            before = self.truth.segment(record.remote_log_segment_id.id)
            self.truth.apply(record, self.committed)
            after = self.truth.segment(record.remote_log_segment_id.id)
            is_finished = after is not None and after.state is SegmentState.COPY_FINISHED
            if before and before.state is SegmentState.COPY_FINISHED and not is_finished:
                self.on_delete(before)
            if isinstance(record, RemoteLogSegmentMetadataRecord):
                self.started.add(bytes(record.remote_log_segment_id.id))
            self.committed += 1

    def sync(self) -> None:
        self.synced = len(self.values)
        self.advance()

    def record(self, offset: int) -> Any:
        return decode_remote_log(self.values[offset])

    def power_cut(self) -> int:
        """How many records are gone."""
        lost = len(self.values) - self.synced if self.is_alone else 0
        if lost:
            self.life += 1
            del self.values[self.synced :]
        if self.committed > len(self.values):
            self.committed, old = 0, self.truth
            self.truth = RemoteLog(old.partition, old.topic)
            self.advance()
        return lost


def is_late(request: Request, topic: MetadataLog) -> bool:
    """Its sender has given up, or puts what the next leader deletes by now."""
    if not request.sender_waits or not request.name.startswith("put"):
        return not request.sender_waits
    segment = topic.truth.segment(request.about)
    return segment is None or segment.state is SegmentState.DELETE_STARTED
