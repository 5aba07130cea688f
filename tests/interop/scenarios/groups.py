"""Classic consumer groups: coordinators, membership, offsets, administration."""

from __future__ import annotations

import struct
import time
from typing import Any

from skylog.wire.apis import ApiKey
from tests.interop.wire import Side, scenario, served


def subscription(*topics: str) -> bytes:
    """A consumer's metadata in JoinGroup; Kafka never answers if it cannot parse it."""
    names = b"".join(struct.pack(">h", len(name)) + name.encode() for name in topics)
    return struct.pack(">hi", 0, len(topics)) + names + struct.pack(">i", -1)


METADATA = subscription("nowhere")


@scenario
def find_coordinator(side: Side) -> None:
    side.warm()
    for version in served(ApiKey.FIND_COORDINATOR):
        for kind in (0, 5, -1) if version >= 1 else (0,):
            for key in ("g", "", "ä", "x" * 300):
                more: dict[str, Any] = {"key_type": kind} if version >= 1 else {}
                more |= {"coordinator_keys": [key]} if version >= 4 else {"key": key}
                side.call(ApiKey.FIND_COORDINATOR, version, label=f"{kind} {key!r:.10}", **more)
    for keys in ([], ["a", "b"], ["a", "a"]):
        side.call(ApiKey.FIND_COORDINATOR, 4, key_type=0, coordinator_keys=keys)


def join(
    side: Side, label: str, group: str, member: str = "", wire: str = "client", **more: Any
) -> Any:
    values = {
        "group_id": group,
        "member_id": member,
        "session_timeout_ms": 10_000,
        "rebalance_timeout_ms": 2_000,
        "protocol_type": "consumer",
        "protocols": [{"name": "range", "metadata": METADATA}],
        **more,
    }
    version = values.pop("version", 9)
    if version < 5:
        values.pop("group_instance_id", None)
    if version == 0:
        values.pop("rebalance_timeout_ms")
    return side.call(ApiKey.JOIN_GROUP, version, wire=wire, label=label, **values)


def joined(side: Side, group: str, wire: str = "client", **more: Any) -> Any:
    """Join as clients do: first for an id, then with it."""
    side.warm()
    first = join(side, "first", group, wire=wire, **more)
    if first.error_code != 79:
        return first
    return join(side, "with its id", group, first.member_id, wire=wire, **more)


def sync(
    side: Side,
    label: str,
    group: str,
    member: str,
    generation: int,
    *assigned: tuple[str, bytes],
    version: int = 5,
    **more: Any,
) -> Any:
    assignments = [{"member_id": who, "assignment": what} for who, what in assigned]
    values = {"group_id": group, "member_id": member, "generation_id": generation, **more}
    if version >= 5:
        values = {"protocol_type": "consumer", "protocol_name": "range", **values}
    return side.call(ApiKey.SYNC_GROUP, version, label=label, assignments=assignments, **values)


def beat(
    side: Side, label: str, group: str, member: str, generation: int, version: int = 4, **more: Any
) -> Any:
    return side.call(
        ApiKey.HEARTBEAT,
        version,
        label=label,
        group_id=group,
        member_id=member,
        generation_id=generation,
        **more,
    )


def leave(
    side: Side, label: str, group: str, *members: dict[str, Any] | str, version: int = 5
) -> Any:
    given: dict[str, Any] = {}
    if version < 3:
        given["member_id"] = members[0]
    else:
        given["members"] = [{"member_id": m} if isinstance(m, str) else m for m in members]
    return side.call(ApiKey.LEAVE_GROUP, version, label=label, group_id=group, **given)


@scenario
def a_life(side: Side) -> None:
    """Join, sync, heartbeat, leave in every version."""
    for version in served(ApiKey.JOIN_GROUP):
        group = side.name(f"v{version}")
        me = joined(side, group, version=version)
        generation, member = me.generation_id, me.member_id
        beat(side, "before sync", group, member, generation, min(version, 4))
        sync(side, "sync", group, member, generation, (member, b"mine"), version=min(version, 5))
        sync(side, "sync again", group, member, generation, version=min(version, 5))
        for heartbeat in served(ApiKey.HEARTBEAT):
            beat(side, "beat", group, member, generation, heartbeat)
        beat(side, "wrong generation", group, member, generation + 1)
        beat(side, "wrong member", group, "stranger", generation)
        beat(side, "wrong group", group + "x", member, generation)
        sync(side, "wrong generation", group, member, 99)
        sync(side, "wrong member", group, "stranger", generation)
        sync(side, "wrong protocol", group, member, generation, protocol_name="other")
        sync(side, "wrong type", group, member, generation, protocol_type="other")
        leave(side, "stranger", group, "stranger", version=min(version, 5))
        leave(side, "leave", group, member, version=min(version, 5))
        leave(side, "again", group, member, version=min(version, 5))
        side.call(ApiKey.DESCRIBE_GROUPS, 5, groups=[group])


