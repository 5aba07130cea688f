from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from skylog.diskless.files.retention import RetentionPass
from skylog.diskless.plane import RetentionResult
from skylog.kernel.errors import ErrorCode, KafkaError
from tests.unit.diskless.files.support import BATCH_BYTES, Bucket, no_rest


def retention(bucket: Bucket, limits: Sequence[Any], batches_max: int = 2) -> RetentionPass:
    return RetentionPass(
        bucket.plane, lambda: limits, bucket.clock, batches_max=batches_max, sleep=no_rest
    )


async def test_a_pass_deletes_all_that_is_too_much_in_bounded_steps() -> None:
    bucket = await Bucket().start()
    for _ in range(9):
        await bucket.write((0, 1))
    limits = [(bucket.topic_id, 0, 3 * BATCH_BYTES, -1), (bucket.topic_id, 1, -1, -1)]
    work = retention(bucket, limits)
    await work.run_once()
    logs = await bucket.plane.log_info([(bucket.topic_id, 0), (bucket.topic_id, 1)])
    assert [log.log_start_offset for log in logs] == [6, 0]
    assert (work.stats.batches_deleted, work.stats.bytes_deleted) == (6, 6 * BATCH_BYTES)


async def test_time_is_a_limit_too() -> None:
    bucket = await Bucket().start()
    await bucket.write()
    bucket.clock.advance(10_000)
    await bucket.write()
    await retention(bucket, [(bucket.topic_id, 0, -1, 5_000)]).run_once()
    assert (await bucket.plane.log_info([(bucket.topic_id, 0)]))[0].log_start_offset == 1


async def test_partitions_without_limits_are_not_asked_for() -> None:
    bucket = await Bucket().start()

    async def enforce(*_: Any) -> list[RetentionResult]:
        raise AssertionError("nothing to enforce")

    bucket.plane.enforce_retention = enforce  # type: ignore[method-assign]
    await retention(bucket, [(bucket.topic_id, 0, -1, -1)]).run_once()


async def test_one_failing_step_does_not_cost_the_others_their_turn() -> None:
    bucket = await Bucket().start()
    asked: list[int] = []

    async def enforce(step: Sequence[Any], _max: int) -> list[RetentionResult]:
        asked.extend(partition for _, partition, _, _ in step)
        if 0 in asked[-len(step) :]:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        return [RetentionResult(ErrorCode.NOT_COORDINATOR)] * len(step)

    bucket.plane.enforce_retention = enforce  # type: ignore[method-assign]
    work = retention(bucket, [(bucket.topic_id, p, -1, 1) for p in range(250)])
    with pytest.raises(KafkaError):
        await work.run_once()
    assert asked == list(range(250))
    assert work.stats.partition_errors == 150


async def test_a_topic_that_goes_away_is_no_error() -> None:
    bucket = await Bucket().start()
    work = retention(bucket, [(bucket.topic_id, 99, -1, 1)])
    await work.run_once()
    assert work.stats.partition_errors == 0
