"""The runtime: order, the wait for the high watermark, parking, timers, failures, reload."""

from __future__ import annotations

import asyncio

import pytest

from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.replicated.digest import state_digest
from skylog.replicated.lifecycle import State
from tests.unit.replicated.support import (
    NOT_LEADER,
    Add,
    AddLater,
    Await,
    Bench,
    Broken,
    IntCodec,
    Never,
    Note,
    Read,
    Wake,
)


async def started(bench: Bench, *requests: object) -> list[asyncio.Task[object]]:
    """Submit without waiting for replies; each request has been handled when this returns."""
    tasks = [asyncio.ensure_future(bench.runtime.submit(request)) for request in requests]
    await asyncio.sleep(0)
    return tasks


async def settled(tasks: list[asyncio.Task[object]]) -> list[object]:
    return await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 5)


async def loaded(**options: int) -> Bench:
    bench = Bench(**options)  # type: ignore[arg-type]
    await bench.runtime.load()
    return bench


def done(tasks: list[asyncio.Task[object]]) -> list[bool]:
    return [task.done() for task in tasks]


async def turn() -> None:
    """Let callbacks of settled futures run."""
    for _ in range(3):
        await asyncio.sleep(0)


async def test_fifty_requests_are_in_flight_while_the_high_watermark_lags() -> None:
    bench = await loaded()
    tasks = await started(bench, *[Add(1) for _ in range(50)])
    assert bench.register.total == 50
    assert not any(done(tasks))
    assert bench.runtime.pending_count == 50
    for committed in (1, 10, 50):
        bench.log.commit(committed)
        await turn()
        assert done(tasks) == [index < committed for index in range(50)]
    assert await settled(tasks) == list(range(1, 51))


async def test_reads_and_refusals_wait_for_the_log_end_they_saw() -> None:
    bench = await loaded()
    tasks = await started(bench, Read(), Add(5), Read(), Broken(), Note(3), Read(), Add(1))
    await turn()
    assert done(tasks) == [True] + [False] * 6
    bench.log.commit(1)
    await turn()
    assert done(tasks) == [True] * 6 + [False]
    bench.log.commit()
    results = await settled(tasks)
    assert isinstance(results[3], KafkaError)
    assert results[3].code is ErrorCode.UNKNOWN_SERVER_ERROR
    assert results[:3] + results[4:] == [(0, 0), 5, (5, 0), None, (5, 3), 6]


async def test_one_request_is_one_batch_and_each_record_knows_its_offset() -> None:
    bench = await loaded()
    tasks = await started(bench, Add(7, parts=3), Add(1))
    assert [len(batch) for batch in bench.log.batches] == [3, 1]
    assert bench.register.last_offset == 3
    bench.log.commit(2)  # in the middle of a batch: not all of the request is safe
    await turn()
    assert not any(done(tasks))
    bench.log.commit()
    assert await settled(tasks) == [7, 8]


async def test_a_parked_request_is_answered_at_the_high_watermark_of_the_answer() -> None:
    bench = await loaded()
    parked = await started(bench, Await("a"), Await("a"), Await("b"))
    assert not any(done(parked))
    later = await started(bench, Add(4), Wake("a"))
    await turn()
    assert not any(done(parked))
    bench.log.commit()
    assert await settled(parked[:2] + later) == [4, 4, 4, None]
    assert done(parked) == [True, True, False]
    bench.runtime.unload()
    (error,) = await settled(parked[2:])
    assert isinstance(error, KafkaError)
    assert (error.code, error.ambiguous) == (ErrorCode.NOT_COORDINATOR, False)


async def test_a_caller_that_goes_away_leaves_no_trace() -> None:
    bench = await loaded()
    tasks = await started(bench, Await("a"), Await("a"), Add(1))
    assert bench.runtime.pending_count == 3
    tasks[0].cancel()
    tasks[2].cancel()
    await turn()
    assert bench.runtime.pending_count == 2
    tasks[1].cancel()
    await turn()
    assert bench.runtime.pending_count == 1
    bench.log.commit()
    assert bench.runtime.pending_count == 0
    assert bench.register.total == 1


async def test_timers_fire_are_replaced_and_cancelled() -> None:
    bench = await loaded()
    await settled(
        await started(
            bench,
            AddLater("a", 1, 100),
            AddLater("a", 10, 200),
            AddLater("b", 100, 50),
            AddLater("c", 1000, 50),
            Never("b"),
            Never("unknown"),
        )
    )
    bench.timers.advance(100)
    assert bench.register.total == 1000
    bench.timers.advance(100)
    assert bench.register.total == 1010
    await started(bench, AddLater("d", 1, 50))
    bench.runtime.unload()
    bench.timers.advance(1000)  # a timer of a replaced machine does nothing
    assert bench.runtime.machine is None


async def test_too_many_waiting_requests_are_refused() -> None:
    bench = await loaded(pending_max=3)
    tasks = await started(bench, Add(1), Await("x"), Add(1), Add(1))
    assert done(tasks) == [False, False, False, True]
    (refused,) = await settled(tasks[3:])
    assert isinstance(refused, KafkaError)
    assert refused.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    bench.log.commit()
    assert await settled(await started(bench, Read())) == [(2, 0)]
    bench.runtime.unload()
    await settled(tasks)