@scenario
def join_badly(side: Side) -> None:
    side.warm()
    group = side.name()
    join(side, "no group id", "")
    join(side, "session too short", group, session_timeout_ms=5_999)
    join(side, "session too long", group, session_timeout_ms=1_800_001)
    join(side, "session negative", group, session_timeout_ms=-1)
    join(side, "no protocols", group, protocols=[])
    join(side, "no protocol type", group, protocol_type="")
    join(side, "a stranger's id", group, "stranger")
    join(side, "a stranger's id in version 3", group, "stranger", version=3)
    me = joined(side, group)
    sync(side, "sync", group, me.member_id, me.generation_id, (me.member_id, b"x"))
    join(side, "other type", group, protocol_type="connect")
    join(side, "other protocol", group, protocols=[{"name": "roundrobin", "metadata": METADATA}])
    join(side, "a stranger's id", group, "stranger")
    join(side, "own id, other type", group, me.member_id, protocol_type="connect")
    join(
        side,
        "own id, other protocols",
        group,
        me.member_id,
        protocols=[{"name": "new", "metadata": METADATA}],
    )
    join(
        side,
        "own id, both",
        group,
        me.member_id,
        protocols=[
            {"name": "new", "metadata": METADATA},
            {"name": "range", "metadata": subscription("other")},
        ],
    )
    join(side, "empty instance id", group, group_instance_id="")
    join(side, "bad instance id", group, group_instance_id="a b")
    join(side, "long instance id", group, group_instance_id="a" * 250)
    side.call(ApiKey.DESCRIBE_GROUPS, 5, groups=[group])


@scenario
def rejoin(side: Side) -> None:
    group = side.name()
    me = joined(side, group)
    join(side, "while preparing", group, me.member_id)
    sync(side, "sync", group, me.member_id, 2, (me.member_id, b"x"))
    join(side, "as it was", group, me.member_id)
    join(
        side,
        "with other metadata",
        group,
        me.member_id,
        protocols=[{"name": "range", "metadata": subscription("other")}],
    )
    sync(side, "sync without assignments", group, me.member_id, 3)
    sync(side, "sync without assignments", group, me.member_id, 4)
    beat(side, "beat", group, me.member_id, 4)
    join(side, "with a reason", group, me.member_id, reason="because")


@scenario
def static_members(side: Side) -> None:
    side.warm()
    group = side.name()
    me = join(side, "static", group, group_instance_id="one")
    sync(
        side,
        "sync",
        group,
        me.member_id,
        me.generation_id,
        (me.member_id, b"x"),
        group_instance_id="one",
    )
    beat(side, "beat", group, me.member_id, me.generation_id, group_instance_id="one")
    beat(side, "beat with another id", group, "stranger", me.generation_id, group_instance_id="one")
    beat(side, "beat as nobody", group, me.member_id, me.generation_id, group_instance_id="two")
    again = join(side, "comes again", group, group_instance_id="one", wire="again")
    beat(side, "the old one", group, me.member_id, again.generation_id, group_instance_id="one")
    sync(side, "sync of the old one", group, me.member_id, 1, group_instance_id="one")
    join(side, "the old one joins", group, me.member_id, group_instance_id="one")
    sync(side, "sync", group, again.member_id, again.generation_id, group_instance_id="one")
    beat(side, "the new one", group, again.member_id, again.generation_id, group_instance_id="one")
    side.call(ApiKey.DESCRIBE_GROUPS, 5, groups=[group])
    leave(side, "wrong instance", group, {"member_id": again.member_id, "group_instance_id": "two"})
    leave(side, "fenced", group, {"member_id": me.member_id, "group_instance_id": "one"})
    leave(side, "by instance", group, {"member_id": "", "group_instance_id": "one"})
    leave(side, "again", group, {"member_id": "", "group_instance_id": "one"})
    leave(side, "nobody", group)


@scenario
def leave_in_numbers(side: Side) -> None:
    group = side.name()
    me = joined(side, group)
    sync(side, "sync", group, me.member_id, me.generation_id, (me.member_id, b"x"))
    leave(
        side,
        "several",
        group,
        me.member_id,
        "stranger",
        {"member_id": "", "group_instance_id": "i"},
    )
    leave(side, "no group", side.name("no"), "m")
    leave(side, "no group id", "", "m")
    leave(side, "no group, version 0", side.name("no"), "m", version=0)


