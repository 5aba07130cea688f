"""One turn of a coordinator's thread: committed batches, finds, strict reads, writes. Its only I/O
is the state's."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeGuard

from skylog.diskless.coordinator.machine import CoordinatorMachine
from skylog.diskless.coordinator.requests import (
    CommitFile,
    Find,
    ForgetFiles,
    ListOffsets,
    StrictRead,
    Write,
)
from skylog.diskless.coordinator.state import Applied
from skylog.diskless.coordinator.tail import Added, Changed
from skylog.diskless.coordinator.wire import committed
from skylog.diskless.plane import TopicPartition
from skylog.diskless.rules.pins import is_staged
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.ids import Uuid
from skylog.kernel.limits import DISKLESS_GATHERED_BATCHES_MAX, DISKLESS_INLINE_BATCHES_MAX
from skylog.kernel.logging import get_logger
from skylog.wire.batch import Batch, Compression
from skylog.wire.messages.file_committed_record import FileCommittedRecord
from skylog.wire.messages.records_deleted_record import RecordsDeletedRecord
from skylog.wire.messages.records_pruned_record import RecordsPrunedRecord
from skylog.wire.messages.topic_deleted_record import TopicDeletedRecord
from skylog.wire.metadata_records import encode_diskless
from skylog.wire.records import encode_batch
from skylog.wire.schema import Message

_log = get_logger("diskless.coordinator")


@dataclass(frozen=True, slots=True)
class PendingBatch:
    """Appended, or about to be; applied once the high watermark has reached its end."""

    records: Sequence[Message]
    encoded: bytes
    end_offset: int
    timestamp_ms: int
    # Only for the commit of a file: its batches, and its effect on their partitions. The effects of
    # other records are known only from the state, once they are applied.
    batches: int = 0
    changed: Mapping[TopicPartition, Changed] | None = None

    def applied(self) -> Applied:
        crc = Batch(self.encoded).crc
        base_offset = self.end_offset - len(self.records)
        return Applied(self.end_offset, self.timestamp_ms, base_offset, crc)


@dataclass(frozen=True, slots=True)
class Handled:
    """``end_offset``: the high watermark that the reply must wait for.

    A strict read has no reply until then.
    """

    end_offset: int
    reply: Any = None
    batch: PendingBatch | None = None
    joined: bool = False
    wait: bool = False


@dataclass(slots=True)
class Turn:
    """The work of a turn, and its results in the same order."""

    finds: Sequence[Find | ForgetFiles]
    committed: Sequence[PendingBatch]
    reads: Sequence[StrictRead]
    requests: Sequence[Write | StrictRead]
    # The log's end before and after the turn.
    end_offset: int
    now_ms: int
    batch_bytes_max: int
    # The offset up to which the effects of committed batches are already known.
    followed: int = 0
    found: list[Any] = field(default_factory=list)
    # Partitions changed by the committed batches, and what was added to them.
    changed: dict[TopicPartition, Changed] = field(default_factory=dict)
    topics_deleted: list[Uuid] = field(default_factory=list)
    read: list[Any] = field(default_factory=list)
    handled: list[Handled] = field(default_factory=list)

    @property
    def idle(self) -> bool:
        return not (self.finds or self.committed or self.reads or self.requests)

    @property
    def may_gather(self) -> bool:
        """Whether nothing needs the committed batches in the state yet."""
        count = sum(batch.batches for batch in self.committed)
        return self._has_commits_only and count < DISKLESS_GATHERED_BATCHES_MAX

    def is_short(self, machine: CoordinatorMachine) -> bool:
        """Whether it takes less time than handing it to a thread: few committed batches and few
        offset lookups, which need only recently used parts of the state."""
        if self.finds or not self._committed_by_files:
            return False
        if self.committed and machine.expires_by(self.committed[-1].timestamp_ms):
            return False
        count = sum(batch.batches for batch in self.committed)
        for request in (*self.reads, *self.requests):
            if isinstance(request, ListOffsets) and request.by_name:
                count += len(request.requests)
            elif _is_plain_commit(request):
                count += len(request.file.batches)
            else:
                return False
        return count <= DISKLESS_INLINE_BATCHES_MAX

    @property
    def _has_commits_only(self) -> bool:
        return (
            not self.finds
            and not self.reads
            and self._committed_by_files
            and all(map(_is_plain_commit, self.requests))
        )

    @property
    def _committed_by_files(self) -> bool:
        return all(batch.changed is not None for batch in self.committed)

    def run(self, machine: CoordinatorMachine) -> None:
        """Raises only if the state can no longer be trusted."""
        # First, so that a client that knows of a commit finds it.
        if self.committed:
            self._apply(machine)
        for request in self.finds:
            if isinstance(request, ForgetFiles):
                machine.forget(request)
                self.found.append(None)
            else:
                self.found.append(_answer(machine.find, request))
        self.read = [self._answered(machine, request) for request in self.reads]
        for one in self.requests:
            if isinstance(one, StrictRead):
                self.handled.append(self._read(machine, one))
            else:
                self.handled.append(self._handle(machine, one))

    def _read(self, machine: CoordinatorMachine, request: StrictRead) -> Handled:
        if self.end_offset > machine.state.applied.end_offset:
            return Handled(self.end_offset, wait=True)
        return Handled(self.end_offset, self._answered(machine, request))

    def _answered(self, machine: CoordinatorMachine, request: StrictRead) -> Any:
        return _answer(lambda one: machine.read(one, self.now_ms), request)

    def _apply(self, machine: CoordinatorMachine) -> None:
        with machine.state.transaction():
            for batch in self.committed:
                machine.apply(batch.records, batch.applied())
        machine.committed()
        for batch in self.committed:
            if batch.end_offset <= self.followed:
                continue
            offset = batch.end_offset - len(batch.records)
            for place, record in enumerate(batch.records):
                self._note_changed(record, offset + place)
        for partition, changed in self.changed.items():
            changed.log = machine.state.log(partition)

    def _note_changed(self, record: Message, offset: int) -> None:
        match record:
            case FileCommittedRecord():
                for topic in record.topics:
                    for part in topic.partitions:
                        changed = self._changed(topic.topic_id, part.partition_index)
                        batches = [committed(one, record.object_key) for one in part.batches]
                        changed.added.append(Added(record.object_key, offset, batches))
            case RecordsDeletedRecord() | RecordsPrunedRecord():
                self._changed(record.topic_id, record.partition_index)
            case TopicDeletedRecord():
                self.topics_deleted.append(record.topic_id)

    def _changed(self, topic_id: Uuid, index: int) -> Changed:
        return self.changed.setdefault((topic_id, index), Changed())

    def _handle(self, machine: CoordinatorMachine, write: Write) -> Handled:
        try:
            decision = machine.handle(write, self.now_ms)
            if not decision.records:
                return Handled(self.end_offset, decision.reply, joined=decision.joined)
            encoded = encode_records(decision.records, self.now_ms)
            if len(encoded) > self.batch_bytes_max:
                raise KafkaError(
                    ErrorCode.MESSAGE_TOO_LARGE,
                    f"a {type(write).__name__} of {len(encoded)} bytes of metadata",
                )
        except KafkaError as error:
            return Handled(self.end_offset, error)
        except sqlite3.Error:
            raise
        except Exception:  # noqa: BLE001 - logged
            return Handled(self.end_offset, _failed(write))
        offset = self.end_offset
        machine.note(decision, offset)
        self.end_offset += len(decision.records)
        batches, changed = 0, None
        if decision.commit is not None:
            batches, changed = decision.commit.plan.accepted_count, decision.commit.changed(offset)
        batch = PendingBatch(
            decision.records, encoded, self.end_offset, self.now_ms, batches, changed
        )
        return Handled(self.end_offset, decision.reply, batch)


def _is_plain_commit(request: Write | StrictRead) -> TypeGuard[CommitFile]:
    return isinstance(request, CommitFile) and not is_staged(request.file.object_key)


def _answer(ask: Callable[[Any], Any], request: Any) -> Any:
    """An invalid request is refused; a failing cache is not the request's fault."""
    try:
        return ask(request)
    except KafkaError as error:
        return error
    except sqlite3.Error:
        raise
    except Exception:  # noqa: BLE001 - logged
        return _failed(request)


def _failed(request: Any) -> KafkaError:
    _log.exception("coordinator request failed", request=type(request).__name__)
    return KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)


def encode_records(records: Sequence[Message], now_ms: int) -> bytes:
    """One atomic batch of the metadata log."""
    values = [(None, encode_diskless(record)) for record in records]
    return encode_batch(values, timestamp=now_ms, codec=Compression.ZSTD)
