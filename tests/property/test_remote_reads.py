"""Reads of remote segments against a model: the log as its leader has it.

A history makes several versions of the log, for unclean elections cut its end off.
Segments were copied from any of them. Whatever is read belongs to the last one.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from skylog.kernel.errors import KafkaError
from skylog.tiered.reading import plan, searching
from skylog.tiered.reading.needs import HoleError, TimeSearch
from skylog.tiered.reading.pieces import pieces
from skylog.wire.batch import Batch, split_batches
from skylog.wire.records import decode_records
from tests.unit.tiered.reading_world import (
    FIRST_MS,
    Remote,
    bytes_of,
    play,
    played,
    stored,
    wanted,
)


@dataclass
class World:
    remote: Remote
    log: list[Batch]
    epochs: tuple[tuple[int, int], ...]
    copied: list[list[Batch]]

    @property
    def end(self) -> int:
        return self.log[-1].last_offset + 1

    def has(self, offset: int) -> bool:
        """Whether a segment has this offset in the lineage."""
        holder = self.at(offset)
        return any(bytes_of([holder]) in (bytes(b.buffer) for b in run) for run in self.copied)

    def at(self, offset: int) -> Batch:
        return next(batch for batch in self.log if batch.last_offset >= offset)


@st.composite
def worlds(draw: st.DrawFn) -> World:
    versions: list[list[Batch]] = []
    log: list[Batch] = []
    for epoch in range(draw(st.integers(1, 4))):
        if versions:
            # Any replica may be elected: it has the beginning of what a leader before it had.
            log = list(draw(st.sampled_from(versions)))
            del log[len(log) - draw(st.integers(0, min(3, len(log) - 1))) :]
        for _ in range(draw(st.integers(1, 6))):
            base = log[-1].last_offset + 1 if log else 0
            values = [b"%d" % epoch * draw(st.integers(0, 90))] * draw(st.integers(1, 3))
            timestamp = FIRST_MS + draw(st.integers(0, 20))
            log.append(stored(base, *values, epoch=epoch, timestamp=timestamp))
        versions.append(log)
    epochs: list[tuple[int, int]] = []
    for batch in log:
        if not epochs or epochs[-1][0] < batch.leader_epoch:
            epochs.append((batch.leader_epoch, batch.base_offset))
    remote, copied = Remote(), []
    for version in versions:
        cuts = draw(st.lists(st.integers(0, len(version)), min_size=2, max_size=5, unique=True))
        for first, last in pairwise(sorted(cuts)):
            if draw(st.booleans()):
                run = version[first:last]
                remote.put(run, interval=draw(st.sampled_from([1, 150, 4096])))
                copied.append(run)
    return World(remote, list(log), tuple(epochs), copied)


@given(worlds(), st.data())
def test_every_read_is_a_run_of_the_leaders_log(world: World, data: st.DataObject) -> None:
    hints = plan.Hints()
    for offset in range(world.end):
        asked = wanted(
            offset,
            data.draw(st.integers(0, 600)),
            epochs=world.epochs,
            min_one=data.draw(st.booleans()),
        )
        chunk = data.draw(st.sampled_from([64, 97, 200, 1 << 20]))
        try:
            steps = plan.read(world.remote.log, asked, hints)
            found, *_ = play(world.remote, steps, chunk)
        except HoleError:
            assert not world.has(offset)
            continue
        first = world.log.index(world.at(offset))
        size, count = 0, 0
        while size < found.size:
            size += world.log[first + count].size
            count += 1
        run = world.log[first : first + count]
        assert b"".join(found.parts) == bytes_of(run)
        assert world.has(offset)
        if count:
            assert found.next_offset == run[-1].last_offset + 1
            assert found.size <= asked.bytes_max or (count == 1 and asked.min_one)
        else:
            assert world.at(offset).size > asked.bytes_max
            assert not asked.min_one


@given(worlds(), st.integers(1, 500), st.data())
def test_pieces_for_bulk_readers_pass_no_offset_over(
    world: World, bytes_max: int, data: st.DataObject
) -> None:
    start = data.draw(st.integers(0, world.end - 1))
    end = data.draw(st.integers(start, world.end))
    found = list(pieces(world.remote.log, world.epochs, start, end, bytes_max))
    assert [offset for one in found for offset in range(one.base_offset, one.last_offset + 1)] == [
        *range(start, end)
    ]
    assert all(one.base_offset <= one.last_offset for one in found)
    for one in found:
        whole = one.last_offset > one.base_offset
        assert one.byte_size <= bytes_max or not whole


@given(worlds(), st.integers(-1, 21), st.data())
def test_the_first_record_at_or_after_a_time(world: World, after: int, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, world.end - 1))
    local = data.draw(st.integers(start, world.end))
    timestamp = FIRST_MS + after
    search = TimeSearch(timestamp, start, local, world.epochs)
    found = play(world.remote, searching.find_timestamp(world.remote.log, search), 64)
    below = {
        record.offset: batch
        for batch in world.log
        for record in decode_records(batch)
        if record.timestamp >= timestamp and record.offset >= start
    }
    if found is not None:
        batch = below[found.offset]
        assert (found.timestamp, found.leader_epoch) == (batch.max_timestamp, batch.leader_epoch)
    for offset in below:
        if offset >= local:
            break
        if world.has(offset) and (found is None or offset < found.offset):
            raise AssertionError(f"{offset} was passed over")


@given(worlds(), st.data())
def test_no_damage_in_the_store_gives_wrong_records(world: World, data: st.DataObject) -> None:
    """A checksum covers all of a batch but its first 21 bytes."""
    stores: list[Any] = [*world.remote.logs.values()]
    for key, index in tuple(world.remote.indexes.items()):
        world.remote.indexes[key] = damaged = bytearray(index)  # type: ignore[assignment]
        stores += [damaged] if damaged else []
    for _ in range(data.draw(st.integers(0, 4)) if stores else 0):
        store = data.draw(st.sampled_from(stores))
        store[data.draw(st.integers(0, len(store) - 1))] ^= data.draw(st.integers(1, 255))
    sound = {bytes(batch.buffer[21:]) for batch in world.log}
    chunk = data.draw(st.sampled_from([64, 1 << 20]))
    for offset in range(world.end):
        asked = wanted(offset, data.draw(st.integers(0, 600)), epochs=world.epochs)
        try:
            found = played(world.remote, asked, chunk)
            search = TimeSearch(FIRST_MS + offset, offset, world.end, world.epochs)
            play(world.remote, searching.find_timestamp(world.remote.log, search), chunk)
        except KafkaError:
            continue
        for batch in split_batches(b"".join(found.parts)):
            assert bytes(batch.buffer[21:]) in sound
