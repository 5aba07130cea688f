"""Reconciles a member's assignment with its target.

===================== ============================================================================
state of a member     goes to
===================== ============================================================================
stable                unrevoked: it owns what is not its target's · unreleased: others own what is
                      · stable, in the target's epoch
unrevoked             the same, once it no longer reports what it was asked to give up
unreleased            the same, whenever others have let go
===================== ============================================================================

A partition has one owner: no member gets it before the previous owner has confirmed its revocation.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container
from dataclasses import dataclass, replace

from skylog.groups.consumer.consumer_group import NO_EPOCH
from skylog.groups.consumer.member import ConsumerMember, MemberState, Owned, Partitions
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.ids import Uuid

# The partitions that a member reports as owned, None if it does not report them.
Reported = Collection[tuple[Uuid, int]] | None
STABLE, UNREVOKED, UNRELEASED = (
    MemberState.STABLE,
    MemberState.UNREVOKED_PARTITIONS,
    MemberState.UNRELEASED_PARTITIONS,
)


@dataclass(frozen=True, slots=True)
class Goal:
    """The input of a member's next step; ``owned_epoch`` is -1 for a partition without an owner."""

    target_epoch: int
    target: Partitions
    topic_ids: Container[Uuid]
    owned_epoch: Callable[[Uuid, int], int]
    reported: Reported
    subscription_changed: bool = False


def reconcile(member: ConsumerMember, goal: Goal) -> ConsumerMember:
    """The member after its next step; the same one if there is nothing to do."""
    match member.state:
        case MemberState.STABLE:
            if member.epoch == goal.target_epoch:
                return _unsubscribe(member, goal) if goal.subscription_changed else member
        case MemberState.UNREVOKED_PARTITIONS:
            if _reports_any(member.revoking, goal.reported):
                return _unsubscribe(member, goal) if goal.subscription_changed else member
        case MemberState.UNKNOWN:
            if goal.reported is None or goal.reported:
                raise KafkaError(
                    ErrorCode.FENCED_MEMBER_EPOCH,
                    "The consumer group member is in a unknown state. "
                    "The member must abandon all its partitions and rejoin.",
                )
    return _advance(member, goal)


def _reports_any(owned: Owned, reported: Reported) -> bool:
    if reported is None:
        return True
    return any(partition in owned.get(topic_id, {}) for topic_id, partition in reported)


def _unsubscribe(member: ConsumerMember, goal: Goal) -> ConsumerMember:
    """A member that stays in its epoch revokes topics that it no longer subscribes to."""
    gone = {t: found for t, found in member.assigned.items() if t not in goal.topic_ids}
    if not gone:
        return member
    kept = {t: found for t, found in member.assigned.items() if t not in gone}
    revoking = dict(member.revoking)
    for topic_id, found in gone.items():
        revoking[topic_id] = {**revoking.get(topic_id, {}), **found}
    if _reports_any(revoking, goal.reported):
        return _moved(member, UNREVOKED, member.epoch, kept, revoking)
    return replace(member, previous_epoch=member.epoch, assigned=kept)


def _advance(member: ConsumerMember, goal: Goal) -> ConsumerMember:
    assigned: dict[Uuid, dict[int, int]] = {}
    revoking: dict[Uuid, dict[int, int]] = {}
    pending: dict[Uuid, list[int]] = {}
    unreleased = False
    for topic_id in sorted({*goal.target, *member.assigned}):
        wanted = goal.target.get(topic_id, frozenset()) if topic_id in goal.topic_ids else ()
        for partition, epoch in member.assigned.get(topic_id, {}).items():
            kept = assigned if partition in wanted else revoking
            kept.setdefault(topic_id, {})[partition] = epoch
        for partition in sorted(wanted):
            if partition in assigned.get(topic_id, {}):
                continue
            # Partitions that the member itself is revoking have no other owner.
            mine = partition in member.revoking.get(topic_id, {})
            if mine or goal.owned_epoch(topic_id, partition) == NO_EPOCH:
                pending.setdefault(topic_id, []).append(partition)
            else:
                unreleased = True
    if revoking and _reports_any(revoking, goal.reported):
        epoch = goal.target_epoch if member.state is MemberState.UNKNOWN else member.epoch
        return _moved(member, UNREVOKED, epoch, assigned, revoking)
    for topic_id, partitions in pending.items():
        fresh = dict.fromkeys(partitions, goal.target_epoch)
        assigned.setdefault(topic_id, {}).update(fresh)
    return _moved(member, UNRELEASED if unreleased else STABLE, goal.target_epoch, assigned, {})


def _moved(
    member: ConsumerMember, state: MemberState, epoch: int, assigned: Owned, revoking: Owned
) -> ConsumerMember:
    return replace(
        member,
        state=state,
        epoch=epoch,
        previous_epoch=member.epoch,
        assigned=assigned,
        revoking=revoking,
    )