def commit(
    side: Side,
    label: str,
    group: str,
    name: str,
    offset: int = 5,
    *,
    version: int = 9,
    index: int = 0,
    metadata: str | None = "",
    member: str = "",
    generation: int = -1,
    **more: Any,
) -> None:
    part = {"partition_index": index, "committed_offset": offset, "committed_metadata": metadata}
    if version >= 6:
        part["committed_leader_epoch"] = more.pop("epoch", -1)
    values: dict[str, Any] = {
        "group_id": group,
        "member_id": member,
        "generation_id_or_member_epoch": generation,
    }
    topic: dict[str, Any] = {"name": name, "partitions": [part]}
    topic |= more.pop("topic", {})
    side.call(ApiKey.OFFSET_COMMIT, version, label=label, topics=[topic], **values, **more)


def fetched(side: Side, label: str, group: str, topics: Any, version: int = 9, **more: Any) -> None:
    def ordered(answer: Any) -> Any:
        for found in [answer, *answer["groups"]]:
            found["topics"].sort(key=str)
            for topic in found["topics"]:
                topic["partitions"].sort(key=str)
        return answer

    asked = topics and [{"name": name, "partition_indexes": indexes} for name, indexes in topics]
    if version >= 8:
        values: dict[str, Any] = {"groups": [{"group_id": group, "topics": asked}]}
    else:
        values = {"group_id": group, "topics": asked}
    side.call(ApiKey.OFFSET_FETCH, version, label=label, keep=ordered, **values, **more)


@scenario
def offsets(side: Side) -> None:
    side.warm()
    name, group = side.create(partitions=3), side.name("group")
    for version in served(ApiKey.OFFSET_COMMIT):
        if version >= 10:
            continue
        commit(side, "commit", group, name, 10 + version, version=version)
        commit(side, "metadata", group, name, 3, index=1, metadata="some", version=version)
        commit(side, "null metadata", group, name, 3, index=2, metadata=None, version=version)
        for fetch_version in served(ApiKey.OFFSET_FETCH):
            if fetch_version >= 10:
                continue
            fetched(side, "some", group, [(name, [0, 1, 2, 7])], fetch_version)
            fetched(side, "of no topic", group, [("no", [0])], fetch_version)
            fetched(side, "nothing", group, [], fetch_version)
            if fetch_version >= 2:
                fetched(side, "all", group, None, fetch_version)
    fetched(side, "no such group", side.name("nobody"), [(name, [0])])
    fetched(side, "no such group, all", side.name("nobody"), None)
    fetched(side, "no group id", "", None)
    fetched(side, "no group id, version 5", "", None, 5)
    fetched(side, "stable", group, None, require_stable=True)
    both = [{"group_id": group, "topics": None}, {"group_id": side.name("nobody"), "topics": None}]
    side.call(ApiKey.OFFSET_FETCH, 8, label="two groups", groups=both[::-1])
    side.call(ApiKey.OFFSET_FETCH, 8, label="no groups", groups=[])
    fetched(side, "with a member", group, None, 8)


@scenario
def offsets_refused(side: Side) -> None:
    side.warm()
    name, group = side.create(partitions=1), side.name("group")
    commit(side, "4096 bytes of metadata", group, name, metadata="x" * 4096)
    commit(side, "4097 bytes of metadata", group, name, metadata="x" * 4097)
    commit(side, "4096 letters, more bytes", group, name, metadata="ä" * 4096)
    commit(side, "no such partition", group, name, index=4)
    commit(side, "no such topic", group, side.name("no"))
    commit(side, "negative offset", group, name, -1)
    commit(side, "negative offset", group, name, -5)
    commit(side, "huge offset", group, name, 2**62)
    commit(side, "no group id", "", name)
    commit(side, "a member of nothing", group, name, member="m", generation=3)
    commit(side, "a generation without member", group, name, generation=3)
    commit(side, "no such group, a member", side.name("other"), name, member="m", generation=3)
    commit(side, "no such group, in version 2", side.name("other"), name, version=2)
    commit(side, "epoch", group, name, 5, epoch=7)
    fetched(side, "after all", group, None)
    me = joined(side, group)
    member, generation = me.member_id, me.generation_id
    commit(side, "before sync", group, name, member=member, generation=generation)
    sync(side, "sync", group, member, generation, (member, b"x"))
    commit(side, "member", group, name, 7, member=member, generation=generation)
    commit(side, "wrong generation", group, name, member=member, generation=generation + 1)
    commit(side, "wrong member", group, name, member="stranger", generation=generation)
    commit(side, "nobody, while it lives", group, name)
    commit(side, "nobody, with a generation", group, name, generation=generation)
    commit(
        side,
        "wrong instance",
        group,
        name,
        member=member,
        generation=generation,
        group_instance_id="i",
    )
    twice = [
        {"partition_index": 0, "committed_offset": 1},
        {"partition_index": 0, "committed_offset": 2},
    ]
    side.call(
        ApiKey.OFFSET_COMMIT,
        8,
        label="twice",
        group_id=group,
        member_id=member,
        generation_id_or_member_epoch=generation,
        topics=[{"name": name, "partitions": twice}],
    )
    side.call(
        ApiKey.OFFSET_COMMIT,
        8,
        label="nothing",
        group_id=group,
        member_id=member,
        generation_id_or_member_epoch=generation,
        topics=[],
    )
    fetched(side, "after all", group, None)


