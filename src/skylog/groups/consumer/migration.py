"""A live group changes its protocol: to the consumer protocol with the first member that uses
it, and back to classic when the last such member has left. Members keep their partitions
meanwhile."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from skylog.groups.consumer.consumer_group import ConsumerGroup
from skylog.groups.consumer.embedded import (
    decode_assignment,
    decode_subscription,
    encode_assignment,
)
from skylog.groups.consumer.hashing import metadata_hash
from skylog.groups.consumer.member import ClassicMetadata, ConsumerMember, Partitions, with_epoch
from skylog.groups.consumer.records import apply_record, group_records, group_tombstones
from skylog.groups.consumer.step import ConsumerStep
from skylog.groups.consumer.world import World
from skylog.groups.members import CONSUMER_PROTOCOL_TYPE, ClassicGroup, GroupState, Member
from skylog.groups.rebalance import prepare_rebalance
from skylog.groups.records import group_record, group_tombstone
from skylog.groups.settings import GroupSettings
from skylog.groups.step import Step, join_key, sync_key
from skylog.kernel.errors import ErrorCode, KafkaError, ProtocolError
from skylog.kernel.ids import Uuid
from skylog.replicated.machine import Answer, CancelTimer
from skylog.wire.messages.join_group_response import JoinGroupResponse
from skylog.wire.messages.sync_group_response import SyncGroupResponse

UPGRADES: Final = ("upgrade", "bidirectional")
DOWNGRADES: Final = ("downgrade", "bidirectional")


# Classic to consumer


def check_upgrade(group: ClassicGroup, settings: GroupSettings) -> None:
    why = None
    if settings.migration_policy not in UPGRADES:
        why = "online upgrade is disabled"
    elif not group.uses_consumer_protocol:
        why = "the group does not use the consumer embedded protocol"
    elif len(group.members) > settings.consumer_group_size_max:
        why = "the group size exceeds the consumer group maximum size"
    if why is not None:
        raise _no_upgrade(group, why)


def _no_upgrade(group: ClassicGroup, why: str) -> KafkaError:
    return KafkaError(
        ErrorCode.GROUP_ID_NOT_FOUND,
        f"Cannot upgrade classic group {group.group_id} to consumer group because {why}.",
    )


def upgrade(group: ClassicGroup, step: ConsumerStep) -> None:
    """Convert a classic group to the step's new group; waiting members must rejoin."""
    _answer_all(step, group.members.values())
    new = step.group = _converted(group, step.world)
    step.records.append(group_tombstone(group.group_id))
    step.records += group_records(new)
    for kind in ("join", "sync"):
        step.effects.append(CancelTimer((kind, group.group_id)))
    for member in new.members.values():
        if member.classic is not None:
            step.start_session(member.member_id, member.classic.session_timeout_ms)


def _answer_all(step: ConsumerStep, members: Iterable[Member]) -> None:
    code, group_id = ErrorCode.REBALANCE_IN_PROGRESS, step.group_id
    for member in members:
        if member.awaiting_join:
            response = JoinGroupResponse(error_code=code, member_id=member.member_id)
            step.effects.append(Answer(join_key(group_id, member.member_id), response))
        if member.awaiting_sync:
            key = sync_key(group_id, member.member_id)
            step.effects.append(Answer(key, SyncGroupResponse(error_code=code)))


def _converted(group: ClassicGroup, world: World) -> ConsumerGroup:
    new = ConsumerGroup(group.group_id, epoch=group.generation, target_epoch=group.generation)
    for member in group.members.values():
        try:
            target = _assigned(group, member, world)
            converted = _consumer_member(group, member, target)
        except ProtocolError as error:
            raise _no_upgrade(group, "the embedded consumer protocol is malformed") from error
        new.target[member.member_id] = target
        new.put(converted)
    new.metadata_hash = metadata_hash(new.subscribed_after((), None), world.topics)
    # A group is defined by its records, also before they are written.
    written = ConsumerGroup(group.group_id)
    for record in group_records(new):
        apply_record(written, record)
    return written


