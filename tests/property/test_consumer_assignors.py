"""The server's assignors, for any subscriptions: complete, exclusive, balanced and sticky."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from skylog.groups.consumer.assignors import Assignment, Subscriber, range_, uniform
from skylog.kernel.ids import Uuid

TOPICS = [Uuid(number.to_bytes(16, "big")) for number in range(1, 6)]
COUNTS = st.fixed_dictionaries({topic: st.integers(1, 12) for topic in TOPICS})
NAMES = st.lists(st.text("abcdef", min_size=1, max_size=3), min_size=1, max_size=8, unique=True)
WISHES = st.frozensets(st.sampled_from(TOPICS), max_size=5)


@st.composite
def groups(draw: st.DrawFn) -> tuple[dict[str, Subscriber], dict[Uuid, int]]:
    """Members with any subscriptions, some static, and any previous targets, even absurd ones."""
    counts = draw(COUNTS)
    same = draw(st.one_of(st.none(), WISHES))
    before = st.dictionaries(
        st.sampled_from([*TOPICS, Uuid(b"?" * 16)]),
        st.frozensets(st.integers(0, 15), min_size=1, max_size=6),
        max_size=3,
    )
    members = {
        name: Subscriber(
            draw(WISHES) if same is None else same,
            draw(before),
            draw(st.one_of(st.none(), st.just(f"i{name}"))),
        )
        for name in draw(NAMES)
    }
    return members, counts


def owners(target: Assignment) -> dict[tuple[Uuid, int], list[str]]:
    found: dict[tuple[Uuid, int], list[str]] = {}
    for member_id, topics in target.items():
        for topic_id, partitions in topics.items():
            for partition in partitions:
                found.setdefault((topic_id, partition), []).append(member_id)
    return found


def check(
    members: Mapping[str, Subscriber], counts: Mapping[Uuid, int], target: Assignment
) -> None:
    """Every subscribed partition has one owner, which subscribes to it."""
    wanted = {topic for member in members.values() for topic in member.topic_ids}
    found = owners(target)
    assert set(found) == {(topic, p) for topic in wanted for p in range(counts[topic])}
    for (topic, _), owned_by in found.items():
        assert len(owned_by) == 1
        assert topic in members[owned_by[0]].topic_ids
    assert set(target) == set(members)


def sizes(target: Assignment) -> dict[str, int]:
    return {m: sum(map(len, topics.values())) for m, topics in target.items()}


@given(groups())
def test_one_owner_per_partition(group: tuple[dict[str, Subscriber], dict[Uuid, int]]) -> None:
    for assignor in (uniform, range_):
        check(*group, assignor(*group))


@given(groups())
def test_uniform_is_balanced(group: tuple[dict[str, Subscriber], dict[Uuid, int]]) -> None:
    members, counts = group
    target = uniform(members, counts)
    size = sizes(target)
    if len({m.topic_ids for m in members.values()}) == 1:
        assert max(size.values()) - min(size.values()) <= 1
        return
    # No single move improves the balance, unless rounds run out, which does not happen here.
    for (topic, _), [owner] in owners(target).items():
        for other, member in members.items():
            if topic in member.topic_ids:
                assert size[owner] - size[other] <= 1


@given(groups())
def test_uniform_changes_nothing_twice(
    group: tuple[dict[str, Subscriber], dict[Uuid, int]],
) -> None:
    members, counts = group
    target = uniform(members, counts)
    again = {m: Subscriber(s.topic_ids, target[m], s.instance_id) for m, s in members.items()}
    assert uniform(again, counts) == target


@given(COUNTS, NAMES, st.data())
def test_uniform_moves_no_more_than_it_must(
    counts: dict[Uuid, int], names: list[str], data: st.DataObject
) -> None:
    """When one of many equal members joins or leaves, the others keep all that balance allows."""
    topics = frozenset(TOPICS)
    target = uniform({name: Subscriber(topics) for name in names}, counts)
    total = sum(counts.values())

    left = [name for name in names if name != data.draw(st.sampled_from(names))]
    after = uniform({n: Subscriber(topics, target[n]) for n in left}, counts) if left else {}
    for name in left:
        for topic, partitions in target[name].items():
            assert partitions <= after[name][topic], "remaining members lose nothing"

    more = {n: Subscriber(topics, target[n]) for n in names} | {"zz": Subscriber(topics)}
    grown = uniform(more, counts)
    moved = sum(
        len(partitions - grown[n].get(topic, frozenset()))
        for n in names
        for topic, partitions in target[n].items()
    )
    assert moved == sizes(grown)["zz"] <= -(-total // len(more)), "only to the new one"


@given(groups())
def test_range_gives_neighbours(group: tuple[dict[str, Subscriber], dict[Uuid, int]]) -> None:
    members, counts = group
    target = range_(members, counts)
    for topic in TOPICS:
        shares = [
            sorted(target[m].get(topic, ())) for m, s in members.items() if topic in s.topic_ids
        ]
        for share in shares:
            assert all(b - a == 1 for a, b in pairwise(share))
        if shares:
            assert max(map(len, shares)) - min(map(len, shares)) <= 1


def test_range_orders_static_members_first() -> None:
    topic = TOPICS[0]
    wish = frozenset({topic})
    members = {
        "a": Subscriber(wish),
        "c": Subscriber(wish, {}, "i"),
        "b": Subscriber(wish, {}, "j"),
    }
    target = range_(members, {topic: 3})
    assert [target[m][topic] for m in ("c", "b", "a")] == [{0}, {1}, {2}]


def test_a_group_without_members() -> None:
    assert uniform({}, {}) == range_({}, {}) == {}
