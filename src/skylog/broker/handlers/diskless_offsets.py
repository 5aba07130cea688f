"""ListOffsets, OffsetForLeaderEpoch and DeleteRecords of diskless partitions.

The handlers of these APIs leave such partitions to here: their answers come from the control plane,
all of a request with one question.
"""

from __future__ import annotations

from typing import Final

from skylog.broker.assembly.diskless_engine import DisklessEngine
from skylog.broker.handlers.diskless_errors import change_error, read_error
from skylog.broker.net.context import RequestContext
from skylog.diskless.plane import EARLIEST, MAX_TIMESTAMP, ListOffsetsResult
from skylog.diskless.reader.patch import SERVED_EPOCH
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.ids import Uuid
from skylog.wire.batch import split_batches
from skylog.wire.messages.delete_records_response import DeleteRecordsPartitionResult
from skylog.wire.messages.list_offsets_response import ListOffsetsPartitionResponse
from skylog.wire.messages.offset_for_leader_epoch_response import EpochEndOffset
from skylog.wire.records import find_record

# Batches that a search by time looks into before it takes the last one's word for it.
SEARCHED_BATCHES_MAX: Final = 8
# Older answers of ListOffsets have no place for the epoch.
LEADER_EPOCH_FROM: Final = 4


def diskless_partition(context: RequestContext, topic: str, index: int) -> tuple[Uuid, int] | None:
    """The partition's place in the control plane; None for a classic one, or none at all."""
    image = context.services.image
    state = image.partition(topic, index)
    if state is None or not state.writes_diskless:
        return None
    known = image.topic(topic)
    return (known.topic_id, index) if known is not None else None


async def list_diskless_offsets(
    context: RequestContext,
    wanted: list[tuple[ListOffsetsPartitionResponse, tuple[Uuid, int], int]],
) -> None:
    """Fill the answers; timestamps are answered to the record, as Kafka does."""
    engine = context.services.diskless
    asked = [(*place, timestamp) for _, place, timestamp in wanted]
    try:
        results = await engine.plane.list_offsets(asked)
    except KafkaError as error:
        results = [ListOffsetsResult(error.code)] * len(wanted)
    for (answer, place, timestamp), result in zip(wanted, results, strict=True):
        try:
            found = await _to_the_record(engine, place, timestamp, result)
        except KafkaError as error:
            answer.error_code = read_error(error.code)
            continue
        answer.error_code = read_error(result.error)
        answer.timestamp, answer.offset = found
        if answer.offset >= 0 and context.version >= LEADER_EPOCH_FROM:
            answer.leader_epoch = SERVED_EPOCH


async def _to_the_record(
    engine: DisklessEngine, place: tuple[Uuid, int], timestamp: int, result: ListOffsetsResult
) -> tuple[int, int]:
    if result.coordinate is None:
        return result.timestamp, result.offset
    target = result.timestamp if timestamp == MAX_TIMESTAMP else timestamp
    start = (await engine.plane.list_offsets([(*place, EARLIEST)]))[0].offset
    for _ in range(SEARCHED_BATCHES_MAX):
        coordinate = result.coordinate
        if coordinate is None:
            return -1, -1
        for batch in split_batches(await engine.reader.read_batch(coordinate)):
            found = find_record(batch, target, max(start, 0))
            if found is not None:
                offset, at = found
                return at, offset
        # All that qualified in this batch was deleted: the next one may have it.
        after = coordinate.last_offset + 1
        again = await engine.plane.list_offsets([(*place, timestamp)], from_offset=after)
        result = again[0]
    return result.timestamp, result.offset


async def end_of_epochs(
    engine: DisklessEngine, wanted: list[tuple[EpochEndOffset, tuple[Uuid, int], int]]
) -> None:
    """No epoch ever ends on a diskless partition: nobody sees a truncation."""
    infos = await engine.plane.log_info([place for _, place, _ in wanted])
    for (answer, _, epoch), info in zip(wanted, infos, strict=True):
        answer.error_code = read_error(info.error)
        if info.error is ErrorCode.NONE:
            answer.leader_epoch, answer.end_offset = epoch, info.high_watermark


async def delete_diskless_records(
    engine: DisklessEngine, wanted: list[tuple[DeleteRecordsPartitionResult, tuple[Uuid, int], int]]
) -> None:
    results = await engine.plane.delete_records([(*place, offset) for _, place, offset in wanted])
    for (answer, place, _), result in zip(wanted, results, strict=True):
        answer.error_code, answer.low_watermark = change_error(result.error), result.low_watermark
        if result.error is ErrorCode.NONE:
            engine.records_deleted(*place, result.low_watermark)
