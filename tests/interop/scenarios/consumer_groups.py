"""Groups of the consumer protocol: heartbeats, epochs, offsets, descriptions, migration."""

from __future__ import annotations

from typing import Any

from skylog.kernel.ids import Uuid
from skylog.wire.apis import ApiKey
from tests.interop.scenarios.groups import join as classic_join
from tests.interop.scenarios.groups import subscription, sync
from tests.interop.wire import Side, scenario

GROUP_RESOURCE = 32
ALL = [0, 1, 2, 3]


def counted(found: Any) -> Any:
    """The assignment depends on hash tables; only the number of partitions is compared."""
    if isinstance(found, dict):
        return {
            name: len(value) if name == "partitions" and isinstance(value, list) else counted(value)
            for name, value in found.items()
        }
    return [counted(item) for item in found] if isinstance(found, list) else found


def without_ids(found: Any) -> Any:
    """A response without the ids that coordinators generate."""
    if isinstance(found, dict):
        return {k: "…" if k == "member_id" else without_ids(v) for k, v in found.items()}
    return [without_ids(item) for item in found] if isinstance(found, list) else found


def ready(side: Side, group: str, *, interval_ms: int = 0) -> None:
    """Compute targets at once, unless asked otherwise."""
    side.warm()
    configs = [
        {
            "name": "consumer.assignment.interval.ms",
            "config_operation": 0,
            "value": f"{interval_ms}",
        }
    ]
    resource = {"resource_type": GROUP_RESOURCE, "resource_name": group, "configs": configs}
    side.call(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, resources=[resource])
    side.settle()


def beat(side: Side, label: str, group: str, member: str, epoch: int, **more: Any) -> Any:
    version = more.pop("version", 1)
    values = {"group_id": group, "member_id": member, "member_epoch": epoch, **more}
    return side.call(ApiKey.CONSUMER_GROUP_HEARTBEAT, version, label=label, keep=counted, **values)


def joining(side: Side, group: str, member: str, *topics: str, **more: Any) -> Any:
    values = {
        "rebalance_timeout_ms": 60_000,
        "subscribed_topic_names": list(topics),
        "topic_partitions": [],
        **more,
    }
    return beat(side, f"{member} joins", group, member, 0, **values)


def owning(topic_id: Uuid, partitions: list[int]) -> list[dict[str, Any]]:
    return [{"topic_id": topic_id, "partitions": partitions}] if partitions else []


def given(answer: Any) -> list[int]:
    return sorted(p for t in answer.assignment.topic_partitions for p in t.partitions)


def describe(side: Side, label: str, *groups: str, version: int = 1) -> None:
    side.call(
        ApiKey.CONSUMER_GROUP_DESCRIBE,
        version,
        label=f"describe {label}",
        keep=counted,
        group_ids=list(groups),
        include_authorized_operations=True,
    )


def listed(side: Side, group: str, **more: Any) -> None:
    def own(found: Any) -> Any:
        return [g for g in found["groups"] if g["group_id"] == group]

    side.call(ApiKey.LIST_GROUPS, 5, label="list", keep=own, **more)


@scenario
def refusals(side: Side) -> None:
    group, topic = side.name("group"), side.create()
    side.warm()
    full: dict[str, Any] = {
        "rebalance_timeout_ms": 1_000,
        "subscribed_topic_names": [topic],
        "topic_partitions": [],
    }
    for version in (0, 1):
        for label, epoch, more in (
            ("no member id", 1, {"member_id": ""}),
            ("blank member id", 0, {"member_id": " ", **full}),
            ("no group id", 0, {"group_id": "", **full}),
            ("blank instance", 0, {"instance_id": "", **full}),
            ("blank rack", 0, {"rack_id": " ", **full}),
            ("no time-out", 0, {**full, "rebalance_timeout_ms": -1}),
            ("owns when joining", 0, {**full, "topic_partitions": owning(Uuid(b"x" * 16), [1])}),
            ("says not what it owns", 0, {**full, "topic_partitions": None}),
            ("no subscription", 0, {**full, "subscribed_topic_names": None}),
            ("static leaves without a name", -2, {}),
            ("an odd epoch", -3, {}),
            ("an unknown assignor", 0, {**full, "server_assignor": "best"}),
            ("an unknown group", 1, {}),
            ("leaves an unknown group", -1, {}),
        ):
            values = {"member_id": "m", "group_id": group, **more}
            side.call(
                ApiKey.CONSUMER_GROUP_HEARTBEAT, version, label=label, member_epoch=epoch, **values
            )
    for regex in ("(", "a{2000}", "[", "(?=a)", r"\1"):
        joining(side, group, "m", subscribed_topic_names=None, subscribed_topic_regex=regex)
    describe(side, "nobody", "nobody", "", group, version=0)


