"""What the metadata of many remote segments costs: time to load, memory, one look-up.

    python -m bench.tiered_metadata [SEGMENTS]

Prints one JSON object.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import time
import tracemalloc

from skylog.kernel.ids import Uuid
from skylog.tiered.metadata.machine import RemoteLog
from skylog.tiered.metadata.records import segment_started, segment_updated
from skylog.tiered.segments import RemoteSegment, SegmentState, TopicIdPartition
from skylog.wire.metadata_records import decode_remote_log, encode_remote_log

RECORDS_OF_SEGMENT = 1000
LOOK_UPS = 100_000
PARTITION = TopicIdPartition(Uuid(b"0123456789abcdef"), 0)


def values(count: int) -> list[bytes]:
    """The records of finished segments, as they stand in the metadata topic."""
    made = []
    for number in range(count):
        start = number * RECORDS_OF_SEGMENT
        segment = RemoteSegment(
            topic="orders",
            partition=PARTITION,
            id=Uuid(os.urandom(16)),
            start_offset=start,
            end_offset=start + RECORDS_OF_SEGMENT - 1,
            broker_id=1,
            max_timestamp_ms=start,
            event_timestamp_ms=start,
            epochs=((0, start),),
            size=1 << 30,
            copier_epoch=0,
        )
        finished = segment_updated(
            segment, SegmentState.COPY_FINISHED, broker_id=1, now_ms=start, copier_epoch=0
        )
        made += [encode_remote_log(segment_started(segment, 0)), encode_remote_log(finished)]
    return made


def load(records: list[bytes]) -> RemoteLog:
    log = RemoteLog(PARTITION, "orders")
    for offset, value in enumerate(records):
        record = decode_remote_log(value)
        assert record is not None
        log.apply(record, offset)
    return log


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    records = values(count)
    began = time.perf_counter()
    log = load(records)
    load_s = time.perf_counter() - began
    head, kept = log.snapshot()
    began = time.perf_counter()
    RemoteLog.restored(head, kept)
    restore_s = time.perf_counter() - began
    del kept, log
    gc.collect()
    tracemalloc.start()
    log = load(records)
    gc.collect()
    memory = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    step = max(1, count * RECORDS_OF_SEGMENT // LOOK_UPS)
    began = time.perf_counter()
    for number in range(LOOK_UPS):
        log.segment_for(0, number * step)
    look_up_us = (time.perf_counter() - began) / LOOK_UPS * 1e6
    figures = {
        "segments": count,
        "load_s": round(load_s, 2),
        "restore_s": round(restore_s, 2),
        "bytes_per_segment": round(memory / count),
        "segment_for_us": round(look_up_us, 2),
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
