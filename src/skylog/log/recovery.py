"""Opening a partition's directory: what is found becomes segments, epochs and producers.

After a clean shutdown the files are believed and only the tail is looked at. Otherwise every
segment from the recovery point on is read with its checksums: the log ends before the first batch
that is not whole, whatever follows is dropped, and indexes, epochs and producers are rebuilt.
"""

from __future__ import annotations

from dataclasses import dataclass, field
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
    decode_snapshot,
    encode_snapshot,
)
from skylog.log.config import LogConfig
from skylog.log.epochs import LeaderEpochs
from skylog.log.files import Files
from skylog.log.markers import marker_of
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
from skylog.log.segment import RELATIVE_OFFSET_MAX, Segment
from skylog.log.swap import settle_swaps
from skylog.wire.batch import HEADER_BYTES, LOG_OVERHEAD, MAGIC, Batch, batch_size

_SCAN_BYTES: Final = 1 << 20
_logger = get_logger("log.recovery")


@dataclass(slots=True)
class Opening:
    """What is known of a partition before its directory is read."""

    files: Files
    directory: str
    config: LogConfig
    now_ms: int
    clean: bool = False
    recovery_point: int = 0
    log_start_offset: int = 0


@dataclass(slots=True)
class Loaded:
    """A partition as it was found."""

    segments: list[Segment]
    log_start_offset: int
    end_offset: int
    recovery_point: int
    epochs: LeaderEpochs = field(default_factory=LeaderEpochs)
    producers: Producers = field(default_factory=Producers)
    snapshot_offset: int = 0
    topic_id: Uuid | None = None
    truncated_bytes: int = 0
    epochs_changed: bool = False


def load(opening: Opening) -> Loaded:
    """Read a partition's directory. Raises OSError or StorageError when that cannot be done."""
    return _Loader(opening).load()


class _Loader:
    def __init__(self, opening: Opening) -> None:
        self.opening = opening
        self.files = opening.files
        self.directory = opening.directory
        self.epochs = LeaderEpochs()
        self.segments: list[Segment] = []
        self.snapshots: list[int] = []
        self.unindexed: set[int] = set()
        self.truncated_bytes = 0

    def load(self) -> Loaded:
        opening = self.opening
        self._list()
        self.epochs = self._load_epochs()
        written = list(self.epochs)
        if not opening.clean:
            self._recover()
        end = self._end_offset()
        if self.segments and end < opening.log_start_offset:
            _logger.warning(
                "all segments end before the log start",
                directory=self.directory,
                end=end,
                log_start=opening.log_start_offset,
            )
            self._drop_segments(0)
            self.epochs.clear()
        if not self.segments:
            end = opening.log_start_offset
            self.segments = [
                Segment.create(self.files, self.directory, end, opening.config, opening.now_ms)
            ]
        start = max(opening.log_start_offset, self.segments[0].base_offset)
        self.epochs.truncate_end(end)
        self.epochs.truncate_start(start)
        producers, snapshot_offset = self._load_producers(start, end)
        recovery_point = end if opening.clean else min(opening.recovery_point, end)
        return Loaded(
            self.segments,
            start,
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
        opening = self.opening
        settle_swaps(self.files, self.directory, opening.config)
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
                Segment.open(self.files, self.directory, base, opening.config, opening.now_ms)
            )
        filled = {segment.base_offset for segment in self.segments if segment.size}
        for suffix in (INDEX_SUFFIX, TIME_INDEX_SUFFIX):
            self.unindexed |= filled - set(found.get(suffix, ()))

    def _drop_segments(self, first: int) -> None:
        """Remove the segments from the ``first`` on; nobody has read from them yet."""
        for segment in self.segments[first:]:
            for path in segment.rename_deleted():
                self.files.remove(path)
        del self.segments[first:]

    # -- segments ------------------------------------------------------------------------------

    def _recover(self) -> None:
        """Check and rebuild every segment that may not have reached the disk whole."""
        point = self.opening.recovery_point
        for number, segment in enumerate(self.segments):
            following = self.segments[number + 1 : number + 2]
            if following and following[0].base_offset <= point:
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
        return end > following or (end < following and not self.opening.config.compacts)

    def _rebuild(self, segment: Segment) -> int:
        """Returns the offset after the segment's last good batch."""
        cut, end = rebuild(segment, self.files, self.epochs)
        self.unindexed.discard(segment.base_offset)
        if cut:
            self.truncated_bytes += cut
            _logger.warning(
                "cut a segment at its first bad batch",
                path=segment.log_path,
                at=segment.size,
                bytes=cut,
            )
        return end

    def _end_offset(self) -> int:
        """Where the log ends, by the last segment that has a batch."""
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
            # A roll that failed half-way left an empty segment inside the one before it.
            self._drop_segments(len(self.segments) - 1)
        return self.segments[-1].base_offset if self.segments else 0

    def _tail(self, segment: Segment) -> int:
        """The offset after the segment's last batch."""
        try:
            return _next_offset(segment)
        except KafkaError as fault:
            _logger.warning("a segment's tail is broken", path=segment.log_path, fault=str(fault))
            return self._rebuild(segment)

    # -- companions ----------------------------------------------------------------------------

    def _load_epochs(self) -> LeaderEpochs:
        content = self.files.read_small(
            f"{self.directory}/{LEADER_EPOCH_CHECKPOINT}", LOG_CHECKPOINT_BYTES_MAX
        )
        try:
            return LeaderEpochs(decode_epochs((content or b"").decode()))
        except (Malformed, UnicodeDecodeError) as fault:
            _logger.warning("leader epochs are rebuilt", directory=self.directory, fault=str(fault))
            self.opening.clean = False
            self.opening.recovery_point = 0
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

    def _load_producers(self, start: int, end: int) -> tuple[Producers, int]:
        """The latest good snapshot, and what was written after it."""
        bases = {segment.base_offset for segment in self.segments}
        producers, snapshot = Producers(), start
        for offset in reversed(self.snapshots):
            path = f"{self.directory}/{file_name(offset, SNAPSHOT_SUFFIX)}"
            usable = start < offset <= end
            if usable and snapshot == start:
                try:
                    content = self.files.read_small(path, LOG_CHECKPOINT_BYTES_MAX) or b""
                    expiration_ms = self.opening.config.producer_id_expiration_ms
                    producers = Producers(
                        entry
                        for entry in decode_snapshot(content)
                        if not entry.is_expired(self.opening.now_ms, expiration_ms)
                    )
                    snapshot = offset
                    continue
                except Malformed as fault:
                    _logger.warning("a producer snapshot is broken", path=path, fault=str(fault))
                    usable = False
            if not usable or offset not in bases:
                self.files.remove(path)
        if snapshot < end:
            self._replay(producers, snapshot, end)
            snapshot = self._write_snapshot(producers, end)
        return producers, snapshot

    def _replay(self, producers: Producers, start: int, end: int) -> None:
        for number, segment in enumerate(self.segments):
            following = self.segments[number + 1 : number + 2]
            if following and following[0].base_offset <= start:
                continue
            position = segment.position_of(max(start, segment.base_offset), block=True)
            if position is None:
                continue
            for header, at in segment.headers(position, segment.size):
                if header.producer_id < 0:
                    continue
                marker = None
                if header.is_control:
                    marker = marker_of(segment.batch_at(at, header.size, block=True))
                producers.apply(header, marker)
        producers.expire(self.opening.now_ms, self.opening.config.producer_id_expiration_ms)

    def _write_snapshot(self, producers: Producers, end: int) -> int:
        path = f"{self.directory}/{file_name(end, SNAPSHOT_SUFFIX)}"
        self.files.replace(path, encode_snapshot(producers), sync=False)
        return end