@scenario
def members(side: Side) -> None:
    group, topic = side.name("group"), side.create(partitions=4)
    topic_id = side.topic_id(topic)
    ready(side, group)
    first = joining(side, group, "a", topic, rack_id="r", server_assignor="range")
    describe(side, "one member", group)
    listed(side, group)
    beat(side, "steady", group, "a", first.member_epoch, topic_partitions=owning(topic_id, ALL))
    joining(side, group, "b", topic)
    describe(side, "b waits", group)
    told = beat(side, "a is told", group, "a", first.member_epoch)
    kept = given(told)
    beat(side, "b still waits", group, "b", first.member_epoch + 1)
    beat(
        side,
        "a goes on owning",
        group,
        "a",
        first.member_epoch,
        topic_partitions=owning(topic_id, ALL),
    )
    freed = beat(
        side,
        "a has revoked",
        group,
        "a",
        first.member_epoch,
        topic_partitions=owning(topic_id, kept),
    )
    got = beat(side, "b gets them", group, "b", first.member_epoch + 1)
    beat(
        side,
        "a again in its old epoch",
        group,
        "a",
        first.member_epoch,
        topic_partitions=owning(topic_id, kept),
    )
    beat(
        side,
        "a in an old epoch with more",
        group,
        "a",
        first.member_epoch,
        topic_partitions=owning(topic_id, ALL),
    )
    beat(side, "a in an epoch to come", group, "a", freed.member_epoch + 5)
    beat(side, "a stranger", group, "z", 1)
    describe(side, "two members", group)
    side.create("other", partitions=2)
    beat(
        side,
        "b wants another",
        group,
        "b",
        got.member_epoch,
        subscribed_topic_names=[side.name("other")],
    )
    describe(side, "b has changed", group)
    beat(side, "b has revoked", group, "b", got.member_epoch, topic_partitions=[])
    beat(side, "a gets all", group, "a", freed.member_epoch)
    beat(side, "a leaves", group, "a", -1)
    beat(side, "a has left", group, "a", freed.member_epoch)
    side.call(ApiKey.DELETE_GROUPS, 2, label="not empty", groups_names=[group])
    beat(side, "b leaves", group, "b", -1)
    describe(side, "empty", group)
    listed(side, group)
    listed(side, group, types_filter=["consumer"])
    listed(side, group, types_filter=["classic"])
    listed(side, group, states_filter=["empty"])
    listed(side, group, states_filter=["Stable"], types_filter=["Consumer"])
    side.call(ApiKey.DESCRIBE_GROUPS, 6, label="as classic", groups=[group])
    side.call(ApiKey.DELETE_GROUPS, 2, label="empty", groups_names=[group])
    describe(side, "deleted", group)


@scenario
def intervals(side: Side) -> None:
    """The second member has to wait for its turn."""
    group, topic = side.name("group"), side.create(partitions=4)
    ready(side, group, interval_ms=15_000)
    joining(side, group, "a", topic)
    joining(side, group, "b", topic)
    describe(side, "assigning", group)


