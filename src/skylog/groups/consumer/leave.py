"""Removal of members: they leave, time out, or their group becomes classic without them."""

from __future__ import annotations

from collections.abc import Sequence

from skylog.groups.consumer import migration
from skylog.groups.consumer.hashing import metadata_hash
from skylog.groups.consumer.member import ConsumerMember
from skylog.groups.consumer.records import epoch_record, member_tombstones, regex_tombstone
from skylog.groups.consumer.requests import EndRebalance, EndWait
from skylog.groups.consumer.step import ConsumerStep
from skylog.groups.requests import CheckSession
from skylog.replicated.machine import StartTimer


def fence(step: ConsumerStep, members: Sequence[ConsumerMember]) -> None:
    """Remove members from the group. If only classic ones remain, the group becomes classic."""
    group = step.group
    if not members:
        return
    for member in members:
        step.end_timers(member.member_id)
    if migration.may_downgrade(step, members):
        migration.downgrade(step, members)
        return
    for member in members:
        step.records += member_tombstones(group.group_id, member.member_id)
    left = group.regex_subscribers_after(members, None)
    gone = dict.fromkeys(m.regex for m in members if m.regex and m.regex not in left)
    step.records += [regex_tombstone(group.group_id, regex) for regex in gone]
    names = group.subscribed_after(members, None)
    new_hash = metadata_hash(names, step.world.topics)
    step.records.append(epoch_record(group.group_id, group.epoch + 1, new_hash))


# Timers. Each may fire late: the state says whether it still applies.


def check_session(step: ConsumerStep, timer: CheckSession) -> None:
    session = step.sessions.get(timer.member_id)
    member = step.group.members.get(timer.member_id)
    if session is None or member is None:
        return
    if step.now_ms < session.deadline_ms:
        # A clock that was set back must not keep a dead member for hours.
        remaining_ms = min(session.deadline_ms - step.now_ms, _session_ms_max(step, member))
        step.start_session(timer.member_id, remaining_ms, timer_fired=True)
    else:
        fence(step, [member])


def _session_ms_max(step: ConsumerStep, member: ConsumerMember) -> int:
    own = step.world.config(step.group_id).session_timeout_ms
    return own if member.classic is None else max(own, member.classic.session_timeout_ms)


def end_rebalance(step: ConsumerStep, timer: EndRebalance) -> None:
    """A member that had to revoke partitions, and has not, is removed."""
    member = step.group.members.get(timer.member_id)
    if member is not None and member.epoch == timer.epoch:
        fence(step, [member])


def end_wait(step: ConsumerStep, timer: EndWait) -> None:
    deadline_ms = step.group.waits.get((timer.member_id, timer.kind))
    member = step.group.members.get(timer.member_id)
    if deadline_ms is None or member is None:
        return
    if step.now_ms < deadline_ms:
        remaining_ms = min(deadline_ms - step.now_ms, max(member.rebalance_timeout_ms, 0))
        key = (timer.kind, timer.group_id, timer.member_id)
        step.effects.append(StartTimer(key, remaining_ms, timer))
    else:
        fence(step, [member])
