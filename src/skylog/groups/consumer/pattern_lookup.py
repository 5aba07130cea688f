"""When a group's patterns are resolved, and the consequences of the matches."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

from skylog.groups.consumer.consumer_group import ConsumerGroup, ResolvedRegex
from skylog.groups.consumer.hashing import metadata_hash
from skylog.groups.consumer.member import ConsumerMember
from skylog.groups.consumer.re2 import compile_regex
from skylog.groups.consumer.records import epoch_record, regex_record, regex_tombstone
from skylog.groups.consumer.requests import RegexesResolved, Resolving
from skylog.groups.consumer.step import ConsumerStep
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.limits import GROUP_REGEXES_MAX

# A group's patterns are resolved at most this often.
REFRESH_INTERVAL_MIN_MS: Final = 10_000


class RegexChange(Enum):
    """How a heartbeat changed its member's pattern."""

    NONE = 0
    UNRESOLVED = 1  # the group's epoch is bumped once it has been resolved
    RESOLVED = 2


@dataclass(frozen=True, slots=True)
class RegexOutcome:
    change: RegexChange
    to_resolve: tuple[str, ...] = ()


def change_regex(
    step: ConsumerStep, member: ConsumerMember, updated: ConsumerMember
) -> RegexOutcome:
    """Set a member's new pattern, if it has one, and check whether the group's are out of date."""
    change, is_new = RegexChange.NONE, False
    after = step.group.regex_subscribers
    if member.regex != updated.regex:
        after = step.group.regex_subscribers_after([member], updated)
        change, is_new = _changed(step, member, updated)
    if not after or not _is_due(step, len(after), is_new=is_new):
        return RegexOutcome(change)
    step.volatile.append(Resolving(step.group_id, resolving=True))
    return RegexOutcome(change, tuple(after))


def _changed(
    step: ConsumerStep, member: ConsumerMember, updated: ConsumerMember
) -> tuple[RegexChange, bool]:
    group = step.group
    drop_regex(step, member)
    if not updated.regex:
        return RegexChange.RESOLVED, False
    if updated.regex not in group.regex_subscribers:
        if len(group.regex_subscribers) >= GROUP_REGEXES_MAX:
            raise KafkaError(
                ErrorCode.GROUP_MAX_SIZE_REACHED,
                f"The consumer group has {GROUP_REGEXES_MAX} regular expressions already.",
            )
        compile_regex(updated.regex)
        return RegexChange.UNRESOLVED, True
    known = updated.regex in group.regexes
    return RegexChange.RESOLVED if known else RegexChange.UNRESOLVED, False


def drop_regex(step: ConsumerStep, member: ConsumerMember) -> bool:
    """A member drops its pattern, if it has one: unused ones are forgotten."""
    if member.regex and step.group.regex_subscribers[member.regex] == 1:
        step.records.append(regex_tombstone(step.group_id, member.regex))
    return bool(member.regex)


def _is_due(step: ConsumerStep, regex_count: int, *, is_new: bool) -> bool:
    group, topics = step.group, step.world.topics
    if group.resolving or step.now_ms < group.resolve_from_ms <= _soon(step):
        return False
    last = next(iter(group.regexes.values()), None)
    if last is None:
        return True
    age_ms = step.now_ms - last.timestamp_ms
    if 0 <= age_ms <= REFRESH_INTERVAL_MIN_MS:
        return False
    return (
        is_new
        or regex_count != len(group.regexes)
        or last.version < topics.created_version
        or not 0 <= age_ms <= step.settings.regex_refresh_interval_ms
    )


def _soon(step: ConsumerStep) -> int:
    return step.now_ms + REFRESH_INTERVAL_MIN_MS


def resolved(step: ConsumerStep, outcome: RegexesResolved) -> None:
    """Store the matches of a group's patterns; if the topics changed, a new epoch begins."""
    group, changed = step.group, False
    from_ms = 0 if outcome.topics else _soon(step)  # do not retry a failure at once
    step.volatile.append(Resolving(group.group_id, resolving=False, from_ms=from_ms))
    found: dict[str, ResolvedRegex] = dict(group.regexes)
    for regex, names in outcome.topics.items():
        if regex not in group.regex_subscribers:
            continue
        before = group.regexes.get(regex)
        changed |= names != (frozenset() if before is None else before.topics)
        found[regex] = ResolvedRegex(names, outcome.version, outcome.timestamp_ms)
        step.records.append(regex_record(group.group_id, regex, found[regex]))
    if not outcome.topics:
        return
    new_hash = metadata_hash(_subscribed(group, found), step.world.topics)
    if changed or new_hash != group.metadata_hash:
        step.records.append(epoch_record(group.group_id, group.epoch + 1, new_hash))
        step.metadata_checked()


def _subscribed(group: ConsumerGroup, regexes: dict[str, ResolvedRegex]) -> set[str]:
    return set(group.subscribers).union(*(resolved.topics for resolved in regexes.values()))