@scenario
def offsets_by_id(side: Side) -> None:
    side.warm()
    name, group = side.create(partitions=2), side.name("group")
    topic_id = side.topic_id(name)

    def put(label: str, chosen: Any, index: int = 0) -> None:
        part = {"partition_index": index, "committed_offset": 4}
        side.call(
            ApiKey.OFFSET_COMMIT,
            10,
            label=label,
            group_id=group,
            topics=[{"topic_id": chosen, "partitions": [part]}],
        )

    put("good", topic_id)
    put("strange", b"\7" * 16)
    put("zero", bytes(16))
    put("no such partition", topic_id, 8)
    for label, chosen in [("good", topic_id), ("strange", b"\7" * 16), ("zero", bytes(16))]:
        side.call(
            ApiKey.OFFSET_FETCH,
            10,
            label=label,
            groups=[
                {
                    "group_id": group,
                    "topics": [{"topic_id": chosen, "partition_indexes": [0, 1, 5]}],
                }
            ],
        )
    side.call(ApiKey.OFFSET_FETCH, 10, label="all", groups=[{"group_id": group, "topics": None}])


@scenario
def administration(side: Side) -> None:
    side.warm()
    name, group, empty = side.create(partitions=2), side.name("live"), side.name("empty")
    me = joined(side, group)
    for version in served(ApiKey.DESCRIBE_GROUPS):
        side.call(ApiKey.DESCRIBE_GROUPS, version, groups=[group, side.name("no"), ""])
    sync(side, "sync", group, me.member_id, me.generation_id, (me.member_id, b"x"))
    commit(side, "commit", empty, name)
    commit(side, "commit", empty, name, index=1)
    # Not compared: a group that is named twice, which Kafka describes twice.
    for version in served(ApiKey.DESCRIBE_GROUPS):
        side.call(ApiKey.DESCRIBE_GROUPS, version, groups=[group, empty])
        if version >= 3:
            side.call(
                ApiKey.DESCRIBE_GROUPS, version, groups=[group], include_authorized_operations=True
            )

    _list(side, group, empty)

    def forget(label: str, group_id: str, topic: str, *indexes: int) -> None:
        side.call(
            ApiKey.OFFSET_DELETE,
            0,
            label=label,
            group_id=group_id,
            topics=[{"name": topic, "partitions": [{"partition_index": i} for i in indexes]}],
        )

    forget("of the empty", empty, name, 0)
    forget("again", empty, name, 0)
    forget("no such partition", empty, name, 9)
    forget("no such topic", empty, side.name("no"), 0)
    forget("of the living", group, name, 0)
    forget("of nobody", side.name("no"), name, 0)
    forget("no group id", "", name, 0)
    fetched(side, "left", empty, None)
    for version in served(ApiKey.DELETE_GROUPS):
        side.call(
            ApiKey.DELETE_GROUPS, version, groups_names=[group, side.name("no"), ""], keep=_results
        )
    side.call(ApiKey.DELETE_GROUPS, 2, groups_names=[empty, empty], keep=_results)
    side.call(ApiKey.DELETE_GROUPS, 2, groups_names=[empty], keep=_results)
    leave(side, "leave", group, me.member_id)
    side.call(ApiKey.DELETE_GROUPS, 2, groups_names=[group], keep=_results)
    side.call(ApiKey.DESCRIBE_GROUPS, 6, groups=[group, empty])