@pytest.mark.parametrize(
    ("failure", "after_write", "ambiguous"),
    [(NOT_LEADER, False, False), (OSError("disk"), False, True), (OSError("disk"), True, True)],
)
async def test_a_failed_append_unloads_and_tells_each_caller_what_is_known(
    failure: Exception, after_write: bool, ambiguous: bool
) -> None:
    bench = await loaded()
    before = await started(bench, Add(1), Read(), Await("a"), Await("b", amount=2))
    bench.log.failure, bench.log.fails_after_write = failure, after_write
    (failed,) = await started(bench, Add(4))
    results = await settled([*before, failed])
    assert [
        (error.code, error.ambiguous) for error in results if isinstance(error, KafkaError)
    ] == [
        (ErrorCode.COORDINATOR_NOT_AVAILABLE, True),
        (ErrorCode.NOT_COORDINATOR, False),
        (ErrorCode.NOT_COORDINATOR, False),
        (ErrorCode.COORDINATOR_NOT_AVAILABLE, True),
        (ErrorCode.COORDINATOR_NOT_AVAILABLE, True)
        if ambiguous
        else (ErrorCode.NOT_COORDINATOR, False),
    ]
    assert bench.failures == [failure]
    assert bench.runtime.state is State.UNLOADED
    await bench.runtime.load()
    assert bench.register.total == 3 + (4 if after_write else 0)


async def test_records_that_the_log_refuses_cost_only_their_own_request() -> None:
    bench = await loaded()
    (earlier,) = await started(bench, Add(1))
    bench.log.failure = KafkaError(ErrorCode.RECORD_LIST_TOO_LARGE)
    (refused,) = await started(bench, Add(1))
    await turn()
    assert not refused.done()
    bench.log.commit()
    first, error = await settled([earlier, refused])
    assert first == 1
    assert isinstance(error, KafkaError)
    assert error.code is ErrorCode.RECORD_LIST_TOO_LARGE
    assert bench.runtime.state is State.ACTIVE
    assert bench.register.total == 1


async def test_a_machine_that_cannot_apply_is_unloaded() -> None:
    bench = await loaded()

    def apply(record: object, offset: int) -> None:
        raise ValueError(record)

    bench.register.apply = apply  # type: ignore[method-assign]
    (error,) = await settled(await started(bench, Add(1)))
    assert isinstance(error, KafkaError)
    assert error.ambiguous
    assert isinstance(bench.failures[0], ValueError)
    assert bench.runtime.state is State.UNLOADED


async def test_requests_before_and_during_a_load_are_refused() -> None:
    bench = Bench()
    with pytest.raises(KafkaError) as unloaded:
        await bench.runtime.submit(Read())
    assert unloaded.value.code is ErrorCode.NOT_COORDINATOR
    bench.log.append([(None, b"5")])
    gate = asyncio.Event()
    read_all = bench.log.read_all

    async def slowly():  # type: ignore[no-untyped-def]
        async for batch in read_all():
            await gate.wait()
            yield batch

    bench.log.read_all = slowly  # type: ignore[method-assign]
    load = asyncio.ensure_future(bench.runtime.load())
    await asyncio.sleep(0)
    with pytest.raises(KafkaError) as loading:
        await bench.runtime.submit(Read())
    assert loading.value.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    bench.runtime.unload()  # leadership is lost meanwhile
    gate.set()
    await load
    assert bench.runtime.state is State.UNLOADED
    await bench.runtime.load()
    assert bench.register.total == 5


async def test_a_load_that_fails_leaves_the_machine_unloaded() -> None:
    bench = Bench()
    bench.log.append([(None, b"no number")])
    with pytest.raises(ValueError, match="no number"):
        await bench.runtime.load()
    assert bench.runtime.state is State.UNLOADED


async def test_a_snapshot_waits_until_its_state_is_committed() -> None:
    bench = await loaded()
    assert not await bench.runtime.snapshot_if_due()
    bench.log.snapshot_wanted = True
    tasks = await started(bench, Add(2), Add(3))
    snapshot = asyncio.ensure_future(bench.runtime.snapshot_if_due())
    await turn()
    more = await started(bench, Add(10))
    bench.log.commit(1)
    await turn()
    assert bench.log.snapshot is None
    bench.log.commit(2)
    assert await asyncio.wait_for(snapshot, 5)
    assert bench.log.snapshot == (2, [(None, b"5")])
    bench.log.commit()
    await settled([*tasks, *more])
    digest = state_digest(bench.register, IntCodec())
    bench.runtime.unload()
    await bench.runtime.load()
    assert bench.register.total == 15
    assert state_digest(bench.register, IntCodec()) == digest


async def test_a_timeout_at_the_high_watermark_has_an_unknown_outcome() -> None:
    bench = await loaded(write_timeout_ms=100)
    first = await started(bench, Add(1))
    bench.timers.advance(60)
    second = await started(bench, Add(2), Read())
    bench.timers.advance(40)
    assert done(await turned(first + second)) == [True, False, False]
    (error,) = await settled(first)
    assert isinstance(error, KafkaError)
    assert (error.code, error.ambiguous) == (ErrorCode.COORDINATOR_NOT_AVAILABLE, True)
    # Its write stays, and later callers still have their timeouts.
    bench.log.commit(2)
    assert await settled(second) == [3, (3, 0)]
    bench.timers.advance(1000)
    third = await started(bench, Add(4), Read())
    bench.timers.advance(100)
    errors = await settled(third)
    assert [getattr(error, "ambiguous", None) for error in errors] == [True, False]


async def turned(tasks: list[asyncio.Task[object]]) -> list[asyncio.Task[object]]:
    await turn()
    return tasks
