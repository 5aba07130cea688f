"""Whatever racks there are and whichever brokers fail, placement is valid and repairs end."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from skylog.controller.racks import RackBroker, RackPlacer
from skylog.controller.settings import ReplicaPacing
from tests.unit.controller.racks_support import RackBench, diskless

racks = st.dictionaries(
    st.integers(1, 60), st.sampled_from(["a", "b", "c", "d", None]), min_size=1, max_size=12
)


@given(racks, st.integers(1, 60), st.data())
def test_placement_is_legal_and_even(
    cluster: dict[int, str | None], partitions: int, data: st.DataObject
) -> None:
    away = data.draw(st.sets(st.sampled_from(sorted(cluster)), max_size=len(cluster) - 1))
    brokers = [RackBroker(one, rack or "unknown", one not in away) for one, rack in cluster.items()]
    names = {broker.rack for broker in brokers}
    placer = RackPlacer(brokers, {}, {})
    held: Counter[int] = Counter()
    led: Counter[str] = Counter()
    for _ in range(partitions):
        replicas = placer.one_per_rack()
        assert len(replicas) == len(set(replicas)) == len(names)
        assert {cluster[one] or "unknown" for one in replicas} == names
        held.update(replicas)
        led[cluster[replicas[0]] or "unknown"] += 1
    assert max(led.values()) - min(led.values(), default=0) <= 1 or len(led) < len(names)
    for name in names:
        members = [broker for broker in brokers if broker.rack == name]
        candidates = [broker for broker in members if broker.active] or members
        counts = [held[broker.broker_id] for broker in candidates]
        assert max(counts) - min(counts) <= 1
        assert sum(counts) == partitions, "offline brokers get no replicas while others are online"


steps = st.lists(
    st.one_of(
        st.tuples(st.just("kill"), st.integers(0, 11)),
        st.tuples(st.just("revive"), st.integers(0, 11)),
        st.tuples(st.just("wait"), st.sampled_from([1, 500, 5_000, 100_000])),
        st.tuples(st.just("create"), st.integers(1, 6)),
    ),
    max_size=12,
)


@settings(max_examples=60, deadline=None)
@given(racks, steps, st.integers(1, 7))
def test_repairs_converge_and_then_nothing_changes(
    cluster: dict[int, str | None], history: list[tuple[str, int]], batch: int
) -> None:
    pacing = ReplicaPacing(batch_size=batch, interval_ms=100, grace_ms=2_000, settle_ms=3_000)
    bench = RackBench(cluster, pacing=pacing)
    ids = sorted(cluster)
    bench.create(diskless("first", 4))
    bench.load("legacy", [900], [901, ids[0]])
    lives: Counter[int] = Counter()
    for number, (kind, value) in enumerate(history):
        broker = ids[value % len(ids)]
        fenced = bench.image.broker(broker).fenced
        if kind == "kill" and not fenced:
            bench.kill(broker)
        elif kind == "revive" and fenced:
            lives[broker] += 1
            bench.revive(broker, life=lives[broker])
        elif kind == "wait":
            bench.wait(value)
        elif kind == "create":
            bench.create(diskless(f"t{number}", value))
        check(bench)
    for _ in range(400):
        before = len(bench.log)
        bench.wait(60_000)
        if len(bench.log) == before:
            break
    else:
        raise AssertionError("repairs do not end")
    check_repaired(bench)


def check(bench: RackBench) -> None:
    for topic, index, partition in bench.machine.state.all_partitions():
        where = f"{topic.name}-{index}"
        assert partition.replicas, where
        assert len(set(partition.replicas)) == len(partition.replicas), where
        assert set(partition.isr) <= set(partition.replicas), where
        assert not partition.reassigning, where
        alive = [one for one in partition.replicas if bench.image.brokers.is_active(one)]
        if alive and topic.name != "legacy":
            assert list(partition.isr) == alive, where
            assert partition.leader in alive, where


def check_repaired(bench: RackBench) -> None:
    """No replica is on a dead broker if a live one without a replica could take it."""
    brokers = bench.image.brokers
    alive = {broker_id for broker_id in brokers.by_id if brokers.is_active(broker_id)}
    for topic, index, partition in bench.machine.state.all_partitions():
        if alive:
            where = f"{topic.name}-{index}: {partition}"
            assert all(one in brokers.by_id for one in partition.replicas), where
            assert partition.leader in alive, where
            dead = set(partition.replicas) - alive
            assert not dead or alive <= set(partition.replicas), where
