"""The writer: nothing is acknowledged before its commit, order holds, failures stay contained."""

from __future__ import annotations

import asyncio
import contextlib
import gc
from typing import Any

import pytest

from skylog.diskless.batch import LOG_APPEND_TIME
from skylog.diskless.writer.file import ClosedFile, Piece
from skylog.diskless.writer.lost import LostBatches
from skylog.kernel import limits
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.objects.memory import _Object
from skylog.objects.store import ObjectError, Outcome
from skylog.wire.batch import Batch
from tests.unit.diskless.engine import TOPIC_ID, Engine, item, stored


class GatedStore:
    """Releases puts one by one."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner
        self.gate = asyncio.Event()
        self.started = 0
        self.failures: list[ObjectError | None] = []

    async def put(self, key: Any, data: Any, *, if_absent: bool = False) -> None:
        self.started += 1
        await self.gate.wait()
        failure = self.failures.pop(0) if self.failures else None
        if failure is not None:
            raise failure
        await self.inner.put(key, data, if_absent=if_absent)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


async def settle(rounds: int = 20) -> None:
    for _ in range(rounds):
        await asyncio.sleep(0)


async def started(engine: Engine, puts: int) -> None:
    async with asyncio.timeout(30):
        while engine.store.started < puts:  # noqa: ASYNC110 - nothing tells of it
            await asyncio.sleep(0.001)


async def test_requests_of_one_turn_share_one_object() -> None:
    # ENG-10
    engine = await Engine().start()
    results = await asyncio.gather(
        *(engine.writer.append(number, [item(b"%d" % number, number % 2)]) for number in range(6))
    )
    assert [result[0].base_offset for result in results] == [0, 0, 1, 1, 2, 2]
    assert len(await stored(engine)) == 1
    assert await engine.values(1) == [(0, b"1"), (1, b"3"), (2, b"5")]


async def test_upload_then_commit_then_answer() -> None:
    # ENG-14
    engine = await Engine(GatedStore).start()
    answer = asyncio.ensure_future(engine.writer.append(1, [item()]))
    await settle()
    assert engine.store.started == 1
    assert engine.plane.commits == []
    assert not answer.done()
    engine.store.gate.set()
    assert (await answer)[0].error is ErrorCode.NONE
    assert len(engine.plane.commits) == 1


async def test_what_a_store_takes_at_once_is_committed_without_an_upload() -> None:
    class AtOnce(GatedStore):
        taken: tuple[bool, ...] = (True, False)

        @property
        def at_hand(self) -> Any:
            return self

        def put_now(self, key: Any, data: Any) -> bool:
            done, *self.taken = self.taken  # type: ignore[assignment]
            if done:
                self.inner._objects[key] = _Object(b"".join(data), 0)
            return done

    engine = await Engine(AtOnce).start()
    assert (await engine.writer.append(1, [item(b"a")]))[0].base_offset == 0
    assert engine.store.started == 0
    engine.store.gate.set()
    assert (await engine.writer.append(2, [item(b"b")]))[0].base_offset == 1
    assert engine.store.started == 1
    assert await engine.values() == [(0, b"a"), (1, b"b")]
    assert engine.writer.stages.upload.runs == 2


async def test_a_store_that_stumbles_at_once_costs_its_file_and_not_the_writer() -> None:
    class Stumbling(GatedStore):
        troubles: tuple[Exception, ...] = (RuntimeError("a bug"),)

        @property
        def at_hand(self) -> Any:
            return self

        def put_now(self, key: Any, data: Any) -> bool:
            if self.troubles:
                trouble, *self.troubles = self.troubles  # type: ignore[assignment]
                raise trouble
            return False

    engine = await Engine(Stumbling).start()
    engine.store.gate.set()
    async with asyncio.timeout(30):
        failed = await engine.writer.append(1, [item(b"a")])
        assert failed[0].error is ErrorCode.KAFKA_STORAGE_ERROR
        assert (await engine.writer.append(2, [item(b"b")]))[0].base_offset == 0
    assert (engine.writer.stages.upload.errors, engine.writer.stages.upload.runs) == (1, 2)
    assert await engine.values() == [(0, b"b")]


async def test_objects_hold_no_offsets_and_commits_name_their_bytes() -> None:
    # ENG-09, ENG-15
    engine = await Engine().start()
    for number in range(3):
        await engine.writer.append(number, [item(b"%d" % number)])
    objects = await stored(engine)
    assert len(objects) == 3
    for data, commit in zip(
        sorted(objects),
        sorted(engine.plane.commits, key=lambda c: c.batches[0].extent.byte_size),
        strict=True,
    ):
        extent = commit.batches[0].extent
        batch = Batch(data[extent.byte_offset : extent.end])
        assert batch.base_offset == 0
        assert batch.crc_ok()
        assert commit.size == len(data)


async def test_a_refused_batch_costs_only_itself() -> None:
    # ENG-17
    engine = await Engine().start(partitions=1)
    results = await engine.writer.append(1, [item(b"a"), item(b"b", 7), item(b"c")])
    assert [result.error for result in results] == [
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NONE,
    ]
    assert await engine.values() == [(0, b"a"), (1, b"c")]


async def test_an_upload_that_may_have_worked_is_repeated_under_its_key() -> None:
    engine = await Engine(GatedStore).start()
    engine.store.gate.set()
    engine.store.failures = [ObjectError("lost", Outcome.AMBIGUOUS)] * 2
    assert (await engine.writer.append(1, [item()]))[0].error is ErrorCode.NONE
    assert len(await stored(engine)) == 1


async def test_a_commit_that_may_have_worked_is_asked_for_again() -> None:
    engine = await Engine().start()
    engine.plane.failures = [KafkaError(ErrorCode.REQUEST_TIMED_OUT, ambiguous=True)]
    result = await engine.writer.append(1, [item()])
    assert (result[0].error, result[0].base_offset) == (ErrorCode.NONE, 0)
    assert len({commit.object_key for commit in engine.plane.commits}) == 1
    assert await engine.values() == [(0, b"v")]


async def test_an_outcome_that_was_unknown_once_stays_so_though_later_tries_do_nothing() -> None:
    engine = await Engine(commit_age_max_ms=1500).start()
    unknown = KafkaError(ErrorCode.REQUEST_TIMED_OUT, ambiguous=True)
    engine.plane.failures = [unknown, *[KafkaError(ErrorCode.NOT_COORDINATOR)] * 10_000]
    result = await engine.writer.append(1, [item()])
    assert result[0].error is ErrorCode.REQUEST_TIMED_OUT
    await engine.writer.close()
    assert len(await stored(engine)) == 1


async def test_a_refused_commit_is_an_error_and_its_object_goes() -> None:
    # DC-50
    engine = await Engine().start()
    engine.plane.failures = [KafkaError(ErrorCode.INVALID_REQUEST, "no")]
    result = await engine.writer.append(1, [item()])
    assert result[0].error is ErrorCode.KAFKA_STORAGE_ERROR
    await engine.writer.close()
    assert await stored(engine) == []


async def test_later_batches_of_a_producer_fail_with_the_one_that_was_lost() -> None:
    engine = await Engine(GatedStore, adaptive=True).start()
    engine.store.failures = [ObjectError("denied", Outcome.REFUSED)]
    first = asyncio.ensure_future(engine.writer.append(1, [item(b"0", producer=(5, 0, 0))]))
    await settle()
    second = asyncio.ensure_future(
        engine.writer.append(2, [item(b"1", producer=(5, 0, 1)), item(b"x", producer=(6, 0, 0))])
    )
    await started(engine, 2)
    engine.store.gate.set()
    assert (await first)[0].error is ErrorCode.KAFKA_STORAGE_ERROR
    lost, other = await second
    assert lost.error is ErrorCode.KAFKA_STORAGE_ERROR
    assert other.error is ErrorCode.NONE
    assert await engine.values() == [(0, b"x")]
    again = await engine.writer.append(3, [item(b"0", producer=(5, 0, 0))])
    assert again[0].base_offset == 1


async def test_a_lost_batch_is_waited_for_however_late_it_comes() -> None:
    engine = await Engine(GatedStore).start()
    engine.store.failures = [ObjectError("denied", Outcome.REFUSED)]
    engine.store.gate.set()

    async def send(sequence: int, epoch: int = 0) -> ErrorCode:
        one = item(b"%d" % sequence, producer=(5, epoch, sequence))
        return (await engine.writer.append(sequence, [one]))[0].error

    assert await send(0) is ErrorCode.KAFKA_STORAGE_ERROR
    # Nothing is in flight any more; yet 1 and 2 must not pass for a beginning.
    assert await send(1) is ErrorCode.KAFKA_STORAGE_ERROR
    assert await send(2) is ErrorCode.KAFKA_STORAGE_ERROR
    assert [await send(number) for number in range(3)] == [ErrorCode.NONE] * 3
    engine.store.failures = [ObjectError("denied", Outcome.REFUSED)]
    assert await send(3) is ErrorCode.KAFKA_STORAGE_ERROR
    assert await send(0, epoch=1) is ErrorCode.NONE
    assert await engine.values() == [(0, b"0"), (1, b"1"), (2, b"2"), (3, b"0")]


def test_the_first_lost_batch_counts_and_sequences_wrap() -> None:
    lost = LostBatches()
    last = 2**31 - 1
    lost.add(item(producer=(5, 0, 0)))
    lost.add(item(producer=(5, 0, last)))
    lost.add(item(producer=(5, 0, 1)))
    assert not lost.admits(item(producer=(5, 0, 0)))
    assert not lost.admits(item(producer=(5, 0, 1)))
    assert lost.admits(item(producer=(5, 0, 1), partition=1))
    assert lost.admits(item())
    assert lost.admits(item(producer=(5, 0, last)))
    assert lost.admits(item(producer=(5, 0, 0)))
    assert len(lost) == 0


def test_what_is_known_of_lost_batches_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("skylog.diskless.writer.lost.DISKLESS_LOST_BATCHES_MAX", 2)
    lost = LostBatches()
    for producer_id in range(5):
        lost.add(item(producer=(producer_id, 0, 0)))
    assert len(lost) == 2
    assert not lost.admits(item(producer=(4, 0, 1)))


async def test_uploads_overlap_and_commits_keep_the_order_of_closing() -> None:
    # ENG-18
    engine = await Engine(GatedStore).start()
    answers = []
    for number in range(2):
        answers.append(
            asyncio.ensure_future(
                engine.writer.append(number, [item(b"%d" % number, producer=(5, 0, number))])
            )
        )
        await started(engine, number + 1)
    engine.store.gate.set()
    results = await asyncio.gather(*answers)
    assert [result[0].base_offset for result in results] == [0, 1]


async def test_back_pressure_waits_for_room() -> None:
    one = item(b"x" * 1000)
    engine = await Engine(GatedStore, inflight_bytes_max=one.batch.size).start()
    answers = [asyncio.ensure_future(engine.writer.append(n, [item(b"x" * 1000)])) for n in (1, 2)]
    await settle()
    assert engine.store.started == 1
    engine.store.gate.set()
    assert [r[0].base_offset for r in await asyncio.gather(*answers)] == [0, 1]


async def test_a_file_ends_with_the_request_that_fills_it() -> None:
    # ENG-11
    size = item(b"x" * 1000).batch.size
    engine = await Engine(buffer_bytes_max=2 * size + 1, adaptive=False, interval_ms=60_000).start()
    await asyncio.gather(*(engine.writer.append(n, [item(b"x" * 1000)]) for n in range(6)))
    assert [len(data) for data in await stored(engine)] == [1 + 3 * size] * 2


async def test_a_clock_that_is_put_back_holds_up_no_file(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = await Engine(adaptive=False, interval_ms=20).start()
    answer = asyncio.ensure_future(engine.writer.append(1, [item()]))
    await settle()
    hour_ago = engine.clock.now_ms() - 3_600_000
    monkeypatch.setattr(engine.clock, "now_ms", lambda: hour_ago)
    async with asyncio.timeout(30):
        assert (await answer)[0].base_offset == 0


async def test_close_writes_what_waits_and_takes_no_more() -> None:
    # ENG-51
    engine = await Engine(adaptive=False, interval_ms=60_000).start()
    answer = asyncio.ensure_future(engine.writer.append(1, [item()]))
    await settle()
    assert not answer.done()
    await engine.writer.close()
    assert (await answer)[0].base_offset == 0
    late = await engine.writer.append(2, [item()])
    assert late[0].error is ErrorCode.NOT_LEADER_OR_FOLLOWER


async def test_close_does_not_wait_for_ever_for_a_coordinator(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "DISKLESS_CLOSE_SECONDS_MAX", 0.2)
    engine = await Engine().start()
    monkeypatch.setattr(engine.plane, "commit_file", lambda *_, **__: asyncio.sleep(3600))
    answer = asyncio.ensure_future(engine.writer.append(1, [item()]))
    await settle()
    async with asyncio.timeout(30):
        await engine.writer.close()
    assert (await answer)[0].error is ErrorCode.REQUEST_TIMED_OUT
    assert len(await stored(engine)) == 1


async def test_close_does_not_wait_for_ever_for_a_store(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even for a put that does not end when it is cancelled."""
    monkeypatch.setattr(limits, "DISKLESS_CLOSE_SECONDS_MAX", 0.01)
    monkeypatch.setattr(limits, "CANCELLED_SECONDS_MAX", 0.01)

    class Stubborn(GatedStore):
        async def put(self, key: Any, data: Any, *, if_absent: bool = False) -> None:
            while not self.gate.is_set():
                with contextlib.suppress(asyncio.CancelledError):
                    await self.gate.wait()

    engine = await Engine(Stubborn).start()
    answer = asyncio.ensure_future(engine.writer.append(1, [item()]))
    await settle()
    async with asyncio.timeout(30):
        await engine.writer.close()
    assert (await answer)[0].error is ErrorCode.REQUEST_TIMED_OUT
    engine.store.gate.set()
    await settle()


async def test_log_append_time_is_the_time_of_the_commit() -> None:
    engine = await Engine().start()
    result = (await engine.writer.append(1, [item(timestamp_type=LOG_APPEND_TIME)]))[0]
    assert result.log_append_time > 1_700_000_000_000
    created = (await engine.writer.append(2, [item()]))[0]
    assert created.log_append_time == -1
    assert engine.plane.commits[0].batches[0].topic_id == TOPIC_ID


async def test_what_is_committed_is_let_go_without_the_collector() -> None:
    engine = await Engine().start()
    gc.collect()
    gc.disable()
    try:
        await engine.writer.append(1, [item(b"a"), item(b"b", 1)])
        await engine.writer.close()
        left = [one for one in gc.get_objects() if isinstance(one, ClosedFile | Piece)]
    finally:
        gc.enable()
    assert left == []
