"""What a new leader takes from the remote log."""

from __future__ import annotations

import asyncio

import pytest

from skylog.log.epochs import LeaderEpochs
from skylog.tiered.leading import lacks_epochs, merged, needs_preparation
from tests.tiered_world import Broker, LocalSegment, World, WorldLog, with_config


def copied(records: int = 35) -> tuple[World, Broker]:
    world = World()
    log = WorldLog(world)
    broker = Broker(world, log, 1)
    log.append(records)
    asyncio.run(broker.settle())
    log.drop_local()
    return world, broker


def lead(world: World, log: WorldLog, epoch: int) -> Broker:
    broker = Broker(world, log, epoch, seed=1)
    asyncio.run(broker.settle())
    return broker


def test_a_leader_with_everything_needs_nothing() -> None:
    world, old = copied()
    heir = Broker(world, old.log, 2)
    assert not needs_preparation(heir.hosted, heir.remote)
    asyncio.run(heir.settle())
    assert heir.log.served == 2  # once for each leader
    heir.check_settled()


def test_the_log_start_is_at_least_that_of_the_metadata_topic() -> None:
    world, old = copied()
    follower = WorldLog(world)
    follower.epochs = LeaderEpochs([(1, 0)])
    follower.segments = [LocalSegment(30, list(old.log.segments[-1].records), 0)]
    old.log.config = with_config(retention_bytes=1500)
    asyncio.run(old.settle())
    assert old.log.log_start_offset == 20
    heir = lead(world, follower, 2)
    assert heir.log.log_start_offset == 20
    heir.check_settled()


def test_a_metadata_topic_that_has_lost_all_moves_no_log_start() -> None:
    """What is in the store can be found again by its manifests, but not below the log start."""
    world, old = copied()
    assert (old.log.log_start_offset, old.log.local_log_start_offset) == (0, 30)
    world.topic.clear()
    heir = lead(world, old.log, 2)
    assert heir.log.log_start_offset == 0


def test_new_records_below_the_log_start_of_another_lineage_stay() -> None:
    """After an unclean election the leader may end before the log start of the one before it."""
    world, old = copied()
    old.log.config = with_config(retention_bytes=500)
    asyncio.run(old.settle())
    assert old.log.log_start_offset == 30
    shorter = WorldLog(world)
    shorter.lead(1)
    shorter.append(15)
    heir = lead(world, shorter, 2)
    first = heir.log.log_end_offset
    heir.log.append(5)
    asyncio.run(heir.settle())
    assert heir.log.log_start_offset <= first


def test_lost_epochs_move_no_log_start() -> None:
    world, old = copied()
    old.log.lead(3)
    old.log.epochs = LeaderEpochs([(3, 30)])
    heir = Broker(world, old.log, 4)
    heir.remote.log_starts.clear()  # records of Kafka do not have it
    asyncio.run(heir.settle())
    assert heir.log.log_start_offset == 0


def test_lost_epochs_come_from_the_newest_segment() -> None:
    world, old = copied()
    old.log.epochs = LeaderEpochs([(1, 30)])
    heir = Broker(world, old.log, 2)
    assert lacks_epochs(heir.hosted)
    asyncio.run(heir.settle())
    assert list(heir.log.epochs) == [(1, 0), (2, 35)]
    heir.check_settled()


def test_expiry_rests_until_the_epochs_are_known() -> None:
    world, old = copied()
    old.log.epochs = LeaderEpochs([(1, 30)])
    old.log.config = with_config(retention_bytes=0)
    heir = Broker(world, old.log, 2)
    assert not heir.expirer.has_work(heir.hosted, heir.remote)
    asyncio.run(heir.settle())
    assert heir.log.log_start_offset == 30


def test_an_empty_leader_is_set_up_behind_the_remote_log() -> None:
    world, _ = copied()
    heir = Broker(world, WorldLog(world), 4)
    assert needs_preparation(heir.hosted, heir.remote)
    asyncio.run(heir.settle())
    assert heir.log.log_end_offset == 30
    assert heir.log.log_start_offset == 0
    assert list(heir.log.epochs) == [(1, 0), (4, 30)]
    heir.log.append(20)
    asyncio.run(heir.settle())
    heir.check_settled()
    assert len(list(heir.remote.all())) == 4  # 40 to 49 is the active segment


def test_an_empty_leader_in_its_first_epoch_is_just_new() -> None:
    world = World()
    broker = Broker(world, WorldLog(world), 0)
    assert not needs_preparation(broker.hosted, broker.remote)


def test_an_emptied_log_is_not_set_up_again() -> None:
    world, old = copied()
    asyncio.run(old.log.start_at(35))
    asyncio.run(old.settle())
    assert not world.objects
    log = WorldLog(world)
    log.segments = [LocalSegment(35, [], -1)]
    log.log_start_offset = 35
    heir = Broker(world, log, 2)
    assert not needs_preparation(heir.hosted, heir.remote)


@pytest.mark.parametrize(
    ("remote", "local", "expected"),
    [
        ([(0, 0), (1, 10)], [(1, 30)], [(0, 0), (1, 10)]),
        ([(0, 0), (1, 10)], [(2, 30)], [(0, 0), (1, 10), (2, 30)]),
        ([(0, 0), (3, 10)], [(2, 30)], [(0, 0), (2, 30)]),
        ([(0, 0), (1, 40)], [(1, 30), (2, 50)], [(0, 0), (1, 30), (2, 50)]),
        ([(0, 0)], [], [(0, 0)]),
    ],
)
def test_epochs_of_both_are_merged(
    remote: list[tuple[int, int]], local: list[tuple[int, int]], expected: list[tuple[int, int]]
) -> None:
    assert merged(remote, local) == expected
