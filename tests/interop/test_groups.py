"""Consumer groups of every client: members join, leave and crash, and each record is read."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import pytest

from tests.interop.clients import (
    CLIENTS,
    Client,
    ClientError,
    Member,
    Record,
    await_that,
    members,
)

pytestmark = [pytest.mark.interop, pytest.mark.filterwarnings("ignore::DeprecationWarning")]

NOW = 1_750_000_000_000
PARTITIONS = 6
JAVA = "org.apache.kafka.clients.consumer."
ASSIGNORS = {
    "java": ["RangeAssignor", "RoundRobinAssignor", "StickyAssignor", "CooperativeStickyAssignor"],
    "librdkafka": ["range", "roundrobin", "cooperative-sticky"],
    "aiokafka": ["range", "roundrobin", "sticky"],
    "kafka-python": ["range", "roundrobin", "sticky"],
    "franz-go": ["range", "roundrobin", "sticky", "cooperative-sticky"],
    "kafkajs": ["roundrobin"],
}
CASES = [(name, assignor) for name in CLIENTS for assignor in ASSIGNORS[name]]
# kafkajs has no static members.
STATIC = [name for name in CLIENTS if name != "kafkajs"]

Get = Callable[[str], Client]
NewTopic = Callable[..., str]


class Watched:
    """The members of a group, and all that they have read so far."""

    def __init__(self, present: list[Member]) -> None:
        self.present = present
        self.owned: list[list[int]] = []
        self.seen: list[Record] = []

    def look(self) -> None:
        found = [member.look() for member in self.present]
        self.owned = [partitions for partitions, _ in found]
        self.seen += [record for _, records in found for record in records]

    def shared(self) -> bool:
        """Whether every member has partitions and every partition one owner."""
        self.look()
        everything = sorted(index for partitions in self.owned for index in partitions)
        return everything == list(range(PARTITIONS)) and all(self.owned)

    def has_seen(self, records: list[Record]) -> bool:
        self.look()
        return {r.value for r in records} <= {r.value for r in self.seen}


def records(what: str, count: int = 60) -> list[Record]:
    return [Record(i % PARTITIONS, NOW, b"k", f"{what}{i}".encode()) for i in range(count)]


def named(client: str, assignor: str) -> str:
    return JAVA + assignor if client == "java" else assignor


def join(get: Get, client: str, topic: str, group: str, assignor: str, **more: Any) -> Member:
    return get(client).join(topic, group, assignor=named(client, assignor), **more)


@pytest.mark.parametrize(("name_", "assignor"), CASES, ids=lambda part: part)
def test_members_share_the_work(
    name_: str, assignor: str, client: Get, topic: NewTopic, name: Callable[[str], str]
) -> None:
    subject, group, writer = topic(PARTITIONS), name("group"), client("librdkafka")
    with members(join(client, name_, subject, group, assignor)) as present:
        group_now = Watched(present)
        await_that(group_now.shared, "one member owns everything")
        present.append(join(client, name_, subject, group, assignor))
        await_that(group_now.shared, "two members share")
        first = records("first")
        writer.produce(subject, first)
        await_that(lambda: group_now.has_seen(first), "both consume")
        present.pop(0).leave()
        await_that(group_now.shared, "the remaining member takes over")
        second = records("second")
        writer.produce(subject, second, "gzip")
        await_that(lambda: group_now.has_seen(second), "it consumes")
        present[0].commit()
    assert committed(client, group) == {f"{subject}-{index}": 20 for index in range(PARTITIONS)}
    with members(join(client, name_, subject, group, assignor)) as present:
        later = Watched(present)
        third = records("third", 12)
        writer.produce(subject, third)
        await_that(lambda: later.has_seen(third), "a later member resumes")
        assert {r.value for r in later.seen} == {r.value for r in third}


def committed(client: Get, group: str) -> dict[str, int]:
    found = client("franz-go")("group", group=group)  # type: ignore[operator]
    offsets: dict[str, int] = found["offsets"]
    return offsets


@pytest.mark.parametrize("name_", STATIC)
def test_static_members_keep_their_share(
    name_: str, client: Get, topic: NewTopic, name: Callable[[str], str]
) -> None:
    """A static member that restarts gets its partitions back without a rebalance."""
    subject, group = topic(PARTITIONS), name("group")
    assignor = ASSIGNORS[name_][0]
    with members() as present:
        for instance in ("one", "two"):
            present.append(join(client, name_, subject, group, assignor, instance=instance))
        group_now = Watched(present)
        await_that(group_now.shared, "two members share")
        before = dict(zip(("one", "two"), group_now.owned, strict=True))
        again = join(client, name_, subject, group, assignor, instance="one")
        present.append(again)
        returned = Watched([again])
        await_that(lambda: returned.look() or returned.owned[0] == before["one"], "its old share")
        assert described(client, group)["members"] == 2


def described(client: Get, group: str) -> Any:
    try:
        return client("franz-go")("group", group=group)  # type: ignore[operator]
    except ClientError as error:
        if "GROUP_ID_NOT_FOUND" in str(error):  # no member has joined yet
            return {"state": "none", "members": 0}
        raise


def test_members_of_different_clients_share(
    client: Get, topic: NewTopic, name: Callable[[str], str]
) -> None:
    """They agree on an assignor, and each reads what the leader assigned, whichever client that
    is."""
    subject, group = topic(PARTITIONS), name("group")
    names = ["java", "librdkafka", "franz-go", "aiokafka", "kafka-python"]
    with members() as present:
        for one in names:
            assignor = "RangeAssignor" if one == "java" else "range"
            present.append(join(client, one, subject, group, assignor))
        group_now = Watched(present)
        await_that(group_now.shared, "all five have a share")
        sent = records("mixed", 120)
        client("librdkafka").produce(subject, sent)
        await_that(lambda: group_now.has_seen(sent), "all is seen")


def test_a_killed_member_is_replaced(
    bootstrap: str, client: Get, topic: NewTopic, name: Callable[[str], str]
) -> None:
    """A killed process does not leave the group: its session expires, and the others take over."""
    subject, group = topic(PARTITIONS), name("group")
    with contextlib.closing(CLIENTS["franz-go"](bootstrap)) as victim:
        victim.join(subject, group, assignor="range")
        await_that(lambda: described(client, group)["state"] == "Stable", "it is a member")
        member = join(client, "franz-go", subject, group, "range")
        replace_the_dead(client, victim, member, subject, group)


def replace_the_dead(client: Get, victim: Client, member: Member, subject: str, group: str) -> None:
    with members(member) as present:
        await_that(lambda: described(client, group)["members"] == 2, "both are members")
        victim.close()
        group_now = Watched(present)
        await_that(group_now.shared, "the living one owns everything")
        sent = records("after")
        client("librdkafka").produce(subject, sent)
        await_that(lambda: group_now.has_seen(sent), "and consumes everything")
