"""Real segments for tests: batches of records, with the indexes that belong to them."""

from __future__ import annotations

from pathlib import Path

from skylog.kernel.ids import Uuid
from skylog.tiered.assembly import SegmentAssembler, snapshots
from skylog.tiered.ports import SegmentFiles
from skylog.tiered.segments import RemoteSegment
from skylog.wire.records import encode_batch
from tests.unit.tiered.remote_segments import remote_segment


def batch(offset: int, count: int = 10, epoch: int = 0) -> bytes:
    records = [(None, b"record %05d " % (offset + n) + b"x" * 200) for n in range(count)]
    return bytes(
        encode_batch(records, timestamp=1_000 + offset, base_offset=offset, leader_epoch=epoch)
    )


def real_segment(
    folder: Path, number: int, start: int, batches: int = 20, **changes: object
) -> tuple[RemoteSegment, SegmentFiles, bytes]:
    """A segment of ``batches`` batches of ten records, its files, and the bytes of its log."""
    assembler = SegmentAssembler(start, interval_bytes=100)
    made_batches = [batch(start + 10 * n) for n in range(batches)]
    log = b"".join(made_batches)
    for one in made_batches:
        assembler.add(one)
    made = assembler.finish()
    folder = folder / str(number)
    folder.mkdir(parents=True, exist_ok=True)
    contents = {
        "log": log,
        "index": made.offset_index,
        "timeindex": made.time_index,
        "snapshot": snapshots([made])[0],
    }
    for name, data in contents.items():
        (folder / name).write_bytes(data)
    given = {
        "id": Uuid(bytes([number]) * 16),
        "start_offset": start,
        "end_offset": made.last_offset,
        "max_timestamp_ms": made.max_timestamp,
        "epochs": ((0, start),),
        "size": len(log),
        "txn_index_empty": True,
    }
    files = SegmentFiles(
        *(str(folder / name) for name in ("log", "index", "timeindex")),
        transaction_index=None,
        producer_snapshot=str(folder / "snapshot"),
        leader_epochs=b"0\n1\n0 0\n",
    )
    return remote_segment(**given | changes), files, log
