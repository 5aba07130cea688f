"""Opens a partition's directory and builds segments, epochs and producers.

After a clean shutdown the files are trusted and only the tail is checked. Otherwise every segment
from the recovery point on is read with its checksums: the log ends before the first incomplete
batch, everything after it is dropped, and indexes, epochs and producers are rebuilt.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from skylog.kernel.errors import KafkaError
from skylog.kernel.ids import Uuid
from skylog.kernel.limits import LOG_CHECKPOINT_BYTES_MAX
from skylog.kernel.logging import get_logger
from skylog.log.checkpoints import (
    LEADER_EPOCH_CHECKPOINT,
    PARTITION_METADATA,
    Malformed,
    decode_epochs,
    decode_partition_metadata,
    encode_snapshot,
)
from skylog.log.config import LogConfig
from skylog.log.epochs import LeaderEpochs
from skylog.log.files import Files
from skylog.log.names import (
    INDEX_SUFFIX,
    LOG_SUFFIX,
    SNAPSHOT_SUFFIX,
    TIME_INDEX_SUFFIX,
    TXN_INDEX_SUFFIX,
    file_name,
    parse_file_name,
)
from skylog.log.producers import Producers
from skylog.log.rebuilding import rebuild
from skylog.log.recalling import recall_batches
from skylog.log.replaying import producers_at, read_snapshot, replay
from skylog.log.segment import Segment
from skylog.log.swap import settle_swaps
from skylog.wire.batch import HEADER_BYTES

_logger = get_logger("log.recovery")


@dataclass(frozen=True, slots=True)
class Checkpointed:
    """What the checkpoints of a log directory say of a partition."""

    clean: bool = False
    recovery_point: int = 0
    log_start_offset: int = 0
    # It was written down, and is believed though it may lie below the first segment: the rest is
    # in the object store. Without an entry the log begins with its first segment.
    has_start: bool = False
    # Markers below it can no longer be lost.
    high_watermark: int = 0


NOTHING_KNOWN: Final = Checkpointed()


@dataclass(slots=True)
class Loaded:
    """A partition as found on disk."""

    segments: list[Segment]
    log_start_offset: int
    # Of what is on this disk.
    local_log_start_offset: int
    end_offset: int
    recovery_point: int
    epochs: LeaderEpochs = field(default_factory=LeaderEpochs)
    producers: Producers = field(default_factory=Producers)
    snapshot_offset: int = 0
    topic_id: Uuid | None = None
    truncated_bytes: int = 0
    epochs_changed: bool = False


def load(
    files: Files, directory: str, config: LogConfig, now_ms: int, known: Checkpointed
) -> Loaded:
    """Read a partition's directory. Raises OSError or StorageError if that is impossible."""
    return _Loader(files, directory, config, now_ms, known).load()