def _list(side: Side, group: str, empty: str) -> None:
    def ours(answer: Any) -> Any:
        found = [g for g in answer["groups"] if g["group_id"] in (group, empty)]
        return {**answer, "groups": sorted(found, key=str)}

    for version in served(ApiKey.LIST_GROUPS):
        side.call(ApiKey.LIST_GROUPS, version, keep=ours)
        if version >= 4:
            for states in (["Stable"], ["Empty"], ["stable"], ["nonsense"], ["Stable", "Empty"]):
                side.call(ApiKey.LIST_GROUPS, version, keep=ours, states_filter=states)
        if version >= 5:
            for types in (["classic"], ["Consumer"], ["CLASSIC"], ["nonsense"], ["share"]):
                side.call(ApiKey.LIST_GROUPS, version, keep=ours, types_filter=types)


def _results(answer: Any) -> Any:
    answer["results"].sort(key=str)
    return answer


@scenario
def forget_offsets_of_a_live_group(side: Side) -> None:
    """Offsets of subscribed topics are kept, others may be deleted."""
    a, b, group = side.create("a"), side.create("b"), side.name("group")
    me = joined(side, group, protocols=[{"name": "range", "metadata": subscription(a)}])
    member, generation = me.member_id, me.generation_id
    sync(side, "sync", group, member, generation, (member, b"x"))
    for name in (a, b):
        commit(side, f"commit {name}", group, name, member=member, generation=generation)
    for name in (a, b):
        side.call(
            ApiKey.OFFSET_DELETE,
            0,
            label=f"of {name}",
            group_id=group,
            topics=[{"name": name, "partitions": [{"partition_index": 0}]}],
        )
    fetched(side, "left", group, None)
    side.quiet(ApiKey.DELETE_TOPICS, 5, topic_names=[b], timeout_ms=9_000)
    fetched(side, "after the topic is gone", group, [(b, [0])])


@scenario
def topics_deleted_lose_their_offsets(side: Side) -> None:
    side.warm()
    a, b, group = side.create("a"), side.create("b"), side.name("group")
    for name in (a, b):
        commit(side, f"commit {name}", group, name)
    side.quiet(ApiKey.DELETE_TOPICS, 5, topic_names=[a], timeout_ms=9_000)
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:  # Kafka deletes them a little later, too
        left = side.quiet(ApiKey.OFFSET_FETCH, 8, groups=[{"group_id": group, "topics": None}])
        if len(left.groups[0].topics) == 1:
            break
    fetched(side, "left", group, None)


@scenario
def two_members(side: Side) -> None:
    """A second member joins: the first learns of it by its heartbeat, and both are rebalanced."""
    from concurrent.futures import ThreadPoolExecutor

    group = side.name()
    one = joined(side, group, wire="one")
    sync(side, "one", group, one.member_id, one.generation_id, (one.member_id, b"all"))
    hello = join(side, "two asks for an id", group, wire="two")
    assert hello.error_code == 79
    values = {
        "group_id": group,
        "session_timeout_ms": 10_000,
        "rebalance_timeout_ms": 10_000,
        "protocol_type": "consumer",
        "protocols": [{"name": "range", "metadata": METADATA}],
    }
    with ThreadPoolExecutor() as threads:
        second = threads.submit(
            side.wire("two").call, ApiKey.JOIN_GROUP, 9, member_id=hello.member_id, **values
        )
        for _ in range(2000):
            told = side.quiet(
                ApiKey.HEARTBEAT,
                4,
                wire="one",
                group_id=group,
                member_id=one.member_id,
                generation_id=one.generation_id,
            )
            if told.error_code == 27:
                break
        side.note("the first is told", told)
        commit(
            side,
            "a commit while balancing",
            group,
            side.create(),
            member=one.member_id,
            generation=one.generation_id,
        )
        side.call(ApiKey.DESCRIBE_GROUPS, 5, groups=[group], keep=_members)
        leader = join(side, "one again", group, one.member_id, wire="one", keep=_members)
        two = second.result()
    side.note("two", two, _members)
    waiting = {
        "group_id": group,
        "generation_id": leader.generation_id,
        "protocol_type": "consumer",
        "protocol_name": "range",
    }
    with ThreadPoolExecutor() as threads:
        second = threads.submit(
            side.wire("two").call, ApiKey.SYNC_GROUP, 5, member_id=two.member_id, **waiting
        )
        sync(
            side,
            "one assigns",
            group,
            leader.member_id,
            leader.generation_id,
            (leader.member_id, b"1"),
            (two.member_id, b"2"),
        )
        side.note("two has", second.result())
    side.call(ApiKey.DESCRIBE_GROUPS, 5, groups=[group], keep=_members)
    leave(side, "one leaves", group, leader.member_id)
    beat(side, "two is told", group, two.member_id, leader.generation_id)


def _members(answer: Any) -> Any:
    for found in answer.get("groups", [answer]):
        found["members"].sort(key=str)
    return answer
