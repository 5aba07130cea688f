"""The state of an offsets partition's machine, and the only code that changes it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from skylog.groups import offsets
from skylog.groups.consumer.consumer_group import ConsumerGroup
from skylog.groups.consumer.dispatch import take_note
from skylog.groups.consumer.records import ConsumerRecord, apply_record, group_records
from skylog.groups.consumer.requests import MetadataChecked, Resolving, WaitSet
from skylog.groups.members import ClassicGroup
from skylog.groups.passes import AnyGroup
from skylog.groups.records import GroupRecord, GroupsRecord, OffsetRecord, group_from
from skylog.groups.requests import GroupChanged, SessionEnded, SessionSet
from skylog.groups.step import Session
from skylog.log.producers import TransactionEnd
from skylog.replicated.machine import TransactionalRecord
from skylog.wire.messages.consumer_group_metadata_key import ConsumerGroupMetadataKey
from skylog.wire.messages.group_metadata_key import GroupMetadataKey
from skylog.wire.messages.group_metadata_value import GroupMetadataValue


class GroupTables:
    """Groups, committed offsets and sessions; changed by records and volatile events."""

    def __init__(self) -> None:
        self._groups: dict[str, AnyGroup] = {}
        # The last record of each classic group, from which a new leader would start.
        self._written: dict[str, GroupMetadataValue] = {}
        self._offsets = offsets.Offsets()
        self._sessions: dict[str, dict[str, Session]] = {}
        # Totals over the members of all groups.
        self._metadata_bytes = 0

    def apply(self, record: Any, offset: int) -> None:
        match record:
            case OffsetRecord():
                self._offsets.apply(record, offset)
                self._know_group(record)
            case TransactionalRecord(producer_id, OffsetRecord() as pending):
                self._offsets.apply_in_transaction(producer_id, pending, offset)
                self._know_group(pending)
            case TransactionalRecord():
                self.apply(record.record, offset)
            case TransactionEnd():
                self._offsets.end_transaction(record.producer_id, commits=record.marker.commits)
            case GroupRecord():
                self._apply_group(record)
            case ConsumerRecord():
                self._apply_consumer(record)
            case _:
                self._apply_event(record)

    def _know_group(self, record: OffsetRecord) -> None:
        if record.value is not None:  # a group without members may commit, too
            self._groups.setdefault(record.key.group, ClassicGroup(record.key.group))

    def _apply_event(self, event: Any) -> None:
        match event:
            case GroupChanged(group):
                self._put(group)
            case SessionSet(group_id, member_id, deadline_ms, timer_ms):
                sessions = self._sessions.setdefault(group_id, {})
                sessions[member_id] = Session(deadline_ms, timer_ms)
            case SessionEnded(group_id, member_id):
                sessions = self._sessions.get(group_id, {})
                if sessions.pop(member_id, None) is not None and not sessions:
                    del self._sessions[group_id]
            case MetadataChecked() | Resolving() | WaitSet():
                noted = self._groups.get(event.group_id)
                if isinstance(noted, ConsumerGroup):
                    take_note(noted, event)

    def snapshot(self) -> Iterator[GroupsRecord]:
        for group_id, value in self._written.items():
            yield GroupRecord(GroupMetadataKey(group_id), value)
        for group in self._groups.values():
            if isinstance(group, ConsumerGroup):
                yield from group_records(group)
        yield from self._offsets.records()

    # For looking at

    def group(self, group_id: str) -> AnyGroup | None:
        return self._groups.get(group_id)

    def offsets_of(self, group_id: str) -> offsets.TopicOffsets:
        return self._offsets.of_group(group_id)

    def _apply_group(self, record: GroupRecord) -> None:
        group_id = record.key.group
        if record.value is not None:
            self._written[group_id] = record.value
            self._put(group_from(group_id, record.value))
            return
        self._written.pop(group_id, None)
        if not isinstance(self._groups.get(group_id), ConsumerGroup):
            self._forget(group_id)

    def _apply_consumer(self, record: ConsumerRecord) -> None:
        group_id = record.key.group_id
        group = self._groups.get(group_id)
        if not isinstance(group, ConsumerGroup):
            if record.value is None:
                return  # of a group that has since been replaced
            group = ConsumerGroup(group_id)
            self._put(group)
        before = group.metadata_bytes
        apply_record(group, record)
        self._metadata_bytes += group.metadata_bytes - before
        if record.value is None and isinstance(record.key, ConsumerGroupMetadataKey):
            self._forget(group_id)

    def _put(self, group: AnyGroup) -> None:
        old = self._groups.get(group.group_id)
        self._metadata_bytes += group.metadata_bytes - (old.metadata_bytes if old else 0)
        self._groups[group.group_id] = group

    def _forget(self, group_id: str) -> None:
        group = self._groups.pop(group_id, None)
        self._metadata_bytes -= group.metadata_bytes if group is not None else 0
        self._sessions.pop(group_id, None)
