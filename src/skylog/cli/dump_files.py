"""The files of a log directory as rows, read in pieces; no broker is needed.

A row with ``fault`` describes an error at that position. Files are never changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from struct import Struct
from typing import Any, BinaryIO, Final

from skylog.cli.dump_records import TOPICS, Decoder, plain, record_row
from skylog.kernel.errors import KafkaError, ProtocolError
from skylog.kernel.limits import LOG_CHECKPOINT_BYTES_MAX
from skylog.log.checkpoints import (
    HIGH_WATERMARK_CHECKPOINT,
    LEADER_EPOCH_CHECKPOINT,
    LOG_START_CHECKPOINT,
    PARTITION_METADATA,
    RECOVERY_POINT_CHECKPOINT,
    Malformed,
    decode_epochs,
    decode_offsets,
    decode_snapshot,
)
from skylog.log.index import OffsetIndex, TimeIndex
from skylog.log.names import (
    INDEX_SUFFIX,
    LOG_SUFFIX,
    SNAPSHOT_SUFFIX,
    TIME_INDEX_SUFFIX,
    TXN_INDEX_SUFFIX,
    parse_directory_name,
)
from skylog.wire.batch import HEADER_BYTES, MAGIC, Batch, Compression, batch_size
from skylog.wire.control_records import ControlType
from skylog.wire.metadata_records import decode_remote_log
from skylog.wire.records import decode_records

Row = dict[str, Any]
CHECKPOINT_SUFFIX: Final = ".checkpoint"
REMOTE_LOGS: Final = "remote-log-metadata-"
_ABORTED: Final = Struct(">hqqqq")


@dataclass(frozen=True, slots=True)
class DumpSettings:
    """What to show."""

    decoder: Decoder = Decoder.AUTO
    batches_only: bool = False
    from_offset: int = 0


def decoder_for(path: Path, wanted: Decoder) -> Decoder:
    """The requested decoder, or the one for the topic of the directory."""
    if wanted is not Decoder.AUTO:
        return wanted
    if CHECKPOINT_SUFFIX in path.name:
        from skylog.broker.assembly.diskless_planes import COORDINATORS_DIRECTORY  # noqa: PLC0415 - rarely needed

        of_coordinator = COORDINATORS_DIRECTORY in path.absolute().parts
        return Decoder.DISKLESS if of_coordinator else Decoder.METADATA
    partition = parse_directory_name(path.absolute().parent.name)
    return TOPICS.get(partition[0], Decoder.RAW) if partition else Decoder.RAW


def is_known(path: Path) -> bool:
    """Whether this kind of file can be shown."""
    return path.suffix in _BY_SUFFIX or path.name in _BY_NAME


def dump_file(path: Path, settings: DumpSettings) -> Iterator[Row]:
    """The rows of a file; OSError if it cannot be read."""
    reader = _BY_NAME.get(path.name) or _BY_SUFFIX.get(path.suffix)
    if path.name.startswith(REMOTE_LOGS):
        reader = _remote_logs
    if reader is None:
        yield {"kind": "fault", "fault": "not a known kind of file; see --help"}
        return
    yield from reader(path, settings)


# Logs ---------------------------------------------------------------------------------------


def _log(path: Path, settings: DumpSettings) -> Iterator[Row]:
    decoder = decoder_for(path, settings.decoder)
    for position, batch in _batches(path):
        if isinstance(batch, str):
            yield {"kind": "fault", "position": position, "fault": batch}
        elif batch.last_offset >= settings.from_offset:
            yield _batch_row(position, batch)
            if not settings.batches_only:
                yield from _record_rows(batch, decoder, settings.from_offset)


def _batches(path: Path) -> Iterator[tuple[int, Batch | str]]:
    """Batches with their positions; a string says why the rest of the file cannot be read."""
    next_offset = 0
    with path.open("rb") as file:
        position, end = 0, path.stat().st_size
        while position < end:
            head = file.read(HEADER_BYTES)
            if not any(head):
                return  # preallocated space
            fault = _head_fault(head, end - position)
            if fault is not None:
                yield position, fault
                return
            batch = Batch(head + file.read(batch_size(head, 0) - HEADER_BYTES))
            if not batch.crc_ok():
                yield position, f"the checksum of the batch at offset {batch.base_offset} is wrong"
            if batch.base_offset < next_offset:
                yield position, f"offset {batch.base_offset} after {next_offset - 1}"
            yield position, batch
            next_offset = batch.next_offset
            position += batch.size


def _head_fault(head: bytes, left: int) -> str | None:
    if len(head) < HEADER_BYTES:
        return f"{left} bytes at the end are not a batch"
    size = batch_size(head, 0)
    if size < HEADER_BYTES or size > left:
        return f"a batch claims {size} bytes, {left} are left in the file"
    if head[16] != MAGIC:
        return f"message format {head[16]}; only {MAGIC} is supported"
    return None


def _batch_row(position: int, batch: Batch) -> Row:
    known = batch.codec in Compression._value2member_map_
    return {
        "kind": "batch",
        "base_offset": batch.base_offset,
        "last_offset": batch.last_offset,
        "records": batch.record_count,
        "position": position,
        "size": batch.size,
        "leader_epoch": batch.leader_epoch,
        "compression": Compression(batch.codec).name.lower() if known else batch.codec,
        "max_timestamp": batch.max_timestamp,
        "timestamp_type": "LogAppendTime" if batch.is_log_append_time else "CreateTime",
        "producer_id": batch.producer_id,
        "producer_epoch": batch.producer_epoch,
        "base_sequence": batch.base_sequence,
        "last_sequence": batch.last_sequence,
        "transactional": batch.is_transactional,
        "control": batch.is_control,
        "crc": batch.crc,
    }


def _record_rows(batch: Batch, decoder: Decoder, from_offset: int) -> Iterator[Row]:
    try:
        records = decode_records(batch)
    except KafkaError as error:
        yield {"kind": "fault", "fault": f"records at offset {batch.base_offset}: {error}"}
        return
    for record in records:
        if record.offset >= from_offset:
            yield record_row(record, decoder, control=batch.is_control)


def _checkpoint(path: Path, settings: DumpSettings) -> Iterator[Row]:
    """A snapshot of the metadata: a log that ends with a footer."""
    last: Row = {}
    for row in _log(path, settings):
        last = row
        yield row
    if not settings.batches_only and last.get("type") != ControlType.SNAPSHOT_FOOTER.name:
        yield {"kind": "fault", "fault": "the snapshot has no footer: it is incomplete"}


# Indexes ------------------------------------------------------------------------------------


def _entries(path: Path, form: Struct) -> Iterator[tuple[int, ...]]:
    """Entries up to the zero padding at the end of an index."""
    data = path.read_bytes()
    used = len(data.rstrip(b"\0"))
    used += -used % form.size
    for at in range(0, min(used, len(data) - form.size + 1), form.size):
        yield form.unpack_from(data, at)


def _base_offset(path: Path) -> int:
    return int(path.stem) if path.stem.isdigit() else 0


def _offset_index(path: Path, settings: DumpSettings) -> Iterator[Row]:
    """Entries; if the segment exists, each is checked against the batch it points to."""
    base = _base_offset(path)
    segment = path.with_suffix(LOG_SUFFIX)
    before = (-1, -1)
    with segment.open("rb") if segment.exists() else _Nothing() as log:
        for relative, position in _entries(path, OffsetIndex.entry):
            row: Row = {"kind": "index", "offset": base + relative, "position": position}
            if relative <= before[0] or position < before[1]:
                row["fault"] = "is not after the entry before it"
            elif not isinstance(log, _Nothing):
                fault = _index_fault(log, base + relative, position)
                row |= {"fault": fault} if fault else {}
            before = (relative, position)
            yield row


def _index_fault(log: BinaryIO, offset: int, position: int) -> str | None:
    log.seek(position)
    head = log.read(HEADER_BYTES)
    if len(head) < HEADER_BYTES:
        return "points beyond the end of the segment"
    batch = Batch(head)
    if not batch.base_offset <= offset <= batch.last_offset:
        return f"points to a batch of offsets {batch.base_offset} to {batch.last_offset}"
    return None


class _Nothing:
    """Used if the segment does not exist."""

    def __enter__(self) -> _Nothing:
        return self

    def __exit__(self, *_: object) -> None: ...


def _time_index(path: Path, settings: DumpSettings) -> Iterator[Row]:
    base = _base_offset(path)
    before = (-1, -1)
    for timestamp, relative in _entries(path, TimeIndex.entry):
        row: Row = {"kind": "time_index", "timestamp": timestamp, "offset": base + relative}
        if timestamp <= before[0] or relative < before[1]:
            row["fault"] = "is not after the entry before it"
        before = (timestamp, relative)
        yield row


def _transaction_index(path: Path, settings: DumpSettings) -> Iterator[Row]:
    for _, producer_id, first, last, stable in _ABORTED.iter_unpack(_whole(path, _ABORTED.size)):
        yield {
            "kind": "aborted_transaction",
            "producer_id": producer_id,
            "first_offset": first,
            "last_offset": last,
            "last_stable_offset": stable,
        }


def _whole(path: Path, size: int) -> bytes:
    data = path.read_bytes()
    return data[: len(data) - len(data) % size]


# Small files --------------------------------------------------------------------------------


def _producers(path: Path, settings: DumpSettings) -> Iterator[Row]:
    try:
        producers = decode_snapshot(path.read_bytes())
    except Malformed as error:
        yield {"kind": "fault", "fault": str(error)}
        return
    for entry in producers:
        yield {
            "kind": "producer",
            "producer_id": entry.producer_id,
            "epoch": entry.epoch,
            "coordinator_epoch": entry.coordinator_epoch,
            "last_timestamp": entry.last_timestamp,
            "last_sequence": entry.last_sequence,
            "last_offset": entry.last_offset,
            "transaction_first_offset": entry.txn_first_offset,
        }


def _text(path: Path) -> str:
    with path.open("rb") as file:
        return file.read(LOG_CHECKPOINT_BYTES_MAX).decode(errors="replace")


def _lines(path: Path, settings: DumpSettings) -> Iterator[Row]:
    for line in _text(path).splitlines():
        yield {"kind": "line", "text": line}


def _epochs(path: Path, settings: DumpSettings) -> Iterator[Row]:
    try:
        for epoch, start in decode_epochs(_text(path)):
            yield {"kind": "leader_epoch", "epoch": epoch, "start_offset": start}
    except Malformed as error:
        yield {"kind": "fault", "fault": str(error)}


def _remote_logs(path: Path, settings: DumpSettings) -> Iterator[Row]:
    """A snapshot of what is remote, as tiered storage keeps it for its next start."""
    from skylog.tiered.metadata.snapshots import open_snapshot  # noqa: PLC0415 - rarely needed

    try:
        topic_id, partition, offset, values = open_snapshot(path.read_bytes())
        yield {
            "kind": "snapshot",
            "topic_id": str(topic_id),
            "partition": partition,
            "offset": offset,
        }
        for value in values:
            message = decode_remote_log(value)
            yield {"kind": "record", "type": type(message).__name__, "data": plain(message)}
    except (ValueError, ProtocolError) as error:
        yield {"kind": "fault", "fault": str(error)}


def _offsets(path: Path, settings: DumpSettings) -> Iterator[Row]:
    try:
        for (topic, partition), offset in decode_offsets(_text(path)).items():
            yield {"kind": "offset", "topic": topic, "partition": partition, "offset": offset}
    except Malformed as error:
        yield {"kind": "fault", "fault": str(error)}


_Reader = Callable[[Path, DumpSettings], Iterator[Row]]
_BY_SUFFIX: Final[Mapping[str, _Reader]] = {
    LOG_SUFFIX: _log,
    INDEX_SUFFIX: _offset_index,
    TIME_INDEX_SUFFIX: _time_index,
    TXN_INDEX_SUFFIX: _transaction_index,
    SNAPSHOT_SUFFIX: _producers,
    CHECKPOINT_SUFFIX: _checkpoint,
}
_BY_NAME: Final[Mapping[str, _Reader]] = {
    LEADER_EPOCH_CHECKPOINT: _epochs,
    RECOVERY_POINT_CHECKPOINT: _offsets,
    HIGH_WATERMARK_CHECKPOINT: _offsets,
    LOG_START_CHECKPOINT: _offsets,
    PARTITION_METADATA: _lines,
    "meta.properties": _lines,
    "quorum-state": _lines,
}
