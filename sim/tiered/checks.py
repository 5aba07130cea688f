"""What must hold after every step, and at the end (the invariants T1 to T16 of the design)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sim.tiered.store import PUT_ORDER
from skylog.tiered.lineage import Lineage
from skylog.tiered.metadata.machine import RemoteLog
from skylog.tiered.segments import RemoteSegment, SegmentState

if TYPE_CHECKING:
    from sim.tiered.broker import SimBroker
    from sim.tiered.disk import Segment
    from sim.tiered.world import World

FINISHED = SegmentState.COPY_FINISHED
# A record that an unclean election may have taken.
GONE: Final = (-1, -1)


def after_step(world: World) -> None:
    objects_are_whole(world)
    leader = world.brokers[world.state.leader]
    if leader.up and leader.known == world.state and leader.hosted.is_prepared:
        readable(world, leader)
        start_is_due(world, leader)


def objects_are_whole(world: World) -> None:
    """T2: what is finished is complete; a manifest is put last and deleted first."""
    version = world.stored.changes, world.topic.committed, world.topic.life
    if version == world.checked:
        return
    world.checked = version
    for id_, objects in world.stored.objects.items():
        # A late put may come behind the deletion; it is left to the scan for orphans then.
        whole = len(objects) == len(PUT_ORDER) or "manifest" not in objects
        whole |= id_ in world.stored.late
        assert whole, f"T2: a manifest without {set(PUT_ORDER) - set(objects)}"
        assert id_ in world.topic.started, "T3: an object that the metadata topic never named"
    for segment in world.topic.finished():
        found = world.stored.objects.get(segment.id, {})
        assert len(found) == len(PUT_ORDER), f"T2: {segment.start_offset} has only {set(found)}"


def readable(world: World, leader: SimBroker) -> None:
    """T1 and T9: the leader serves every acknowledged record from its log start on, or from where
    a deposed leader has moved it to before this one wrote its first record."""
    disk, committed = leader.disk, world.committed
    assert disk.log_end_offset >= len(committed), f"T1: {disk.log_end_offset} is not in the log"
    for segment in disk.segments:
        start = max(segment.base_offset, disk.log_start_offset)
        mine = segment.records[start - segment.base_offset :]
        theirs = committed[start : segment.end_offset]
        same = mine == theirs or mine[: len(theirs)] == theirs
        assert same, f"T1: the local records from {start} on are others"
    end = min(disk.local_log_start_offset, len(committed))
    for remote in (leader.remote, world.topic.truth):
        at = max(disk.log_start_offset, leader.hosted.lineage.told_start(world.topic.truth))
        while at < end:
            at = _read(world, remote, leader.hosted.lineage, at, end)


def _read(world: World, remote: RemoteLog, lineage: Lineage, offset: int, end: int) -> int:
    run = lineage.run_at(offset)
    segment = None if run is None else remote.segment_for(run[0], offset)
    assert segment is not None, f"T1: no remote segment has {offset}"
    assert run is not None
    last = min(segment.end_offset + 1, run[1], end)
    for at in range(offset, last):
        found = world.stored.record(segment, at)
        # One that was elected without its epochs may find them, and old records with them.
        same = world.committed[at] in (found, GONE)
        assert same, f"T1: {at} is {found} in the store"
    return last


def start_is_due(world: World, leader: SimBroker) -> None:
    """Nothing went too soon. What an older leader has deleted was checked there; after an unclean
    election other records may have its offsets."""
    start = leader.disk.log_start_offset
    before = max(world.deleted_to, leader.hosted.lineage.told_start(world.topic.truth))
    if before < start <= len(world.committed):
        retention_ms, written_ms = world.config.retention_ms, world.committed[start - 1][1]
        is_old = 0 <= retention_ms <= world.clock.now_ms() - written_ms
        assert is_old, f"log start {start} is beyond what retention lets go"


def may_drop(world: World, broker: SimBroker, segment: Segment) -> None:
    """T4: a local segment goes only if its records are in the store, or before the log start."""
    disk, truth = broker.disk, world.topic.truth
    lineage = Lineage(disk.epochs, disk.log_end_offset)
    start = max(segment.base_offset, disk.log_start_offset, lineage.told_start(truth))
    for offset in range(start, segment.end_offset):
        epoch = lineage.epoch_of(offset)
        found = None if epoch is None else truth.segment_for(epoch, offset)
        assert found is not None, f"T4: {offset} is dropped and not remote"
        record = segment.records[offset - segment.base_offset]
        assert world.stored.record(found, offset) == record, f"T4: {offset} is another record"


def may_delete(world: World, segment: RemoteSegment) -> None:
    """T6: a finished segment goes only below the log start, or if another one has its records."""
    disk, truth = world.brokers[world.state.leader].disk, world.topic.truth
    lineage = Lineage(disk.epochs, disk.log_end_offset)
    start = max(segment.start_offset, lineage.told_start(truth), disk.log_start_offset)
    for offset in range(start, min(segment.end_offset + 1, len(world.committed))):
        epoch = [one for one, first in segment.epochs if first <= offset][-1]
        if lineage.epoch_of(offset) == epoch:
            other = truth.segment_for(epoch, offset)
            assert other is not None, f"T6: the copy of {offset} is deleted"


def same_as_replayed(world: World, broker: SimBroker) -> None:
    """T10: from a snapshot and the rest, or from the beginning: the same."""
    fresh = RemoteLog(broker.remote.partition, broker.remote.topic)
    for offset in range(broker.applied):
        fresh.apply(world.topic.record(offset), offset)
    mine, other = broker.remote.snapshot(), fresh.snapshot()
    mine[0].metadata_offset = other[0].metadata_offset = 0
    for name in type(mine[0]).__slots__:
        if name != "highest_offsets":
            assert getattr(mine[0], name) == getattr(other[0], name), f"T10: {name}"
    assert sorted(mine[1]) == sorted(other[1]), "T10: segments"
    assert sorted(broker.remote.highest_offsets()) == sorted(fresh.highest_offsets()), "T10"


def at_the_end(world: World) -> None:
    """T15 and T16: all is copied, nothing is under way, the store has what the topic names. T6: the
    log start is the one that deletions rest on."""
    leader, truth = world.brokers[world.state.leader], world.topic.truth
    unfinished = [(one.start_offset, one.state.name) for one in truth.unfinished()]
    assert not unfinished, f"T16: {unfinished}"
    disk, lineage = leader.disk, leader.hosted.lineage
    assert disk.log_start_offset >= lineage.told_start(truth), "T6"
    start = max(disk.log_start_offset, disk.segments[0].base_offset)
    covered = truth.covered_end(start, lineage)
    assert covered >= min(disk.closed_end, disk.log_end_offset), f"T16: copied up to {covered}"
    named = {bytes(segment.id) for segment in truth.all()}
    assert set(map(bytes, world.stored.objects)) == named, "T15: objects and metadata differ"
