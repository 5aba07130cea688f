"""A log in memory that knows which records are synced."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from skylog.kernel.rng import Random
from skylog.quorum.control import QuorumRecords
from skylog.quorum.messages import EpochEnd
from skylog.quorum.snapshots import SnapshotId
from skylog.quorum.voters import VoterSet

# A snapshot travels in this many pieces.
SNAPSHOT_PIECES = 3


@dataclass(frozen=True, slots=True)
class Entry:
    """One record: a value, a change of voters, or (None) the beginning of an epoch."""

    epoch: int
    value: Any

    @property
    def voters(self) -> VoterSet | None:
        return self.value if isinstance(self.value, VoterSet) else None


@dataclass(frozen=True, slots=True)
class SimSnapshot:
    """The state at ``id.offset``: a digest of the records before it, and the voters."""

    id: SnapshotId
    digest: int
    quorum: QuorumRecords


def digest_of(digest: int, entry: Entry) -> int:
    voters = entry.voters
    value = entry.value or 0
    if voters is not None:
        value = tuple((key.id, key.directory_id[-1]) for key in voters.keys)
    # A hash of numbers, which is the same in every process.
    return hash((digest, entry.epoch, value))


class SimLog:
    """Stands in for ``MetadataLog`` and its disk."""

    def __init__(self, quorum: QuorumRecords) -> None:
        self.start_offset = 0
        self.entries: list[Entry] = []
        self.snapshots: list[SimSnapshot] = []
        self._durable: list[Entry] = []
        self._initial = quorum
        self._quorums: list[tuple[int, QuorumRecords]] = [(-1, quorum)]
        self._epochs: list[tuple[int, int]] = []

    # -- for the machine -----------------------------------------------------------------------

    @property
    def end_offset(self) -> int:
        return self.start_offset + len(self.entries)

    @property
    def last_epoch(self) -> int:
        if self.entries:
            return self.entries[-1].epoch
        return self.snapshots[-1].id.epoch if self.snapshots else 0

    @property
    def quorum(self) -> QuorumRecords:
        return self._quorums[-1][1]

    @property
    def voters_offset(self) -> int:
        return self._quorums[-1][0]

    @property
    def voters_before(self) -> VoterSet | None:
        return self._quorums[-2][1].voters if len(self._quorums) > 1 else None

    @property
    def earliest_snapshot(self) -> SnapshotId | None:
        return self.snapshots[0].id if self.snapshots else None

    @property
    def latest_snapshot(self) -> SnapshotId | None:
        return self.snapshots[-1].id if self.snapshots else None

    def snapshot_size(self, snapshot_id: SnapshotId) -> int | None:
        return None if self.snapshot(snapshot_id) is None else SNAPSHOT_PIECES

    def end_of_epoch(self, epoch: int) -> EpochEnd:
        index = bisect_right(self._epochs, (epoch, 1 << 60))
        end = self._epochs[index][1] if index < len(self._epochs) else self.end_offset
        if index:
            return EpochEnd(self._epochs[index - 1][0], end)
        if self.snapshots and self.snapshots[0].id.offset == self.start_offset:
            return EpochEnd(self.snapshots[0].id.epoch, self.start_offset)
        return EpochEnd(epoch, end)

    # -- for the node --------------------------------------------------------------------------

    def snapshot(self, snapshot_id: SnapshotId) -> SimSnapshot | None:
        return next((each for each in self.snapshots if each.id == snapshot_id), None)

    def entry(self, offset: int) -> Entry | None:
        index = offset - self.start_offset
        return self.entries[index] if 0 <= index < len(self.entries) else None

    def read(self, offset: int, count: int) -> tuple[Entry, ...]:
        index = offset - self.start_offset
        return tuple(self.entries[index : index + count])

    def append(self, entries: Sequence[Entry]) -> None:
        for entry in entries:
            assert entry.epoch >= self.last_epoch, f"epoch {entry.epoch} after {self.last_epoch}"
            self._index(self.end_offset, entry)
            self.entries.append(entry)

    def truncate(self, offset: int) -> None:
        assert offset >= self.start_offset, f"cut at {offset}, before the log"
        del self.entries[offset - self.start_offset :]
        self._reindex()

    def add_snapshot(self, snapshot: SimSnapshot, *, cut: bool) -> None:
        """Add a snapshot of this log, and perhaps drop the log before it."""
        self.snapshots.append(snapshot)
        if cut:
            kept = snapshot.id.offset - self.start_offset
            del self.entries[:kept]
            # What is dropped was synced, or is restored by the snapshot.
            self._durable = self._durable[kept:]
            self.start_offset = snapshot.id.offset
            self.snapshots = [snapshot]
            self._reindex()

    def install(self, snapshot: SimSnapshot) -> None:
        self.snapshots, self.entries, self._durable = [snapshot], [], []
        self.start_offset = snapshot.id.offset
        self._reindex()

    def quorum_at(self, end_offset: int) -> QuorumRecords:
        return next(known for offset, known in reversed(self._quorums) if offset < end_offset)

    # -- the disk ------------------------------------------------------------------------------

    def sync(self) -> None:
        self._durable = list(self.entries)

    def is_durable(self, offset: int, entry: Entry) -> bool:
        index = offset - self.start_offset
        return index < 0 or (index < len(self._durable) and self._durable[index] == entry)

    def crash(self, rng: Random) -> None:
        """Lose some or all of what was not synced, truncations included."""
        shared = 0
        for mine, synced in zip(self.entries, self._durable, strict=False):
            if mine != synced:
                break
            shared += 1
        if rng.random() < 0.5:
            self.entries = list(self._durable)
        else:
            del self.entries[shared + rng.randrange(len(self.entries) - shared + 1) :]
        # Opening a log syncs what it finds, or starts at a snapshot that is ahead of it.
        latest = self.snapshots[-1] if self.snapshots else None
        if latest is not None and latest.id.offset > self.end_offset:
            self.install(latest)
        self._reindex()
        self.sync()

    def _index(self, offset: int, entry: Entry) -> None:
        if not self._epochs or self._epochs[-1][0] < entry.epoch:
            self._epochs.append((entry.epoch, offset))
        if entry.voters is not None:
            quorum = QuorumRecords(self.quorum.kraft_version, entry.voters)
            self._quorums.append((offset, quorum))

    def _reindex(self) -> None:
        self._epochs = []
        self._quorums = [(-1, self._initial)]
        if self.snapshots and self.snapshots[0].id.offset <= self.start_offset:
            oldest = self.snapshots[0]
            self._quorums = [(oldest.id.offset - 1, oldest.quorum)]
        for index, entry in enumerate(self.entries):
            self._index(self.start_offset + index, entry)
