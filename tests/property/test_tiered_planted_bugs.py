"""Bugs of tiered storage, each planted and each found: by a history of ``sim.tiered``, or, where
the simulation does not play the part, by a check of that part alone."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import sim.tiered.store as sim_store
import skylog.tiered.copier as copier_module
import skylog.tiered.retention as retention_module
import skylog.tiered.sagas as sagas_module
from sim.tiered.__main__ import play
from sim.tiered.broker import SimBroker
from sim.tiered.disk import SimLog
from skylog.kernel.clock import ManualClock
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.log.config import LogConfig
from skylog.log.files import Files
from skylog.log.host import LogHost
from skylog.log.log import Log
from skylog.log.recovery import Checkpointed
from skylog.objects.holds import Hold
from skylog.replication.tier_rebuild import TierRebuild
from skylog.tiered import orphans
from skylog.tiered.candidates import abandoned
from skylog.tiered.copier import Copier
from skylog.tiered.copying import Outcome, Stage, deleting
from skylog.tiered.expirer import Expirer
from skylog.tiered.hosted import Hosted
from skylog.tiered.lineage import Lineage
from skylog.tiered.metadata.intervals import EpochIntervals, Interval
from skylog.tiered.metadata.machine import Outcome as Applied
from skylog.tiered.metadata.machine import RemoteLog
from skylog.tiered.ports import Published
from skylog.tiered.sagas import SagaRunner
from skylog.tiered.segments import SegmentState
from tests.property.kept_seeds import kept
from tests.unit.log.support import NOW, batch, open_log
from tests.unit.tiered.remote_records import PARTITION, TOPIC, History, segment

SEEDS_MAX = 600
# Seeds that show a rare bug; others are tried after them.
FIRST = {each.why: each.seed for each in kept("sim.tiered")}
Patch = Callable[[pytest.MonkeyPatch], None]
BUGS: dict[str, Patch] = {}


def bug(plant: Patch) -> Patch:
    BUGS[plant.__name__.replace("_", " ")] = plant
    return plant


# --- The copy saga --------------------------------------------------------------------------------


@bug
def does_not_read_its_records_back(patch: pytest.MonkeyPatch) -> None:
    real = SimBroker.publish

    async def publish(self: SimBroker, partition: Any, record: Any) -> Published:
        lane = real(self, partition, record)
        lane.send(None)
        lane.close()
        return Published.EFFECTIVE

    patch.setattr(SimBroker, "publish", publish)


@bug
def puts_the_manifest_first(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(sim_store, "PUT_ORDER", ("manifest", "log", "indexes"))


@bug
def deletes_the_log_before_the_manifest(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(sim_store, "DELETE_ORDER", ("log", "indexes", "manifest"))


@bug
def writes_the_epoch_in_which_the_saga_began(patch: pytest.MonkeyPatch) -> None:
    real, began = sagas_module.record_of, {}  # type: ignore[var-annotated]

    def record_of(saga: Any, broker_id: int, now_ms: int, epoch: int, start: int) -> Any:
        first = began.setdefault(saga.segment.id, epoch)
        return real(saga, broker_id, now_ms, first, start)

    patch.setattr(sagas_module, "record_of", record_of)


@bug
def discards_a_copy_whose_repeated_record_is_void(patch: pytest.MonkeyPatch) -> None:
    """The first one took effect, and others rely on it (found by the simulation)."""
    real = SagaRunner._publish

    async def publish(self: SagaRunner, saga: Any, author: Any) -> Outcome:
        voids = self._counts.void_records
        outcome = await real(self, saga, author)
        is_void = self._counts.void_records > voids
        return Outcome.VOID if is_void and saga.stage is Stage.FINISH else outcome

    patch.setattr(SagaRunner, "_publish", publish)


@bug
def copies_only_behind_the_highest_remote_offset(patch: pytest.MonkeyPatch) -> None:
    """As Kafka does; a gap stays one."""

    def uncopied(closed: Any, remote: RemoteLog, lineage: Lineage, start: int) -> list[Any]:
        highest = lineage.highest_remote_offset(remote).offset
        return [one for one in closed if one.base_offset > highest and one.next_offset > start]

    patch.setattr(copier_module, "uncopied", uncopied)


@bug
def copies_above_the_last_stable_offset(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(SimLog, "last_stable_offset", SimLog.log_end_offset)
    patch.setattr(SimBroker, "_check", _check_stable)


def _check_stable(self: SimBroker, what: str, one: Any) -> None:
    disk = self.disk
    first = disk.log_end_offset if disk.open_transaction is None else disk.open_transaction
    assert what != "put" or one.end_offset < min(first, disk.high_watermark), "T11"


# --- The fence, and cleaning ----------------------------------------------------------------------


@bug
def cleans_without_a_claim(patch: pytest.MonkeyPatch) -> None:
    real = Copier.run

    async def run(self: Copier, hosted: Hosted, remote: RemoteLog) -> Any:
        left = abandoned(remote, hosted.leader_epoch, hosted.failed)
        if hosted.is_prepared and left:
            await self._clean(hosted, left[0])
            return None
        return await real(self, hosted, remote)

    patch.setattr(Copier, "run", run)


# --- The remote log -------------------------------------------------------------------------------


@bug
def covers_one_offset_too_many(patch: pytest.MonkeyPatch) -> None:
    real = RemoteLog.covered_end
    patch.setattr(RemoteLog, "covered_end", lambda self, at, lineage: real(self, at, lineage) + 1)


# --- The log start --------------------------------------------------------------------------------


@bug
def moves_the_log_start_after_the_deletion(patch: pytest.MonkeyPatch) -> None:
    async def run(self: Expirer, hosted: Hosted, remote: RemoteLog) -> int | None:
        expiry = self._expired(hosted, remote)
        for one in expiry.segments:
            await self._runner.run(deleting(one), hosted, sleep=self._pause)
        if expiry.log_start_offset > hosted.log_start_offset:
            await hosted.source.start_at(expiry.log_start_offset)
        return expiry.due_ms

    patch.setattr(Expirer, "_run", run)


@bug
def keeps_its_own_log_start_as_a_new_leader(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(copier_module, "start_is_behind", lambda hosted, remote: False)
    patch.setattr(Lineage, "log_start_from", lambda self, remote, local: -1)


# --- The metadata topic ---------------------------------------------------------------------------


@bug
def commits_metadata_before_it_is_synced(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(sim_store.MetadataLog, "high_watermark", property(lambda self: len(self.values)))


@pytest.mark.parametrize("name", BUGS)
def test_the_simulation_finds(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SKYLOG_INVARIANT_RAISES", "1")
    BUGS[name](monkeypatch)
    seeds = [FIRST[name]] if name in FIRST else []
    for seed in [*seeds, *range(SEEDS_MAX)]:
        if play(seed)[1] is not None:
            return
    pytest.fail(f"{SEEDS_MAX} seeds do not show it")


# --- Parts that the simulation does not play ------------------------------------------------------


def cleans_its_own_epoch() -> bool:
    """A copy of the present epoch, which may yet finish, counts as abandoned."""
    history = History()
    history.started(segment(1, 0, 9, copier_epoch=3))
    return bool(copier_module.abandoned(history.log, 3))


def an_older_leader_finishes() -> bool:
    history = History()
    old = segment(1, 0, 9, copier_epoch=3)
    history.started(old)
    history.started(segment(2, 0, 9, copier_epoch=4))
    return history.finished(old, epoch=3) is Applied.EFFECTIVE


def a_longer_segment_is_hidden() -> bool:
    history = History()
    old, new = segment(1, 0, 100), segment(2, 0, 200)
    history.started(old)
    history.started(new)
    history.finished(new)
    history.finished(old)
    return history.log.segment_for(0, 150) is None


def led(*closed: tuple[int, int]) -> tuple[Hosted, History]:
    """A leader in epoch 1 with 20 records, of which these ranges are remote."""
    disk = SimLog(ManualClock(), LogConfig(remote_storage_enable=True, remote=True))
    for _ in range(20):
        disk.append((0, 0))
    disk.high_watermark = 20
    hosted, history = Hosted(PARTITION, TOPIC, disk), History()
    hosted.led(1)
    hosted.prepared()
    history.copied(*(segment(number, *ends) for number, ends in enumerate(closed, 1)))
    return hosted, history


def drops_what_is_behind_a_gap() -> bool:
    hosted, history = led((0, 3), (8, 11))
    hosted.follow(history.log)
    disk = hosted.source
    assert isinstance(disk, SimLog)
    return disk.remote_end > 4


def keeps_a_log_start_that_others_have_passed() -> bool:
    hosted, history = led((0, 3))
    history.update(segment(1, 0, 3), SegmentState.DELETE_STARTED, epoch=0, log_start=4)
    return not copier_module.start_is_behind(hosted, history.log)


def leaves_a_record_that_came_late() -> bool:
    """It begins a segment again that this leader has deleted."""
    hosted, history = led()
    late = segment(7, 4, 7, copier_epoch=1)
    hosted.give_up(bytes(late.id))
    history.started(late)
    return not abandoned(history.log, 1, hosted.failed)


def cleans_what_may_finish() -> bool:
    """Its COPY_FINISHED was sent in this epoch, and may come after the cleaning has begun."""
    runner = SagaRunner(1, None, None, None, None, None)  # type: ignore[arg-type]
    runner._finishing.add(b"id")
    return not runner.may_finish(b"id")


def _one_for_each_start(patch: pytest.MonkeyPatch) -> None:
    real = EpochIntervals.add

    def add(self: EpochIntervals, interval: Interval) -> bool:
        for other in [one for one in self if one.start == interval.start]:
            self.remove(other.start, other.id)
        return real(self, interval)

    patch.setattr(EpochIntervals, "add", add)


def _over_a_gap(patch: pytest.MonkeyPatch) -> None:
    real = RemoteLog.covered_end

    def covered_end(self: RemoteLog, from_offset: int, lineage: Any) -> int:
        end = real(self, from_offset, lineage)
        later = [one.start_offset for one in self.all() if one.start_offset > end]
        is_finished = later and any(self.segment_for(epoch, later[0]) for epoch in self.epochs())
        return real(self, later[0], lineage) if is_finished else end

    patch.setattr(RemoteLog, "covered_end", covered_end)


def a_gap_is_covered() -> bool:
    _, history = led((0, 3), (8, 11))
    return history.log.covered_end(0, Lineage([(0, 0)], 20)) > 4


def the_epoch_alone_decides() -> bool:
    """The only copy of records from the log start on goes, for the leader lost their epoch."""
    _, history = led((0, 3))
    local = retention_module.LocalPart(0, 4, 20, 0)
    lineage, limits = Lineage([(5, 0)], 20), retention_module.Limits()
    return bool(retention_module.expired(history.log, lineage, local, limits, 0).segments)


def _highest(patch: pytest.MonkeyPatch) -> None:
    real = SimLog.remote_moved
    patch.setattr(
        SimLog, "remote_moved", lambda self, highest, end: real(self, highest, highest + 1)
    )


# What shows the bug, and how it is planted.
ALONE: dict[Callable[[], bool], Patch] = {
    cleans_its_own_epoch: lambda patch: patch.setattr(
        copier_module, "abandoned", lambda remote, epoch: abandoned(remote, epoch + 1)
    ),
    an_older_leader_finishes: lambda patch: patch.setattr(
        RemoteLog, "_is_void", lambda self, epoch: False
    ),
    a_longer_segment_is_hidden: _one_for_each_start,
    drops_what_is_behind_a_gap: _highest,
    a_gap_is_covered: _over_a_gap,
    the_epoch_alone_decides: lambda patch: patch.setattr(
        retention_module, "is_readable_without", lambda *args: True
    ),
    keeps_a_log_start_that_others_have_passed: lambda patch: patch.setattr(
        copier_module, "start_is_behind", lambda hosted, remote: False
    ),
    leaves_a_record_that_came_late: lambda patch: patch.setattr(
        Hosted, "give_up", lambda self, segment_id: None
    ),
    cleans_what_may_finish: lambda patch: patch.setattr(
        SagaRunner, "may_finish", lambda self, segment_id: False
    ),
}


@pytest.mark.parametrize("shows", ALONE, ids=lambda shows: shows.__name__)
def test_a_part_alone_shows(shows: Callable[[], bool], monkeypatch: pytest.MonkeyPatch) -> None:
    assert not shows()
    ALONE[shows](monkeypatch)
    assert shows()


def opened_start(directory: Path, *, entry: bool) -> int:
    """The start of a log whose first segment begins at 40, opened without or with an entry of 0."""
    log = open_log(directory)
    log.truncate_fully_and_start_at(40)
    log.appender.append([batch(b"a")], 0, NOW)
    known = Checkpointed(has_start=entry)
    host = LogHost(Files(16))
    return Log.open(("t", 0), str(directory), host, LogConfig(), NOW, known).log_start_offset


def test_a_log_without_an_entry_begins_with_its_first_segment(tmp_path: Path) -> None:
    assert opened_start(tmp_path / "a", entry=False) == 40
    # As if there were an entry that says 0.
    assert opened_start(tmp_path / "b", entry=True) == 0


class Untouched:
    """A replica that must keep what it has until the download is complete."""

    leader_epoch = 3

    def __init__(self) -> None:
        self.truncated = False
        self.log = SimpleNamespace(log_end_offset=5, size=100, log_start_offset=0, latest_epoch=0)

    def truncate_fully_and_start_at(self, *args: object) -> None:
        self.truncated = True


class Leader:
    async def offset(self, partition: Any, epoch: int, timestamp: int) -> Any:
        return SimpleNamespace(offset=0 if timestamp == -2 else 50, epoch=0)


class NoStore:
    from_last_tiered_offset = False

    async def state_at(self, *args: object) -> Any:
        raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)


def truncates_before_the_download() -> bool:
    replica = Untouched()
    rebuild = TierRebuild(replica, Leader(), NoStore())  # type: ignore[arg-type]
    with pytest.raises(KafkaError):
        asyncio.run(rebuild.run())
    return replica.truncated


def test_a_follower_downloads_before_it_truncates(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not truncates_before_the_download()
    real = TierRebuild.run

    async def run(self: TierRebuild) -> None:
        self._partition.truncate_fully_and_start_at(50, 0)
        await real(self)

    monkeypatch.setattr(TierRebuild, "run", run)
    assert truncates_before_the_download()


def fate_within_a_hold() -> orphans.Fate:
    stored: Any = SimpleNamespace(
        id=segment(1, 0, 9).id, modified_ms=500, objects={"log": SimpleNamespace(modified_ms=500)}
    )
    return orphans.fate(
        stored, now_ms=10_000, grace_ms=1, holds=[Hold(0, 1000)], missing_ms=9_000, known=None
    )


def test_nothing_goes_within_a_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    assert fate_within_a_hold() is orphans.Fate.HELD
    monkeypatch.setattr(Hold, "covers", lambda self, modified_ms: False)
    assert fate_within_a_hold() is orphans.Fate.ORPHAN