class _Loader:
    def __init__(
        self, files: Files, directory: str, config: LogConfig, now_ms: int, known: Checkpointed
    ) -> None:
        self.files = files
        self.directory = directory
        self.config = config
        self.now_ms = now_ms
        self.known = known
        self.epochs = LeaderEpochs()
        self.segments: list[Segment] = []
        self.snapshots: list[int] = []
        self.unindexed: set[int] = set()
        self.truncated_bytes = 0
        # The producers at the end of the segment that was rebuilt last.
        self._followed = (0, Producers())

    def load(self) -> Loaded:
        self._list()
        self.epochs = self._load_epochs()
        written = list(self.epochs)
        if not self.known.clean:
            self._drop_deleted()
            self._recover()
        end = self._end_offset()
        log_start = self.known.log_start_offset
        if self.segments and end < log_start:
            _logger.warning(
                "all segments end before the log start",
                directory=self.directory,
                end=end,
                log_start=log_start,
            )
            self._drop_segments(0)
        if not self.segments:
            # Nothing is known of what was written: epochs would claim that it ended here.
            self.epochs.clear()
            end = log_start
            self.segments = [
                Segment.create(self.files, self.directory, end, self.config, self.now_ms)
            ]
        self.segments[-1].aborted.load(block=True)
        local_start = max(log_start, self.segments[0].base_offset)
        start = log_start if self.known.has_start else local_start
        self.epochs.truncate_end(end)
        self.epochs.truncate_start(start)
        producers, snapshot_offset = self._load_producers(start, local_start, end)
        recovery_point = end if self.known.clean else min(self.known.recovery_point, end)
        return Loaded(
            self.segments,
            start,
            local_start,
            end,
            recovery_point,
            self.epochs,
            producers,
            snapshot_offset,
            self._load_topic_id(),
            self.truncated_bytes,
            written != list(self.epochs),
        )

    # -- files ---------------------------------------------------------------------------------

    def _list(self) -> None:
        settle_swaps(self.files, self.directory, self.config)
        found: dict[str, list[int]] = {}
        for path in Path(self.directory).iterdir():
            parsed = parse_file_name(path.name)
            if parsed is None:
                continue
            offset, suffix, _ = parsed
            found.setdefault(suffix, []).append(offset)
        bases = sorted(found.get(LOG_SUFFIX, ()))
        self.snapshots = sorted(found.get(SNAPSHOT_SUFFIX, ()))
        for suffix in (INDEX_SUFFIX, TIME_INDEX_SUFFIX, TXN_INDEX_SUFFIX):
            for orphan in set(found.get(suffix, ())) - set(bases):
                self.files.remove(f"{self.directory}/{file_name(orphan, suffix)}")
        for base in bases:
            self.segments.append(
                Segment.open(self.files, self.directory, base, self.config, self.now_ms)
            )
        filled = {segment.base_offset for segment in self.segments if segment.size}
        for suffix in (INDEX_SUFFIX, TIME_INDEX_SUFFIX):
            self.unindexed |= filled - set(found.get(suffix, ()))
        listed = set(found.get(TXN_INDEX_SUFFIX, ()))
        for segment in self.segments:
            if segment.base_offset in listed and not self._knows_aborted(segment):
                self.unindexed.add(segment.base_offset)

    @staticmethod
    def _knows_aborted(segment: Segment) -> bool:
        """Whether the index of aborted transactions is valid: its contents are stored nowhere
        else."""
        try:
            segment.aborted.load(block=True)
        except KafkaError as fault:
            _logger.warning("rebuilding index", path=segment.log_path, fault=str(fault))
            return False
        segment.aborted.drop()
        return True

    def _drop_deleted(self) -> None:
        """Segments below the log start were perhaps never synced: damage in them says nothing of
        those behind."""
        log_start = self.known.log_start_offset
        while len(self.segments) > 1 and self.segments[1].base_offset <= log_start:
            for path in self.segments.pop(0).rename_deleted():
                self.files.remove(path)

    def _drop_segments(self, first: int) -> None:
        """Remove the segments from ``first`` on; nothing has been read from them yet."""
        for segment in self.segments[first:]:
            for path in segment.rename_deleted():
                self.files.remove(path)
        del self.segments[first:]

    # -- segments ------------------------------------------------------------------------------

    def _recover(self) -> None:
        """Check and rebuild every segment that may not be complete on disk."""
        point = self.known.recovery_point
        for number, segment in enumerate(self.segments):
            following = self.segments[number + 1 : number + 2]
            if following and following[0].base_offset <= point:
                if segment.base_offset in self.unindexed:
                    self._rebuild(segment)
                continue
            cut_before = self.truncated_bytes
            end = self._rebuild(segment)
            is_cut = self.truncated_bytes > cut_before
            if following and (is_cut or self._has_hole(end, following[0].base_offset)):
                self._drop_segments(number + 1)
                break

    def _has_hole(self, end: int, following: int) -> bool:
        """Whether batches are missing before the next segment: the end of this one was lost."""
        # Kafka's compaction leaves holes, ours does not.
        return end > following or (end < following and not self.config.compacts)

    def _rebuild(self, segment: Segment) -> int:
        """Returns the offset after the segment's last good batch."""
        followed, producers = self._followed
        if followed != segment.base_offset:
            producers = producers_at(
                segment.base_offset, self.segments, self._read_snapshot, self.snapshots
            )
        cut, end = rebuild(segment, self.files, self.epochs, producers)
        self._followed = end, producers
        self.unindexed.discard(segment.base_offset)
        if cut:
            self.truncated_bytes += cut
            _logger.warning(
                "segment truncated at its first bad batch",
                path=segment.log_path,
                at=segment.size,
                bytes=cut,
            )
        return end

    def _end_offset(self) -> int:
        """The end of the log, by the last segment that has a batch."""
        for segment in self.segments:
            if segment.base_offset in self.unindexed:
                self._rebuild(segment)
        while self.segments:
            segment = self.segments[-1]
            if segment.size:
                return self._tail(segment)
            if len(self.segments) == 1:
                break
            before = self.segments[-2]
            end = self._tail(before) if before.size else before.base_offset
            if end <= segment.base_offset:
                break
            # A roll that failed half-way left an empty segment that overlaps the previous one.
            self._drop_segments(len(self.segments) - 1)
        return self.segments[-1].base_offset if self.segments else 0

    def _tail(self, segment: Segment) -> int:
        """The offset after the segment's last batch."""
        try:
            return _next_offset(segment)
        except KafkaError as fault:
            _logger.warning("segment's tail is damaged", path=segment.log_path, fault=str(fault))
            return self._rebuild(segment)

    # -- companions ----------------------------------------------------------------------------

    def _load_epochs(self) -> LeaderEpochs:
        content = self.files.read_small(
            f"{self.directory}/{LEADER_EPOCH_CHECKPOINT}", LOG_CHECKPOINT_BYTES_MAX
        )
        try:
            if not content and any(segment.size for segment in self.segments):
                raise Malformed("the epochs were lost")
            return LeaderEpochs(decode_epochs((content or b"").decode()))
        except (Malformed, UnicodeDecodeError) as fault:
            _logger.warning("rebuilding leader epochs", directory=self.directory, fault=str(fault))
            self.known = replace(self.known, clean=False, recovery_point=0)
            return LeaderEpochs()

    def _load_topic_id(self) -> Uuid | None:
        content = self.files.read_small(f"{self.directory}/{PARTITION_METADATA}", 4096)
        if content is None:
            return None
        try:
            return decode_partition_metadata(content.decode())
        except (Malformed, UnicodeDecodeError) as fault:
            _logger.warning("topic id is unreadable", directory=self.directory, fault=str(fault))
            return None

    def _load_producers(self, log_start: int, start: int, end: int) -> tuple[Producers, int]:
        """The latest valid snapshot, and everything written after it.

        The snapshot at the start of the first segment has transactions that were opened before it:
        whatever the log start is, the rest of them must not be taken for decided. An empty log has
        none, unless what came before is in the object store.
        """
        bases = {segment.base_offset for segment in self.segments}
        is_empty = not self.segments[0].size
        is_new = is_empty and log_start == start
        first = start + 1 if is_new else self.segments[0].base_offset
        found: Producers | None = None
        snapshot = start
        for offset in reversed(self.snapshots):
            usable = first <= offset <= end
            if usable and found is None:
                found = self._read_snapshot(offset)
                if found is not None:
                    snapshot = offset
                    recall_batches(found, self.segments, offset)
                    continue
                usable = False
            if not usable or offset not in bases:
                self.files.remove(f"{self.directory}/{file_name(offset, SNAPSHOT_SUFFIX)}")
        producers = found
        if producers is None:
            producers = Producers(decided_below=self.known.high_watermark)
        if snapshot < end or (found is None and not is_empty):
            begin = first if found is None else snapshot
            replay(producers, begin, self.segments, self._write_snapshot)
            producers.expire(self.now_ms, self.config.producer_id_expiration_ms)
            snapshot = self._write_snapshot(producers, end)
        return producers, snapshot

    def _read_snapshot(self, offset: int) -> Producers | None:
        path = f"{self.directory}/{file_name(offset, SNAPSHOT_SUFFIX)}"
        entries = read_snapshot(self.files, path)
        if entries is None:
            return None
        expiration_ms = self.config.producer_id_expiration_ms
        return Producers(
            (entry for entry in entries if not entry.is_expired(self.now_ms, expiration_ms)),
            decided_below=self.known.high_watermark,
        )

    def _write_snapshot(self, producers: Producers, offset: int) -> int:
        path = f"{self.directory}/{file_name(offset, SNAPSHOT_SUFFIX)}"
        # Once the segments before a roll are deleted, only the snapshot has their transactions.
        is_roll = any(segment.base_offset == offset for segment in self.segments)
        durable = is_roll and producers.first_open_offset is not None
        self.files.replace(path, encode_snapshot(producers), sync=durable)
        return offset


def _next_offset(segment: Segment) -> int:
    """Walk the headers after the last index entry; KafkaError if they are not batches."""
    index = segment.offset_index(block=True)
    position = index.at(len(index) - 1)[1] if len(index) else 0
    end = segment.base_offset
    after = 0
    if position >= segment.size:
        position = 0
    for header, at in segment.headers(position, segment.size):
        if at == 0:
            segment.first_timestamp = header.max_timestamp
        end = header.next_offset
        after = at + header.size
    segment.require_batch_end(after)
    if segment.first_timestamp is None:
        first, _ = next(segment.headers(0, HEADER_BYTES))
        segment.first_timestamp = first.max_timestamp
    return end
