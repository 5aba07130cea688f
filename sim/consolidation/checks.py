"""What must hold after every step, and at the end (the invariants T1 to T16 of the design)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from sim.consolidation.broker import PARTITION
from sim.consolidation.bucket import SUFFIXES
from skylog.diskless.reader.patch import SERVED_EPOCH
from skylog.kernel.ids import Uuid
from skylog.tiered.layout.aiven import LOG, main_path
from skylog.tiered.lineage import Lineage
from skylog.tiered.segments import RemoteSegment, SegmentState
from skylog.wire.batch import split_batches
from skylog.wire.records import decode_records

if TYPE_CHECKING:
    from sim.consolidation.broker import SimBroker
    from sim.consolidation.world import World

FINISHED: Final = SegmentState.COPY_FINISHED


@dataclass(slots=True)
class Seen:
    """What was looked at before, so that nothing is looked at twice."""

    version: object = None
    start: int = 0
    # When a segment was first seen as finished.
    finished_ms: dict[bytes, int] = field(default_factory=dict)
    # The values of the records of a stored log, by its key; None: it cannot be read.
    values: dict[str, dict[int, bytes] | None] = field(default_factory=dict)


def lineage(world: World) -> Lineage:
    return Lineage(((SERVED_EPOCH, 0),), world.log.high_watermark)


def after_step(world: World) -> None:
    assert not world.failures, world.failures[0]
    topic, log = world.topic, world.log
    applied = tuple(broker.logs.applied if broker.up else -1 for broker in world.brokers)
    store = world.bucket.changes, world.wal.changes
    version = store, topic.committed, topic.life, log, applied
    if version == world.seen.version:
        return
    world.seen.version = version
    note_finished(world)
    objects_are_whole(world)
    wal_is_there(world)
    prefix_is_readable(world)
    for broker in world.brokers:
        if broker.up and broker.logs.is_ready:
            readable_by(world, broker)
    start_is_due(world)


def note_finished(world: World) -> None:
    for segment in world.topic.finished():
        world.seen.finished_ms.setdefault(bytes(segment.id), world.clock.now_ms())


def objects_are_whole(world: World) -> None:
    """T2: what is finished is complete; a manifest is put last and deleted first. T3: every object
    was named before. T8: what is stored is what was acknowledged."""
    bucket, names = world.bucket, dict[bytes, set[str]]()
    for key in bucket.text_keys():
        path, _, suffix = key.rpartition(".")
        names.setdefault(bytes_of(path), set()).add(suffix)
    for id_, found in names.items():
        # A late put may come behind the deletion; it is left to the scan for orphans then.
        whole = len(found) == len(SUFFIXES) or SUFFIXES[-1] not in found
        whole |= id_ in bucket.late | bucket.rotten
        assert whole, f"T2: a manifest with {found} only"
        assert id_ in world.topic.started, "T3: an object that the metadata topic never named"
    for segment in world.topic.finished():
        if bytes(segment.id) in bucket.rotten:
            continue
        found = names.get(bytes(segment.id), set())
        assert len(found) == len(SUFFIXES), f"T2: {segment.start_offset} has only {found}"
        data = bucket.data(f"{main_path(segment)}.{LOG}") or b""
        assert len(data) == segment.size, f"T2: {len(data)} bytes instead of {segment.size}"
        stored = values_of(world, segment)
        assert stored is not None, f"T8: {segment.start_offset} cannot be read"
        offsets = range(segment.start_offset, segment.end_offset + 1)
        assert sorted(stored) == list(offsets), f"T8: {sorted(stored)} instead of {offsets}"
        for offset, value in stored.items():
            assert value == world.committed[offset].value, f"T8: {offset} is {value!r}"


def bytes_of(path: str) -> bytes:
    return bytes(Uuid.parse(path[-22:]))


def values_of(world: World, segment: RemoteSegment) -> dict[int, bytes] | None:
    key = f"{main_path(segment)}.{LOG}"
    known = world.seen.values
    if key not in known:
        data = world.bucket.data(key)
        if data is None:
            return None
        known[key] = decoded(data)
    return known[key]


def decoded(data: bytes) -> dict[int, bytes] | None:
    """The values by offset; None if the bytes are no sound batches of the served epoch."""
    found: dict[int, bytes] = {}
    try:
        for batch in split_batches(data):
            if batch.leader_epoch != SERVED_EPOCH or not batch.crc_ok():
                return None
            for number, record in enumerate(decode_records(batch)):
                found[batch.base_offset + number] = bytes(record.value or b"")
    except Exception:  # noqa: BLE001 - damaged bytes may show themselves in any way
        return None
    return found


def wal_is_there(world: World) -> None:
    """T1: from the WAL start on, every record is in a WAL object that is there."""
    log, at = world.log, None
    assert log.high_watermark == len(world.committed)
    for batch in world.plane._state.batches(PARTITION, 0):
        first, last = batch.stamp.base_offset, batch.stamp.last_offset
        assert at is None or first == at, f"T1: {at} is not in the WAL"
        assert at is not None or first <= max(log.wal_start_offset, log.log_start_offset)
        assert world.wal.data(batch.extent.object_key) is not None, f"T1: {first}'s object is gone"
        at = last + 1
    if at is not None:
        assert at == log.high_watermark, f"T1: the WAL ends at {at}"
    else:
        end = max(log.wal_start_offset, log.log_start_offset)
        assert end == log.high_watermark, "T1: nothing is in the WAL"


def prefix_is_readable(world: World) -> None:
    """T1: below the WAL start, finished segments have every record from the log start on."""
    log, truth = world.log, world.topic.truth
    if log.log_start_offset < log.wal_start_offset:
        end = truth.covered_end(log.log_start_offset, lineage(world))
        assert end >= log.wal_start_offset, f"T1: {end} is neither tiered nor in the WAL"


def readable_by(world: World, broker: SimBroker) -> None:
    """T1 on a broker: it finds each of them in what it has read, or has not read everything."""
    log, remote = world.log, broker.logs.remote
    if log.log_start_offset < log.wal_start_offset and broker.logs.applied >= world.topic.committed:
        end = remote.covered_end(log.log_start_offset, lineage(world))
        assert end >= log.wal_start_offset, f"T1: broker {broker.node_id} does not find {end}"


def start_is_due(world: World) -> None:
    """Nothing went too soon: users deleted it, or it is too old, or there is too much of it."""
    start, before = world.log.log_start_offset, world.seen.start
    world.seen.start = start
    if start <= max(before, world.deleted_to):
        return
    plan, last = world.plan, world.committed[start - 1]
    is_old = 0 <= plan.retention_ms <= world.clock.now_ms() - last.timestamp
    kept = {one.batch: one.batch_bytes for one in world.committed[start - 1 :]}
    is_excess = 0 <= plan.retention_bytes < sum(kept.values())
    assert is_old or is_excess, f"log start {start} is beyond what retention lets go"


def may_prune(world: World, offset: int) -> None:
    """T5: only below the gapless finished end and the high watermark, all of it for a while."""
    note_finished(world)
    log, truth = world.log, world.topic.truth
    at = max(log.wal_start_offset, log.log_start_offset)
    end = min(truth.covered_end(at, lineage(world)), log.high_watermark)
    if offset > max(end, at):
        world.fail(f"T5: pruned up to {offset}, finished up to {end}")
    while at < offset:
        segment = truth.segment_for(SERVED_EPOCH, at)
        assert segment is not None
        if bytes(segment.id) in world.bucket.rotten:
            world.fail(f"T5: {at} is pruned, and its segment is not whole")
        age_ms = world.clock.now_ms() - world.seen.finished_ms[bytes(segment.id)]
        if age_ms < world.plan.prune_delay_ms and not _has_older(world, at):
            world.fail(f"T5: {at} is pruned {age_ms} ms after it was finished")
        at = segment.end_offset + 1


def _has_older(world: World, offset: int) -> bool:
    """Whether another segment has had the offset for long enough."""
    due_ms = world.clock.now_ms() - world.plan.prune_delay_ms
    return any(
        one.start_offset <= offset <= one.end_offset
        and world.seen.finished_ms[bytes(one.id)] <= due_ms
        for one in world.topic.finished()
    )


def may_delete(world: World, segment: RemoteSegment) -> None:
    """T6: a finished segment goes only below the log start, or if another one has its records."""
    at, truth = max(segment.start_offset, world.log.log_start_offset), world.topic.truth
    while at <= segment.end_offset:
        other = truth.segment_for(SERVED_EPOCH, at)
        if other is None:
            world.fail(f"T6: the copy of {at} is deleted")
        assert other is not None
        at = other.end_offset + 1


def at_the_end(world: World) -> None:
    """T15 and T16: all is copied and pruned, nothing is under way, and the store has what the
    topic names; WAL objects have gone with their last batch."""
    log, truth = world.log, world.topic.truth
    unfinished = [(one.start_offset, one.state.name) for one in truth.unfinished()]
    assert not unfinished, f"T16: {unfinished}"
    end = truth.covered_end(log.log_start_offset, lineage(world))
    assert end == log.high_watermark, f"T16: copied up to {end} of {log.high_watermark}"
    if world.bucket.rotten:
        return  # an operator has to help
    wal_start = max(log.wal_start_offset, log.log_start_offset)
    assert wal_start == log.high_watermark, f"T16: pruned up to {log.wal_start_offset} of {end}"
    named = {bytes(segment.id) for segment in truth.all()} - world.bucket.rotten
    stored = {bytes_of(key.rpartition(".")[0]) for key in world.bucket.text_keys()}
    assert stored == named, "T15: objects and metadata differ"
    assert not world.wal.text_keys(), f"ENG-61: {len(world.wal.text_keys())} WAL objects are left"
    for broker in world.brokers:
        left = broker.assembled_logs()
        assert not left, f"broker {broker.node_id} has {left}"
    starts = [one for one in truth.all() if one.end_offset < log.log_start_offset]
    assert not starts, f"T16: {starts[0].start_offset} is below the log start and still there"
