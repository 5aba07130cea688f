"""The runtime: order of append, high watermark, apply and reply; replies after lost leadership."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from skylog.diskless.coordinator import requests as ask
from skylog.diskless.coordinator.settings import RuntimeSettings
from skylog.diskless.plane import EARLIEST, LATEST, FindRequest
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.replicated.lifecycle import State
from skylog.wire.metadata_records import decode_diskless
from skylog.wire.records import decode_records
from tests.unit.diskless.coordinator.support import T0, T1, TOPIC, Home, home

CREATE = ask.CreatePartitions([(TOPIC, "a", [0, 1])])
LATEST_OF_T0 = ask.ListOffsets([(*T0, LATEST)])


async def settle() -> None:
    """Run everything that is ready."""
    for _ in range(50):
        await asyncio.sleep(0)


async def started(opened: Home) -> Any:
    await opened.lead(0)
    runtime = opened.runtime()
    await runtime.submit(CREATE)
    return runtime


def submit(runtime: Any, request: Any) -> asyncio.Task[Any]:
    return asyncio.get_running_loop().create_task(runtime.submit(request))


async def outcome_of(task: asyncio.Task[Any]) -> tuple[ErrorCode, bool]:
    with pytest.raises(KafkaError) as raised:
        await task
    return raised.value.code, raised.value.ambiguous


def logged(opened: Home) -> list[list[str]]:
    """The names of the records in each batch of the log."""
    return [
        [type(decode_diskless(record.value)).__name__ for record in decode_records(batch)]
        for batch in opened.partitions[0].log.batches
    ]


async def test_fifty_requests_wait_for_the_high_watermark_together() -> None:
    # DC-31, DC-32, DC-35, DC-37
    async with home() as opened:
        runtime = await started(opened)
        before = await opened.digest()
        opened.partitions[0].held = True
        tasks = [submit(runtime, ask.CommitFile(opened.file((T0, 2)))) for _ in range(50)]
        await settle()
        assert len(logged(opened)) == 51  # all are appended
        assert not any(task.done() for task in tasks)
        assert await opened.digest() == before  # and none is applied
        opened.partitions[0].commit(2 + 20)
        await settle()
        assert [task.done() for task in tasks] == [True] * 20 + [False] * 30
        assert await opened.digest() != before
        assert runtime.applied_offset == 22
        opened.partitions[0].commit()
        results = [await task for task in tasks]
        assert [r[0].assigned_base_offset for r in results] == list(range(0, 100, 2))


async def test_all_records_of_a_request_are_one_batch() -> None:
    # DC-34, DC-06
    async with home() as opened:
        await opened.lead(0)
        await opened.runtime().submit(ask.CreatePartitions([(TOPIC, "a", range(2))]))
        await opened.runtime().submit(ask.CreatePartitions([(TOPIC, "a", range(5))]))
        assert logged(opened) == [["PartitionCreatedRecord"] * 2, ["PartitionCreatedRecord"] * 3]


async def test_a_strict_read_waits_for_writes_before_it_and_writes_nothing() -> None:
    # DC-16
    async with home() as opened:
        runtime = await started(opened)
        opened.partitions[0].held = True
        commit = submit(runtime, ask.CommitFile(opened.file((T0, 3))))
        read = submit(runtime, LATEST_OF_T0)
        await settle()
        assert not read.done()
        appended = len(logged(opened))
        opened.partitions[0].commit()
        await commit
        assert (await read)[0].offset == 3
        assert len(logged(opened)) == appended


async def test_a_find_waits_for_nothing() -> None:
    # DC-18
    async with home() as opened:
        runtime = await started(opened)
        opened.partitions[0].held = True
        commit = submit(runtime, ask.CommitFile(opened.file((T0, 3))))
        await settle()
        request = ask.FindBatches([FindRequest(*T0, 0, 1000)], 1000)
        (found,) = await runtime.find(request)
        assert (found.error, found.high_watermark, list(found.batches)) == (0, 0, [])
        opened.partitions[0].commit()
        await commit
        (found,) = await runtime.find(request)
        assert (found.high_watermark, len(found.batches)) == (3, 1)


async def test_an_acknowledged_commit_is_found() -> None:
    # The reply does not wait for the cache; later reads do.
    async with home() as opened:
        runtime = await started(opened)
        request = ask.FindBatches([FindRequest(*T0, 0, 1000)], 1000)
        for number in range(1, 20):
            await runtime.submit(ask.CommitFile(opened.file((T0, 1))))
            (found,) = await runtime.find(request)
            assert found.high_watermark == number
            assert await runtime.look(lambda view, _: len(view.list_files("", 100))) == number


async def test_a_log_that_need_not_be_synced_is_not() -> None:
    settings = RuntimeSettings(sync=False)
    async with home(settings=settings) as opened:
        await opened.lead(0)
        opened.partitions[0].log.sync_error = OSError("no disk")
        await opened.runtime().submit(CREATE)
        (committed,) = await opened.runtime().submit(ask.CommitFile(opened.file((T0, 3))))
        assert committed.error is ErrorCode.NONE
        assert opened.partitions[0].log.synced == 0


async def test_a_commit_is_answered_when_the_last_follower_goes_before_it_has_it() -> None:
    async with home() as opened:
        runtime = await started(opened)
        partition = opened.partitions[0]
        partition.isr, partition.held = (0, 1), True
        commit = submit(runtime, ask.CommitFile(opened.file((T0, 3))))
        await settle()
        assert not commit.done()
        partition.isr = (0,)
        partition.commit()
        assert (await commit)[0].error is ErrorCode.NONE
        assert partition.log.synced == partition.log.log_end_offset


async def test_what_followers_had_stays_committed_without_them() -> None:
    async with home() as opened:
        runtime = await started(opened)
        partition = opened.partitions[0]
        partition.isr = (0, 1)
        await runtime.submit(ask.CommitFile(opened.file((T0, 3))))
        before = runtime.log.high_watermark
        assert before == partition.log.log_end_offset > partition.log.synced
        partition.isr = (0,)
        assert runtime.log.high_watermark == before


async def test_a_refusal_waits_for_what_it_rests_on() -> None:
    # Q14: a pending deletion makes the commit fail, and may be lost itself.
    async with home() as opened:
        runtime = await started(opened)
        opened.partitions[0].held = True
        gone = submit(runtime, ask.DeleteTopics([TOPIC]))
        commit = submit(runtime, ask.DeleteRecords([(*T0, 0)]))
        await settle()
        assert not commit.done()
        opened.partitions[0].commit()
        await gone
        assert (await commit)[0].error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


async def test_the_same_key_joins_the_commit_on_its_way() -> None:
    # Q13
    async with home() as opened:
        runtime = await started(opened)
        opened.partitions[0].held = True
        request = ask.CommitFile(opened.file((T0, 3)))
        first, second = submit(runtime, request), submit(runtime, request)
        await settle()
        assert logged(opened)[1:] == [["FileCommittedRecord"]]
        assert not second.done()
        opened.partitions[0].commit()
        assert (await first)[0].assigned_base_offset == 0
        (again,) = await second
        assert (again.assigned_base_offset, again.duplicate) == (0, True)


async def test_lost_leadership_is_unknown_only_for_what_was_appended() -> None:
    # Q12
    async with home() as opened:
        runtime = await started(opened)
        opened.partitions[0].held = True
        file = opened.file((T0, 3))
        appended = submit(runtime, ask.CommitFile(file))
        joined = submit(runtime, ask.CommitFile(file))
        refused = submit(runtime, ask.CommitFile(opened.file((T0, 3), owners=(5,))))
        read = submit(runtime, LATEST_OF_T0)
        await settle()
        opened.coordinators.partition_resigned(0)
        assert await outcome_of(appended) == (ErrorCode.REQUEST_TIMED_OUT, True)
        assert await outcome_of(joined) == (ErrorCode.REQUEST_TIMED_OUT, True)
        assert await outcome_of(refused) == (ErrorCode.NOT_COORDINATOR, False)
        assert await outcome_of(read) == (ErrorCode.NOT_COORDINATOR, False)
        with pytest.raises(KafkaError) as raised:
            await runtime.submit(CREATE)
        assert raised.value.code is ErrorCode.NOT_COORDINATOR


async def test_what_was_never_committed_never_reached_the_cache() -> None:
    # DC-36
    async with home() as opened:
        runtime = await started(opened)
        before = await opened.digest()
        opened.partitions[0].held = True
        lost = submit(runtime, ask.CommitFile(opened.file((T0, 3))))
        await settle()
        opened.coordinators.partition_resigned(0)
        await outcome_of(lost)
        opened.partitions[0].truncate(2)
        opened.partitions[0].held = False
        await opened.lead(0)
        assert await opened.digest() == before
        (result,) = await opened.runtime().submit(ask.CommitFile(opened.file((T0, 3))))
        assert result.assigned_base_offset == 0


async def test_it_is_loading_until_everything_before_is_committed() -> None:
    # Q11
    async with home() as opened:
        await started(opened)
        partition = opened.partitions[0]
        opened.coordinators.partition_resigned(0)
        await opened.coordinators.loaded()
        partition.isr = (0, 1)
        partition.commit(0)
        opened.coordinators.partition_led(0, partition)
        await settle()
        runtime = opened.runtime()
        with pytest.raises(KafkaError) as raised:
            await runtime.submit(CREATE)
        assert raised.value.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        partition.commit()
        await opened.coordinators.loaded()
        assert runtime.state is State.ACTIVE


async def test_leadership_that_is_lost_at_once_can_be_won_again() -> None:
    async with home() as opened:
        await started(opened)
        partition = opened.partitions[0]
        # All in one turn, as when a broker applies several metadata changes together.
        for _ in range(3):
            opened.coordinators.partition_led(0, partition)
            opened.coordinators.partition_resigned(0)
        async with asyncio.timeout(30):
            await opened.lead(0)
        assert opened.runtime().state is State.ACTIVE


async def test_what_is_led_after_the_end_is_not_loaded() -> None:
    # The others are stopped, too: its records could no longer be committed.
    async with home() as opened:
        await started(opened)
        partition = opened.partitions[0]
        await opened.coordinators.close()
        partition.isr = (0, 1)
        partition.commit(0)
        opened.coordinators.partition_led(0, partition)
        async with asyncio.timeout(30):
            await opened.coordinators.close()
        with pytest.raises(KafkaError) as raised:
            opened.runtime()
        assert raised.value.code is ErrorCode.NOT_COORDINATOR


@pytest.mark.parametrize("ambiguous", [True, False])
async def test_a_failed_append_unloads_and_loads_again(ambiguous: bool) -> None:
    async with home() as opened:
        runtime = await started(opened)
        code = ErrorCode.KAFKA_STORAGE_ERROR
        opened.partitions[0].append_error = KafkaError(code, ambiguous=ambiguous)
        failing = [submit(runtime, ask.CommitFile(opened.file((T0, 1)))) for _ in range(2)]
        await settle()
        first = ErrorCode.REQUEST_TIMED_OUT if ambiguous else ErrorCode.NOT_COORDINATOR
        assert await outcome_of(failing[0]) == (first, ambiguous)
        assert await outcome_of(failing[1]) == (ErrorCode.NOT_COORDINATOR, False)
        assert runtime.state is State.UNLOADED
        opened.partitions[0].append_error = None
        opened.timers.fire()
        await opened.coordinators.loaded()
        (result,) = await runtime.submit(ask.CommitFile(opened.file((T0, 1))))
        assert result.assigned_base_offset == 0


async def test_nothing_counts_before_it_is_synced_while_there_is_one_replica() -> None:
    async with home() as opened:
        runtime = await started(opened)
        log = opened.partitions[0].log
        assert log.synced == log.log_end_offset
        log.sync_error = OSError("no space")
        task = submit(runtime, ask.CommitFile(opened.file((T0, 1))))
        await settle()
        assert log.high_watermark == log.log_end_offset  # the partition alone would accept it
        assert await outcome_of(task) == (ErrorCode.REQUEST_TIMED_OUT, True)
        assert runtime.state is State.UNLOADED


async def test_with_followers_no_append_waits_for_the_disk() -> None:
    async with home() as opened:
        runtime = await started(opened)
        partition = opened.partitions[0]
        partition.isr = (0, 1)
        partition.log.sync_error = OSError("no space")
        (result,) = await runtime.submit(ask.CommitFile(opened.file((T0, 1))))
        assert result.assigned_base_offset == 0


async def test_an_operation_too_large_for_one_batch_is_refused() -> None:
    # Q32
    async with home(settings=RuntimeSettings(batch_bytes_max=400)) as opened:
        runtime = await started(opened)
        large = opened.file(*[((TOPIC, index % 2), index + 1) for index in range(200)])
        with pytest.raises(KafkaError) as raised:
            await runtime.submit(ask.CommitFile(large))
        assert raised.value.code is ErrorCode.MESSAGE_TOO_LARGE
        (result,) = await runtime.submit(ask.CommitFile(opened.file((T0, 1))))
        assert result.assigned_base_offset == 0  # the refused one left no trace


async def test_a_failing_cache_is_dropped_and_built_again() -> None:
    async with home() as opened:
        runtime = await started(opened)
        await runtime.submit(ask.CommitFile(opened.file((T0, 4))))
        before = await opened.digest()
        runtime.machine.state._db.execute("DROP TABLE batches")
        (committed,) = await runtime.submit(ask.CommitFile(opened.file((T0, 1))))
        assert committed.assigned_base_offset == 4  # even if the cache fails
        with pytest.raises(KafkaError):
            await runtime.caught_up()
        opened.timers.fire()
        await opened.coordinators.loaded()
        (answer,) = await runtime.submit(LATEST_OF_T0)
        assert answer.offset == 5
        assert await opened.digest() != before


async def test_a_cache_that_fails_under_a_commit_is_built_again() -> None:
    async with home() as opened:
        runtime = await started(opened)
        await runtime.submit(ask.CommitFile(opened.file((T0, 4))))
        await runtime.caught_up()
        runtime.machine.state._db.execute("DROP TABLE files")
        tasks = [submit(runtime, ask.CommitFile(opened.file((T0, 1)))) for _ in range(2)]
        for task in tasks:  # nothing was appended
            assert await outcome_of(task) == (ErrorCode.NOT_COORDINATOR, False)
        opened.timers.fire()
        await opened.coordinators.loaded()
        (committed,) = await runtime.submit(ask.CommitFile(opened.file((T0, 1))))
        assert committed.assigned_base_offset == 4


async def test_a_request_that_cannot_be_handled_is_harmless() -> None:
    async with home() as opened:
        runtime = await started(opened)
        with pytest.raises(KafkaError) as raised:
            await runtime.submit(ask.DeleteRecords([("no id", None)]))  # type: ignore[list-item]
        assert raised.value.code is ErrorCode.UNKNOWN_SERVER_ERROR
        assert (await runtime.submit(ask.ListOffsets([(*T1, EARLIEST)])))[0].offset == 0


async def test_callers_hear_of_every_high_watermark() -> None:
    async with home() as opened:
        runtime = await started(opened)
        heard: list[Any] = []
        opened.coordinators.watch(lambda partition, offset: heard.append((partition, offset)))
        await runtime.submit(ask.CommitFile(opened.file((T0, 2), (T1, 1), (T0, 3))))
        assert heard == [(T0, 5), (T1, 1)]


async def test_too_few_replicas_refuse_writes_and_nothing_else() -> None:
    # DC-35 partly
    async with home() as opened:
        await opened.lead(0)
        runtime = opened.runtime()
        await runtime.submit(ask.CreatePartitions([(TOPIC, "a", [0])]))
        opened.partitions[0].in_sync_error = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS)
        with pytest.raises(KafkaError) as refused:
            await runtime.submit(ask.CommitFile(opened.file((T0, 1))))
        assert refused.value.code is ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert not refused.value.ambiguous
        assert runtime.state is State.ACTIVE
        assert (await runtime.submit(ask.ListOffsets([(*T0, -1)])))[0].offset == 0
        opened.partitions[0].in_sync_error = None
        (result,) = await runtime.submit(ask.CommitFile(opened.file((T0, 1))))
        assert result.assigned_base_offset == 0