def _assigned(group: ClassicGroup, member: Member, world: World) -> Partitions:
    if not member.assignment:  # it has joined but not synced yet
        return {}
    assignment = decode_assignment(member.assignment)
    if assignment.user_data:
        raise KafkaError(
            ErrorCode.GROUP_ID_NOT_FOUND,
            f"Cannot upgrade classic group {group.group_id} to consumer group because an"
            " unsupported custom assignor is in use. Please refer to the documentation or switch"
            " to a default assignor before re-attempting the upgrade.",
        )
    found: dict[Uuid, frozenset[int]] = {}
    for topic in assignment.assigned_partitions:
        topic_id = world.topics.topic_id(topic.topic)
        if topic_id is not None:
            found[topic_id] = frozenset(topic.partitions)
    return found


def _consumer_member(group: ClassicGroup, member: Member, target: Partitions) -> ConsumerMember:
    subscription = decode_subscription(member.metadata(group.protocol_name))
    return ConsumerMember(
        member_id=member.member_id,
        epoch=group.generation,
        previous_epoch=group.generation,
        instance_id=member.instance_id,
        rack_id=subscription.rack_id or None,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        client_id=member.client_id,
        client_host=member.client_host,
        topics=frozenset(subscription.topics),
        assigned=with_epoch(target, group.generation),
        classic=ClassicMetadata(member.session_timeout_ms, member.protocols),
    )


# Consumer to classic


def may_downgrade(step: ConsumerStep, leaving: Sequence[ConsumerMember]) -> bool:
    """Whether only classic members remain after members leave or one is replaced."""
    left = len(step.group.members) - len(leaving)
    classic = step.group.classic_count - sum(m.classic is not None for m in leaving)
    return left > 0 and classic == left and _allowed(step, left)


def may_downgrade_by(step: ConsumerStep, replaced: ConsumerMember | None) -> bool:
    """The same for a static member that returns with the classic protocol."""
    group = step.group
    if replaced is None or replaced.classic is not None:
        return False
    return group.classic_count == len(group.members) - 1 and _allowed(step, len(group.members))


def _allowed(step: ConsumerStep, size: int) -> bool:
    settings = step.settings
    return settings.migration_policy in DOWNGRADES and size <= settings.group_size_max


def downgrade(
    step: ConsumerStep,
    leaving: Sequence[ConsumerMember],
    joining: ConsumerMember | None = None,
    *,
    rebalance: bool = True,
) -> None:
    """Continue as a classic group with the remaining members, and ``joining`` for its instance."""
    group = step.group
    replaced = group.static_member(joining.instance_id) if joining is not None else None
    renamed = {replaced.member_id: joining.member_id} if replaced and joining else {}
    gone = {member.member_id for member in leaving}
    members = [m for m in group.members.values() if m.member_id not in {*gone, *renamed}]
    if joining is not None:
        members.append(joining)
    new = ClassicGroup(
        group.group_id,
        state=GroupState.STABLE,
        state_since_ms=step.now_ms,
        generation=group.epoch,
        protocol_type=CONSUMER_PROTOCOL_TYPE,
    )
    for member in members:
        if member.classic is not None:
            new.put(_classic_member(member))
    new.protocol_name = new.select_protocol()
    new.subscribed_topics = new.find_subscribed_topics()
    of_target = {renamed.get(m, m): found for m, found in group.target.items()}
    for member_id in list(new.members):
        _assign(new, member_id, of_target.get(member_id, {}), step.world)
    classic = Step(new, step.sessions, step.settings, step.now_ms)
    classic.records += group_tombstones(group, renamed)
    classic.records.append(group_record(new))
    for member_id in new.members:
        classic.start_session(member_id, new.members[member_id].session_timeout_ms)
        for kind in ("join", "sync"):
            step.end_wait(kind, member_id)
    if rebalance:
        prepare_rebalance(classic)
    result = classic.result(None)
    step.records += result.records
    step.volatile += result.volatile
    step.effects += result.effects


def _classic_member(member: ConsumerMember) -> Member:
    classic = member.classic or ClassicMetadata(0, ())
    return Member(
        member_id=member.member_id,
        instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        session_timeout_ms=classic.session_timeout_ms,
        protocol_type=CONSUMER_PROTOCOL_TYPE,
        protocols=classic.protocols,
    )


def _assign(group: ClassicGroup, member_id: str, target: Partitions, world: World) -> None:
    member = group.members[member_id]
    data = encode_assignment(target, member.metadata(group.protocol_name), world.topics)
    group.put(replace(member, assignment=data))