def _next_offset(segment: Segment) -> int:
    """Walk the headers after the last index entry; KafkaError where they are no batches."""
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


def rebuild(segment: Segment, files: Files, epochs: LeaderEpochs) -> tuple[int, int]:
    """Read a segment with its checksums, rebuild its indexes, cut it at the first bad batch.

    Returns the bytes cut and the offset after the last good batch.
    """
    segment.create_indexes()
    segment.reset_indexes()
    position, next_offset = 0, segment.base_offset
    window, window_at = memoryview(b""), 0
    while position < segment.size:
        at = position - window_at
        left = segment.size - position
        size = batch_size(window, at) if len(window) - at >= LOG_OVERHEAD else 0
        if len(window) - at < max(size, HEADER_BYTES):
            if left < HEADER_BYTES or size > left:
                break
            window = files.read(segment.log_path, position, min(left, max(size, _SCAN_BYTES)))
            window_at, at = position, 0
            if len(window) < min(left, HEADER_BYTES):
                break
            size = batch_size(window, 0)
            if len(window) < size <= left:
                continue  # a batch larger than the window: read it whole
        batch = _good_batch(window[at : at + size], size, next_offset, segment.base_offset)
        if batch is None:
            break
        segment.note(batch, position)
        if batch.leader_epoch > epochs.latest:
            epochs.assign(batch.leader_epoch, batch.base_offset)
        position += size
        next_offset = batch.next_offset
    cut = segment.size - position
    segment.size = position
    if cut:
        segment.cut_torn()
    segment.finish_indexes()
    return cut, next_offset


def _good_batch(buffer: memoryview, size: int, next_offset: int, base_offset: int) -> Batch | None:
    """The batch, when it is whole, of our format, undamaged and in its place."""
    if size < HEADER_BYTES or len(buffer) < size:
        return None
    batch = Batch(buffer)
    in_place = (
        batch.base_offset >= next_offset
        and batch.last_offset_delta >= 0
        and batch.last_offset - base_offset <= RELATIVE_OFFSET_MAX
    )
    return batch if batch.magic == MAGIC and in_place and batch.crc_ok() else None
