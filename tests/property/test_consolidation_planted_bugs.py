"""Bugs of consolidation, each planted and each found: by a history of ``sim.consolidation``, or,
where no history comes to it, by a check of that part alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import sim.consolidation.broker as sim_broker
import skylog.diskless.rules.offsets as offsets_module
import skylog.tiered.consolidation.assembler as assembler_module
import skylog.tiered.consolidation.prune as prune_module
from sim.consolidation.__main__ import play
from sim.consolidation.remote_logs import SimRemoteLogs
from skylog.broker.tiered.assembly_source import AssemblySource
from skylog.broker.tiered.registry import ClusterRegistry
from skylog.diskless.plane import PruneResult
from skylog.diskless.planes.memory import MemoryPlane
from skylog.diskless.reader.patch import SERVED_EPOCH
from skylog.diskless.rules.offsets import LogState
from skylog.tiered.consolidation.ripening import Ripening
from skylog.tiered.consolidation.walk import SegmentWalk
from skylog.tiered.copying import deleting
from skylog.tiered.expirer import Expirer
from skylog.tiered.hosted import Hosted
from skylog.tiered.metadata.intervals import EpochIntervals, Interval
from skylog.tiered.metadata.machine import RemoteLog
from skylog.tiered.orphans import KnownSegments
from skylog.tiered.ports import Published
from skylog.tiered.segments import SegmentState
from tests.property.kept_seeds import kept
from tests.unit.tiered.remote_records import History, segment

SEEDS_MAX = 300
# Seeds that show a rare bug; others are tried after them.
FIRST = {each.why: each.seed for each in kept("sim.consolidation")}
Patch = Callable[[pytest.MonkeyPatch], None]
BUGS: dict[str, Patch] = {}


def bug(plant: Patch) -> Patch:
    BUGS[plant.__name__.replace("_", " ")] = plant
    return plant


# --- The prune ------------------------------------------------------------------------------------


@bug
def prunes_to_what_is_being_copied(patch: pytest.MonkeyPatch) -> None:
    real = RemoteLog.run

    def run(self: RemoteLog, epoch: int, offset: int) -> Iterator[Interval]:
        for one in real(self, epoch, offset):
            yield one
            offset = one.end + 1
        for begun in self.unfinished():
            is_begun = begun.state is SegmentState.COPY_STARTED and begun.size > 0
            if is_begun and begun.start_offset <= offset <= begun.end_offset:
                yield Interval(begun.start_offset, begun.end_offset, 0, bytes(begun.id))
                offset = begun.end_offset + 1

    patch.setattr(RemoteLog, "run", run)
    _does_not_read_back(patch)


@bug
def moves_the_log_start_with_a_prune(patch: pytest.MonkeyPatch) -> None:
    real = MemoryPlane.prune_to

    async def prune_to(self: MemoryPlane, requests: Any) -> list[PruneResult]:
        await self.delete_records(requests)
        return await real(self, requests)

    patch.setattr(MemoryPlane, "prune_to", prune_to)


@bug
def prunes_one_offset_too_far(patch: pytest.MonkeyPatch) -> None:
    real = prune_module.target

    def target(*given: Any) -> int | None:
        end = real(*given)
        return None if end is None else end + 1

    patch.setattr(prune_module, "target", target)


@bug
def prunes_to_the_highest_remote_offset(patch: pytest.MonkeyPatch) -> None:
    """Though segments below it are younger, or not there."""

    def target(self: Any, candidate: Any, whole: set[bytes]) -> int | None:
        return int(candidate.remote.highest_offset(SERVED_EPOCH)) + 1

    patch.setattr(prune_module.PrunePass, "_target", target)


@bug
def prunes_at_once(patch: pytest.MonkeyPatch) -> None:
    real = Ripening.ripe

    def ripe(self: Ripening, epoch: int, start: int, high: int, now: float, _: float) -> Any:
        self._notes[0] = self._notes[0]._replace(rank=2**62)
        return real(self, epoch, start, high, now, 0.0)

    patch.setattr(Ripening, "ripe", ripe)


@bug
def does_not_read_segments_back(patch: pytest.MonkeyPatch) -> None:
    _does_not_read_back(patch)


def _does_not_read_back(patch: pytest.MonkeyPatch) -> None:
    async def believed(*_: Any) -> None:
        """Whatever the metadata topic says is there."""

    patch.setattr(sim_broker, "read_back", believed)


# --- The assembly ---------------------------------------------------------------------------------


@bug
def begins_one_offset_behind_what_is_covered(patch: pytest.MonkeyPatch) -> None:
    real = RemoteLog.covered_end

    def covered_end(self: RemoteLog, at: int, lineage: Any) -> int:
        end = real(self, at, lineage)
        return end + 1 if end > at else end

    patch.setattr(RemoteLog, "covered_end", covered_end)


@bug
def puts_without_walking(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(SegmentWalk, "take", lambda self, piece: None)
    patch.setattr(SegmentWalk, "end", lambda self: None)


@bug
def resumes_what_an_earlier_process_left(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(assembler_module, "remove_leftovers", lambda directory: None)


@bug
def does_not_read_its_records_back(patch: pytest.MonkeyPatch) -> None:
    real = SimRemoteLogs.publish

    async def publish(self: SimRemoteLogs, partition: Any, record: Any) -> Published:
        self._broker.loop.create_task(real(self, partition, record))
        return Published.EFFECTIVE

    patch.setattr(SimRemoteLogs, "publish", publish)


# --- Retention ------------------------------------------------------------------------------------


@bug
def moves_the_log_start_after_the_deletion(patch: pytest.MonkeyPatch) -> None:
    async def run(self: Expirer, hosted: Hosted, remote: RemoteLog) -> int | None:
        await hosted.source.refresh()
        expiry = self._expired(hosted, remote)
        for one in expiry.segments:
            await self._runner.run(deleting(one), hosted, sleep=self._pause)
        if expiry.log_start_offset > hosted.log_start_offset:
            await hosted.source.start_at(expiry.log_start_offset)
        return expiry.due_ms

    patch.setattr(Expirer, "_run", run)


@bug
def retention_passes_over_a_pruned_prefix(patch: pytest.MonkeyPatch) -> None:
    real = offsets_module.retention_start

    def retention_start(oldest: Any, log: LogState, *more: Any) -> int:
        return real(oldest, log._replace(wal_start_offset=log.log_start_offset), *more)

    patch.setattr(offsets_module, "retention_start", retention_start)


@bug
def takes_consolidated_segments_for_orphans(patch: pytest.MonkeyPatch) -> None:
    """No replica knows them; the log has all of its offsets."""

    async def consolidated(self: Any, leader: int, partition: Any) -> KnownSegments:
        return KnownSegments(frozenset(), 0, [(0, 2**62)])

    patch.setattr(ClusterRegistry, "_consolidated", consolidated)


@bug
def a_moved_log_start_wakes_nobody(patch: pytest.MonkeyPatch) -> None:
    """Segments below it stay for ever in a partition without traffic (found by the simulation)."""
    real = AssemblySource.learn

    def learn(self: AssemblySource, info: Any) -> None:
        known = self.info
        self.info = known._replace(
            log_start_offset=max(info.log_start_offset, known.log_start_offset),
            wal_start_offset=max(info.wal_start_offset, known.wal_start_offset),
        )
        real(self, info)

    patch.setattr(AssemblySource, "learn", learn)


@pytest.mark.parametrize("name", BUGS)
def test_the_simulation_finds(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SKYLOG_INVARIANT_RAISES", "1")
    BUGS[name](monkeypatch)
    seeds = [FIRST[name]] if name in FIRST else []
    for seed in [*seeds, *range(SEEDS_MAX)]:
        if play(seed)[1] is not None:
            return
    pytest.fail(f"{SEEDS_MAX} seeds do not show it")


# --- Parts alone ----------------------------------------------------------------------------------


def ripe_end(*finished: tuple[int, int]) -> int:
    """Up to where the WAL may go, of a log of 100 records with these segments."""
    history = History()
    history.copied(*(segment(number, *ends) for number, ends in enumerate(finished, 1)))
    ripening = Ripening()
    ripening.note(history.log, 0.0, 1.0)
    ripe = ripening.ripe(SERVED_EPOCH, 0, 100, 5.0, 1.0)
    return prune_module.target(ripe, {one.id for one in ripe}) or 0


def test_a_gap_is_not_covered(monkeypatch: pytest.MonkeyPatch) -> None:
    assert ripe_end((0, 9), (20, 29)) == 10

    def run(self: EpochIntervals, offset: int) -> Iterator[Interval]:
        return (one for one in self if one.end >= offset)

    monkeypatch.setattr(EpochIntervals, "run", run)
    assert ripe_end((0, 9), (20, 29)) == 30