@scenario
def static_members(side: Side) -> None:
    group, topic = side.name("group"), side.create(partitions=4)
    ready(side, group)
    one = joining(side, group, "a", topic, instance_id="i")
    joining(side, group, "b", topic, instance_id="i")
    beat(side, "another's name", group, "b", one.member_epoch, instance_id="i")
    beat(side, "a name nobody has", group, "a", one.member_epoch, instance_id="j")
    beat(side, "it goes for a while", group, "a", -2, instance_id="i")
    describe(side, "while it is away", group)
    joining(side, group, "b", topic, instance_id="i")
    describe(side, "it is back", group)
    beat(side, "its last incarnation", group, "a", one.member_epoch, instance_id="i")
    beat(side, "it goes for good", group, "b", -1, instance_id="i")
    describe(side, "empty", group)


@scenario
def patterns(side: Side) -> None:
    group = side.name("group")
    for name in ("apple", "apricot", "banana"):
        side.create(name, partitions=2)
    ready(side, group)
    regex = f"{side.prefix}-ap.*"
    first = joining(side, group, "a", subscribed_topic_names=None, subscribed_topic_regex=regex)
    for _ in range(1_000):  # both resolve topics a little later
        found = side.quiet(
            ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, group_id=group, member_id="a",
            member_epoch=first.member_epoch,
        )  # fmt: skip
        if found.assignment is not None:
            break
    side.note("a has what matches", found, counted)
    describe(side, "by pattern", group)
    beat(
        side,
        "by name",
        group,
        "a",
        found.member_epoch,
        subscribed_topic_regex="",
        subscribed_topic_names=[side.name("banana")],
    )
    describe(side, "by name", group)


def commit(
    side: Side, label: str, group: str, topic: str, member: str, epoch: int, **more: Any
) -> None:
    version = more.pop("version", 9)
    partitions = [
        {"partition_index": index, "committed_offset": 1, "committed_metadata": ""}
        for index in more.pop("partitions", (0,))
    ]
    side.call(
        ApiKey.OFFSET_COMMIT, version, label=label, group_id=group, member_id=member,
        generation_id_or_member_epoch=epoch, topics=[{"name": topic, "partitions": partitions}],
        **more,
    )  # fmt: skip


def fetch(side: Side, label: str, group: str, topic: str, member: str | None, epoch: int) -> None:
    topics = [{"name": topic, "partition_indexes": [0, 1]}]
    asked = {"group_id": group, "member_id": member, "member_epoch": epoch, "topics": topics}
    side.call(ApiKey.OFFSET_FETCH, 9, label=label, groups=[asked], require_stable=False)


@scenario
def offsets(side: Side) -> None:
    group, topic = side.name("group"), side.create(partitions=2)
    other = side.create("other")
    ready(side, group)
    commit(side, "no such group", group, topic, "a", 1)
    commit(side, "no such group, old", group, topic, "a", 1, version=8)
    epoch = joining(side, group, "a", topic).member_epoch
    for version in (8, 9):
        commit(side, "a member", group, topic, "a", epoch, version=version)
    for label, member, at in (
        ("a stranger", "z", epoch),
        ("nobody", "", -1),
        ("an epoch to come", "a", epoch + 1),
        ("an epoch that is gone", "a", epoch - 1),
        ("an administrator", "a", -1),
    ):
        commit(side, label, group, topic, member, at)
        fetch(side, label, group, topic, member, at)
    fetch(side, "who does not say", group, topic, None, -1)
    fetch(side, "a member reads", group, topic, "a", epoch)
    beat(side, "another topic", group, "a", epoch, subscribed_topic_names=[topic, other])
    now = epoch + 1
    commit(side, "an epoch that is gone, of what it had", group, topic, "a", epoch)
    commit(side, "and of what it had not", group, other, "a", epoch)
    commit(side, "in its epoch", group, other, "a", now)
    delete: dict[str, Any] = {"partitions": [{"partition_index": 0}]}
    for name in (topic, "nowhere"):
        side.call(
            ApiKey.OFFSET_DELETE, 0, label=name, group_id=group, topics=[{"name": name, **delete}]
        )
    beat(side, "leaves", group, "a", -1)
    commit(side, "an administrator of an empty group", group, topic, "", -1)
    side.call(
        ApiKey.OFFSET_DELETE, 0, label="empty", group_id=group, topics=[{"name": topic, **delete}]
    )
    fetch(side, "what is left", group, topic, None, -1)


