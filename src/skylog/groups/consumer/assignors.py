"""The server's assignors: pure functions from subscriptions and the last target to the next one.

``uniform`` keeps existing assignments where possible and balances the number of partitions;
``range`` gives each member a contiguous range of each topic, in the order of member ids, and keeps
nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from skylog.groups.consumer.balance import assign_unequal
from skylog.groups.consumer.member import Partitions
from skylog.kernel.ids import Uuid


@dataclass(frozen=True, slots=True)
class Subscriber:
    """A member as an assignor sees it: its topics, and its current partitions."""

    topic_ids: frozenset[Uuid]
    current: Partitions = field(default_factory=dict)
    instance_id: str | None = None


Subscribers = Mapping[str, Subscriber]
PartitionCounts = Mapping[Uuid, int]
Assignment = dict[str, Partitions]
Assignor = Callable[[Subscribers, PartitionCounts], Assignment]


def uniform(members: Subscribers, counts: PartitionCounts) -> Assignment:
    """Members get equal numbers of partitions, or one more; they keep what they have."""
    subscriptions = {member.topic_ids for member in members.values()}
    kept = _kept(members, counts)
    if len(subscriptions) <= 1:
        _assign_equal(kept, _missing(kept, next(iter(subscriptions), frozenset()), counts))
    else:
        topics = {member_id: member.topic_ids for member_id, member in members.items()}
        assign_unequal(kept, topics, counts)
    return {member_id: _partitions(found) for member_id, found in kept.items()}


TopicPartition = tuple[Uuid, int]
Draft = dict[str, list[TopicPartition]]


def _kept(members: Subscribers, counts: PartitionCounts) -> Draft:
    """Partitions that members had and may keep; one with two owners stays with the first."""
    taken: set[TopicPartition] = set()
    kept: Draft = {}
    for member_id in sorted(members):
        member = members[member_id]
        mine = kept[member_id] = []
        for topic_id, partitions in sorted(member.current.items()):
            if topic_id not in member.topic_ids:
                continue
            for partition in sorted(partitions):
                key = (topic_id, partition)
                if partition < counts[topic_id] and key not in taken:
                    taken.add(key)
                    mine.append(key)
    return kept


def _missing(
    kept: Draft, topic_ids: frozenset[Uuid], counts: PartitionCounts
) -> list[TopicPartition]:
    taken = {key for found in kept.values() for key in found}
    wanted = ((t, partition) for t in sorted(topic_ids) for partition in range(counts[t]))
    return [key for key in wanted if key not in taken]


def _assign_equal(kept: Draft, unassigned: list[TopicPartition]) -> None:
    """All have the same topics: some get one more than others, preferably those that have it."""
    total = len(unassigned) + sum(map(len, kept.values()))
    least, extras = divmod(total, len(kept)) if kept else (0, 0)
    quotas: dict[str, int] = {}
    for member_id, mine in kept.items():
        quotas[member_id] = least
        if len(mine) > least and extras > 0:
            quotas[member_id] += 1
            extras -= 1
        unassigned += mine[quotas[member_id] :]
        del mine[quotas[member_id] :]
    for member_id in kept:
        if extras > 0 and quotas[member_id] == least:
            quotas[member_id] += 1
            extras -= 1
    unassigned.reverse()
    for member_id, mine in kept.items():
        while len(mine) < quotas[member_id]:
            mine.append(unassigned.pop())


def range_(members: Subscribers, counts: PartitionCounts) -> Assignment:
    """Each topic separately: one contiguous range per subscriber, static members first."""
    ordered = sorted(
        members, key=lambda m: (members[m].instance_id is None, members[m].instance_id or m)
    )
    drafts: Draft = {member_id: [] for member_id in ordered}
    topics: dict[Uuid, list[str]] = {}
    for member_id in ordered:
        for topic_id in members[member_id].topic_ids:
            topics.setdefault(topic_id, []).append(member_id)
    for topic_id, subscribers in sorted(topics.items()):
        least, extras = divmod(counts[topic_id], len(subscribers))
        start = 0
        for index, member_id in enumerate(subscribers):
            end = start + least + (index < extras)
            drafts[member_id] += ((topic_id, partition) for partition in range(start, end))
            start = end
    return {member_id: _partitions(found) for member_id, found in drafts.items()}


def _partitions(found: list[TopicPartition]) -> Partitions:
    topics: dict[Uuid, set[int]] = {}
    for topic_id, partition in found:
        topics.setdefault(topic_id, set()).add(partition)
    return {topic_id: frozenset(topics[topic_id]) for topic_id in sorted(topics)}


ASSIGNORS: Final[Mapping[str, Assignor]] = {"uniform": uniform, "range": range_}
