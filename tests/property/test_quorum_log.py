"""The metadata log under crashes, lost tails, snapshots and restarts, against a plain list."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from skylog.quorum.log import MetadataLogConfig
from skylog.quorum.retention import Retention
from skylog.replicated.log import KeyValue, LoadedBatch
from tests.unit.quorum.support import CrashFiles, Rig, started, value

CONFIG = MetadataLogConfig(segment_bytes=600, retention=Retention(900, -1))
STEP = st.one_of(
    st.tuples(st.just("append"), st.integers(1, 4)),
    st.tuples(st.just("append"), st.integers(1, 4)),
    st.tuples(st.just("sync"), st.just(0)),
    st.tuples(st.just("snapshot"), st.just(0)),
    st.tuples(st.just("restart"), st.just(0)),
    st.tuples(st.just("kill"), st.just(0)),
    st.tuples(st.just("power cut"), st.integers(0, 10)),
)


class Follower:
    """Follows the log, as a publisher does."""

    def __init__(self) -> None:
        self.records: list[KeyValue] = []

    def __call__(self, batch: LoadedBatch) -> None:
        if batch.from_snapshot:
            self.records.clear()
        self.records += batch.records


class Schedule:
    """The state is the list of all records, so a snapshot is that list."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.appended: list[KeyValue] = []
        # The log's end after each batch, and how many records there were then.
        self.ends: list[tuple[int, int]] = []
        self.committed = 0
        self.epoch = 0

    async def start(self) -> None:
        self.files = CrashFiles()
        self.rig: Rig = await started(self.directory, config=CONFIG, files=self.files)
        assert self.rig.node.epoch > self.epoch, "an epoch was used twice"
        self.epoch = self.rig.node.epoch
        found = [record for batch in await self.rig.load() for record in batch.records]
        assert found == self.appended[: len(found)], "not the appended records in order"
        assert len(found) >= self.committed, "a committed record is lost"
        assert len(found) in {0, *(count for _, count in self.ends)}, "half a batch"
        self.appended = found
        self.ends = [(end, count) for end, count in self.ends if count <= len(found)]
        self.committed = len(found)
        self.follower = Follower()
        await self.rig.node.subscribe(self.follower)
        assert self.follower.records == found
        self.rig.node.on_high_watermark(self.note)

    def note(self, high_watermark: int) -> None:
        counts = [count for end, count in self.ends if end <= high_watermark]
        assert counts[-1] >= self.committed, "the high watermark went back"
        self.committed = counts[-1]
        assert self.follower.records == self.appended[: self.committed]

    async def step(self, kind: str, argument: int) -> None:
        node = self.rig.node
        match kind:
            case "append":
                batch = [value(len(self.appended) + index) for index in range(argument)]
                end = node.append(batch)
                self.appended += batch
                self.ends.append((end, len(self.appended)))
            case "sync":
                await self.rig.settle()
                assert node.high_watermark == node.end_offset
            case "snapshot":
                await self.rig.settle()
                if self.appended:
                    await node.write_snapshot(node.end_offset, list(self.appended))
            case "restart":
                await node.close()
                await self.start()
            case "kill":
                self.rig.kill()
                await self.start()
            case "power cut":
                self.rig.kill()
                self.files.power_cut(self.rig.storage.metadata_log, argument / 10)
                await self.start()


@given(st.lists(STEP, max_size=40))
@settings(max_examples=120, deadline=None)
def test_nothing_committed_is_lost_and_nothing_is_made_up(steps: list[tuple[str, int]]) -> None:
    async def play() -> None:
        with tempfile.TemporaryDirectory() as directory:
            schedule = Schedule(Path(directory))
            await schedule.start()
            for kind, argument in steps:
                await schedule.step(kind, argument)
            await schedule.step("restart", 0)

    asyncio.run(play())