def classic_member(side: Side, group: str, topic: str) -> tuple[str, int]:
    """A stable classic group of one."""
    protocols = [{"name": "range", "metadata": subscription(topic)}]
    first = classic_join(side, "classic asks", group, protocols=protocols)
    second = classic_join(side, "classic joins", group, first.member_id, protocols=protocols)
    assignment = subscription(topic)[:2] + b"\0\0\0\1" + subscription(topic)[6:-4]
    assignment += b"\0\0\0\2\0\0\0\0\0\0\0\1\xff\xff\xff\xff"
    who = second.member_id
    sync(side, "classic syncs", group, who, second.generation_id, (who, assignment))
    return who, second.generation_id


@scenario
def migration(side: Side) -> None:
    """A live classic group changes to the consumer protocol and back."""
    group, topic = side.name("group"), side.create(partitions=2)
    ready(side, group)
    who, generation = classic_member(side, group, topic)
    commit(side, "classic commits", group, topic, who, generation)
    joining(side, group, "new", topic)
    listed(side, group)
    describe(side, "both", group)
    side.call(ApiKey.DESCRIBE_GROUPS, 6, label="as classic", groups=[group])

    def heartbeat(label: str, at: int) -> None:
        side.call(ApiKey.HEARTBEAT, 4, label=label, group_id=group, member_id=who, generation_id=at)

    heartbeat("classic is told", generation)
    heartbeat("classic in another generation", generation + 7)
    protocols = [{"name": "range", "metadata": subscription(topic)}]
    again = classic_join(side, "classic joins again", group, who, protocols=protocols)
    at = again.generation_id
    sync(side, "classic gets its share", group, who, at)
    heartbeat("classic beats", at)
    beat(side, "new gets its share", group, "new", at)
    commit(side, "classic commits in its epoch", group, topic, who, at, partitions=(0, 1))
    commit(side, "classic commits in another", group, topic, who, at + 1)
    describe(side, "settled", group)
    beat(side, "new leaves", group, "new", -1)
    listed(side, group)
    side.call(
        ApiKey.DESCRIBE_GROUPS, 6, label="classic again", groups=[group],
        keep=lambda found: [(g["group_state"], len(g["members"])) for g in found["groups"]],
    )  # fmt: skip
    fetch(side, "offsets outlast it", group, topic, None, -1)
    members = [{"member_id": who, "group_instance_id": None}]
    side.call(ApiKey.LEAVE_GROUP, 5, label="classic leaves", group_id=group, members=members)
    joining(side, group, "late", topic)
    listed(side, group)


@scenario
def static_migration(side: Side) -> None:
    """A static member comes back with the classic protocol, and its group changes with it."""
    group, topic = side.name("group"), side.create(partitions=2)
    ready(side, group)
    protocols = [{"name": "range", "metadata": subscription(topic)}]
    more: dict[str, Any] = {"protocols": protocols, "group_instance_id": "i"}
    joining(side, group, "a", topic, instance_id="i")
    beat(side, "it goes for a while", group, "a", -2, instance_id="i")
    classic = classic_join(side, "it is back", group, keep=without_ids, **more)
    listed(side, group)
    side.call(
        ApiKey.DESCRIBE_GROUPS, 6, label="as classic", groups=[group], keep=without_ids
    )  # fmt: skip
    sync(
        side,
        "it gets its share",
        group,
        classic.member_id,
        classic.generation_id,
        group_instance_id="i",
    )
    joining(side, group, "b", topic, instance_id="i")
    describe(side, "and forth", group)
    classic_join(side, "under its old id", group, classic.member_id, **more)
    for identity in (
        {"member_id": "b", "group_instance_id": "j"},
        {"member_id": "x", "group_instance_id": "i"},
        {"member_id": "x", "group_instance_id": None},
        {"member_id": "", "group_instance_id": "i"},
    ):
        side.call(ApiKey.LEAVE_GROUP, 5, group_id=group, members=[identity])
    describe(side, "empty", group)
    classic_join(side, "a classic member of an empty group", group, **more)
    listed(side, group)
