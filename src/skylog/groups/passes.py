"""Passes over all groups: expired offsets, and offsets of deleted topics.

A pass runs in bounded parts, so that it does not block requests; a timer starts the next part at
once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from skylog.groups import offsets
from skylog.groups.consumer.consumer_group import ConsumerGroup
from skylog.groups.consumer.records import ConsumerRecord, group_tombstones
from skylog.groups.members import ClassicGroup, GroupState
from skylog.groups.records import GroupsRecord, OffsetRecord, group_tombstone
from skylog.groups.requests import ExpireOffsets, TopicsDeleted
from skylog.groups.settings import GroupSettings
from skylog.kernel.limits import GROUP_PASS_GROUPS_MAX, GROUP_PASS_RECORDS_BYTES_MAX
from skylog.replicated.machine import Effect, Result, StartTimer

# In a batch, in addition to the names in its key.
_TOMBSTONE_OVERHEAD_BYTES: Final = 64
AnyGroup = ClassicGroup | ConsumerGroup


def is_empty(group: AnyGroup) -> bool:
    if isinstance(group, ConsumerGroup):
        return not group.members
    return group.state is GroupState.EMPTY


def tombstones(group: AnyGroup) -> list[GroupsRecord]:
    """The tombstone of a group without members; its offsets are separate."""
    if isinstance(group, ConsumerGroup):
        return [*group_tombstones(group, {})]
    return [group_tombstone(group.group_id)]


def next_expiry(settings: GroupSettings) -> StartTimer:
    return StartTimer("expiry", settings.offsets_check_interval_ms, ExpireOffsets())


def remove_offsets(
    request: ExpireOffsets | TopicsDeleted,
    group_ids: Sequence[str],
    removed: Callable[[str], list[GroupsRecord]],
    settings: GroupSettings,
) -> Result[Any]:
    """One part of a pass; ``removed`` returns what to remove from a group."""
    records: list[GroupsRecord] = []
    done, room = 0, GROUP_PASS_RECORDS_BYTES_MAX
    for group_id in group_ids[:GROUP_PASS_GROUPS_MAX]:
        all_of_group = removed(group_id)
        fitting = _fitting(all_of_group, room)
        records += fitting
        room -= sum(map(_tombstone_bytes, fitting))
        if len(fitting) < len(all_of_group):
            break  # the next part continues with this group
        done += 1
    rest = tuple(group_ids[done:])
    effects: tuple[Effect, ...] = ()
    match request:
        case ExpireOffsets():
            more = StartTimer("expiry", 0, ExpireOffsets(rest))
            effects = (more if rest else next_expiry(settings),)
        case TopicsDeleted(topics) if rest:
            effects = (StartTimer(("deleted", topics), 0, TopicsDeleted(topics, rest)),)
    return Result(None, records, effects=effects)


def expired(
    group: AnyGroup, known: offsets.Offsets, settings: GroupSettings, now_ms: int
) -> list[GroupsRecord]:
    """Expired offsets, and with the last of them the group."""
    records: list[GroupsRecord] = [
        *offsets.expired_tombstones(group, known, settings.offsets_retention_ms, now_ms)
    ]
    nothing_left = len(records) == sum(map(len, known.of_group(group.group_id).values()))
    if nothing_left and is_empty(group) and not known.pending.of_group(group.group_id):
        records += tombstones(group)
    return records


def _fitting(records: list[GroupsRecord], bytes_max: int) -> list[GroupsRecord]:
    """The first records, up to the size limit."""
    fitting: list[GroupsRecord] = []
    for record in records:
        if bytes_max <= 0:
            break
        bytes_max -= _tombstone_bytes(record)
        fitting.append(record)
    return fitting


def _tombstone_bytes(record: GroupsRecord) -> int:
    if isinstance(record, ConsumerRecord):
        return _TOMBSTONE_OVERHEAD_BYTES + len(record.key.group_id.encode())
    names = len(record.key.group.encode())
    if isinstance(record, OffsetRecord):
        names += len(record.key.topic)
    return _TOMBSTONE_OVERHEAD_BYTES + names
