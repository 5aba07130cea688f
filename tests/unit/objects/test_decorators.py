"""Decorators of stores: retries, limits, counts and faults."""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from skylog.kernel.clock import ManualClock
from skylog.kernel.metrics import Metrics
from skylog.objects.faulty import Faults, FaultyStore
from skylog.objects.keys import ObjectKey
from skylog.objects.limited import LimitedStore
from skylog.objects.memory import MemoryStore
from skylog.objects.metered import FREE, OPERATIONS, MeteredStore, StoreCollector, StoreStats
from skylog.objects.retrying import RetryBudget, RetryingStore, RetryPolicy
from skylog.objects.store import (
    Exists,
    NotFound,
    ObjectError,
    ObjectInfo,
    ObjectStore,
    Outcome,
    Payload,
    Source,
    size_of,
)

KEY = ObjectKey.named("backup", "key")
NOT_DONE, AMBIGUOUS, REFUSED = Outcome.NOT_DONE, Outcome.AMBIGUOUS, Outcome.REFUSED


def keys(count: int) -> list[ObjectKey]:
    return [ObjectKey.named("backup", f"{n:05}") for n in range(count)]


class Scripted(ObjectStore):
    """Raises the errors of a script, one for each call, then does what memory does."""

    def __init__(self, *script: ObjectError | None) -> None:
        self.memory = MemoryStore()
        self.script = list(script)
        self.calls = 0

    def _next(self) -> None:
        self.calls += 1
        if self.script and (error := self.script.pop(0)) is not None:
            raise error

    async def put(self, key: ObjectKey, data: Payload, *, if_absent: bool = False) -> None:
        self._next()
        await self.memory.put(key, data, if_absent=if_absent)

    async def put_file(self, key: ObjectKey, source: Source, size: int) -> None:
        self._next()
        await self.memory.put_file(key, source, size)

    async def get(self, key: ObjectKey, start: int = 0, end: int | None = None) -> bytes:
        self._next()
        return await self.memory.get(key, start, end)

    async def head(self, key: ObjectKey) -> ObjectInfo:
        self._next()
        return await self.memory.head(key)

    async def delete_many(self, keys: Sequence[ObjectKey]) -> None:
        self._next()
        await self.memory.delete_many(keys)

    async def list(self, prefix: str, after: str | None = None) -> AsyncIterator[ObjectInfo]:
        self._next()
        async for info in self.memory.list(prefix, after):
            self._next()
            yield info

    async def close(self) -> None:
        self.calls = -1


def error(kind: Outcome, *, throttled: bool = False) -> ObjectError:
    return ObjectError(f"scripted: {kind.value}", kind, throttled=throttled)


class Pauses:
    """Sleeps by advancing the clock."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.taken: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.taken.append(seconds)
        self.clock.advance(math.ceil(seconds * 1000))


def retrying(inner: ObjectStore, pauses: Pauses | None = None, **policy: float) -> RetryingStore:
    pauses = pauses or Pauses()
    return RetryingStore(
        inner,
        RetryPolicy(**policy),  # type: ignore[arg-type]
        clock=pauses.clock,
        rng=random.Random(1),
        sleep=pauses,
    )


@pytest.mark.parametrize("kind", [NOT_DONE, AMBIGUOUS])
async def test_what_may_help_is_tried_again(kind: Outcome) -> None:
    inner = Scripted(*[error(kind)] * 3)
    pauses = Pauses()
    await retrying(inner, pauses).put(KEY, b"data")
    assert inner.calls == 4
    assert await inner.memory.get(KEY) == b"data"
    for number, seconds in enumerate(pauses.taken):
        assert 0 <= seconds <= 0.05 * 2**number
    assert len(set(pauses.taken)) == 3  # jitter


async def test_what_is_refused_is_not_tried_again() -> None:
    for refusal in (error(REFUSED), NotFound("no"), Exists("other")):
        inner = Scripted(refusal)
        with pytest.raises(ObjectError) as raised:
            await retrying(inner).put(KEY, b"data")
        assert raised.value is refusal
        assert inner.calls == 1


async def test_attempts_end() -> None:
    inner = Scripted(*[error(NOT_DONE)] * 9)
    with pytest.raises(ObjectError) as raised:
        await retrying(inner, attempts_max=4).put(KEY, b"data")
    assert (inner.calls, raised.value.kind) == (4, NOT_DONE)


@pytest.mark.parametrize("last", [NOT_DONE, REFUSED])
async def test_a_doubt_stays_a_doubt(last: Outcome) -> None:
    """The first attempt may have succeeded, whatever the result of the second."""
    inner = Scripted(error(AMBIGUOUS), error(last))
    with pytest.raises(ObjectError) as raised:
        await retrying(inner, attempts_max=2).put(KEY, b"data")
    assert raised.value.kind is AMBIGUOUS


async def test_a_doubt_about_other_bytes_is_settled() -> None:
    inner = Scripted(error(AMBIGUOUS))
    await inner.memory.put(KEY, b"theirs")
    with pytest.raises(Exists):
        await retrying(inner).put(KEY, b"ours", if_absent=True)


async def test_an_answer_that_does_not_come_ends_the_attempt() -> None:
    class Stalled(MemoryStore):
        stalls = 1

        async def put(self, key: ObjectKey, data: Payload, *, if_absent: bool = False) -> None:
            if self.stalls:
                self.stalls -= 1
                await asyncio.Event().wait()
            await super().put(key, data, if_absent=if_absent)

        async def get(self, key: ObjectKey, start: int = 0, end: int | None = None) -> bytes:
            await asyncio.Event().wait()
            raise AssertionError

    inner = Stalled()
    store = retrying(inner, attempts_max=2, attempt_seconds_max=0.01)
    await store.put(KEY, b"data")
    inner.stalls = 2
    with pytest.raises(ObjectError) as raised:
        await store.put(KEY, b"data")
    assert raised.value.kind is AMBIGUOUS
    with pytest.raises(ObjectError) as raised:
        await store.get(KEY)
    assert raised.value.kind is NOT_DONE


async def test_a_store_that_is_down_is_not_flooded() -> None:
    inner = Scripted(*[error(NOT_DONE)] * 10_000)
    store = retrying(inner, attempts_max=6, budget_max=20)
    for _ in range(100):
        with pytest.raises(ObjectError):
            await store.put(KEY, b"data")
    assert inner.calls == 100 + 20  # every request once, and the budget


def test_the_budget_comes_back_with_success() -> None:
    budget = RetryBudget(RetryPolicy(budget_max=2, budget_per_success=0.5))
    assert [budget.take() for _ in range(3)] == [True, True, False]
    budget.succeeded()
    assert not budget.take()
    budget.succeeded()
    assert [budget.take(), budget.take()] == [True, False]


async def test_a_throttled_store_rests_from_all_requests() -> None:
    inner = Scripted(error(REFUSED, throttled=True), error(REFUSED, throttled=True))
    pauses = Pauses()
    store = retrying(inner, pauses, pause_seconds=1.0)
    for _ in range(2):
        with pytest.raises(ObjectError):
            await store.put(KEY, b"data")
    first = pauses.taken.copy()
    await store.put(KEY, b"data")
    rest = pauses.taken[len(first) :]
    assert len(first) == len(rest) == 1  # the second request waited, and the third longer
    assert 0.5 <= first[0] <= 1.0 <= rest[0] <= 2.0
    await store.put(KEY, b"data")
    assert len(pauses.taken) == 2


async def test_short_reads_are_read_again() -> None:
    inner = FaultyStore(MemoryStore(), random.Random(4), Faults(truncated=0.5))
    store = retrying(inner, attempts_max=50)
    await store.put(KEY, bytes(range(100)))
    for _ in range(30):
        assert await store.get(KEY, 10, 90) == bytes(range(10, 90))
    assert inner.injected["truncated"] > 10


async def test_a_listing_goes_on_where_it_failed() -> None:
    inner = FaultyStore(MemoryStore(), random.Random(5), Faults(before=0.2))
    for key in keys(60):
        await retrying(inner, attempts_max=50).put(key, b"data")
    found = [info.key async for info in retrying(inner, attempts_max=50).list("backup/")]
    assert found == keys(60)
    assert inner.injected["before"] > 5


async def test_at_most_so_many_at_once() -> None:
    class Counting(MemoryStore):
        running = most = 0

        async def get(self, key: ObjectKey, start: int = 0, end: int | None = None) -> bytes:
            self.running += 1
            self.most = max(self.most, self.running)
            await asyncio.sleep(0)
            self.running -= 1
            return await super().get(key, start, end)

    inner = Counting()
    store = LimitedStore(inner, 3)
    await store.put(KEY, b"data")
    assert await asyncio.gather(*(store.get(KEY) for _ in range(20))) == [b"data"] * 20
    assert inner.most == 3


async def test_a_listing_does_not_hold_a_slot_for_its_reader() -> None:
    store = LimitedStore(MemoryStore(), 1)
    for key in keys(3):
        await store.put(key, b"data")
    async for info in store.list("backup/"):
        assert await store.get(info.key) == b"data"  # would wait for ever


async def test_counts_bytes_and_cost() -> None:
    store = MeteredStore(MemoryStore())
    for key in keys(3):
        await store.put(key, [b"12345", b"678"])
    await store.get(KEY.named("backup", "00000"), 2, 6)
    with pytest.raises(NotFound):
        await store.head(KEY)
    assert len([info async for info in store.list("")]) == 3
    await store.delete_many(keys(2500))
    await store.delete_many([])
    counted = {name: stats.requests for name, stats in store.stats.operations.items()}
    assert counted == {"put": 3, "get": 1, "head": 1, "delete": 3, "list": 1}
    assert (store.stats.bytes_written, store.stats.bytes_read) == (24, 4)
    assert store.stats.operations["head"].failures == 0
    assert store.stats.cost == pytest.approx(3 * 5e-6 + 2 * 4e-7 + 5e-6)
    store.stats.prices = FREE
    assert store.stats.cost == 0


async def test_what_was_at_hand_is_counted_and_what_was_not_is_not() -> None:
    class Near(MemoryStore):
        @property
        def at_hand(self) -> Any:
            return self

        def get_now(self, key: ObjectKey, start: int, end: int) -> bytearray | None:
            return bytearray(end - start) if end <= 8 else None

    store = MeteredStore(Near())
    decorated = retrying(LimitedStore(store, 1))
    assert decorated.at_hand is not None
    assert decorated.at_hand.get_now(KEY, 2, 6) == bytes(4)
    assert decorated.at_hand.get_now(KEY, 2, 9) is None
    counted = store.stats.operations["get"]
    assert (counted.requests, counted.bytes) == (1, 4)
    assert FaultyStore(Near(), random.Random(1)).at_hand is None


@pytest.mark.parametrize("far", [MemoryStore(), FaultyStore(MemoryStore(), random.Random(1))])
async def test_decorators_have_nothing_at_hand_if_their_store_has_not(
    far: ObjectStore,
) -> None:
    assert retrying(LimitedStore(MeteredStore(far), 1)).at_hand is None


async def test_what_was_put_at_once_is_counted_and_a_store_that_rests_is_not_asked() -> None:
    class Near(MemoryStore):
        @property
        def at_hand(self) -> Any:
            return self

        def put_now(self, key: ObjectKey, data: Payload) -> bool:
            return size_of(data) <= 4

        def get_now(self, key: ObjectKey, start: int, end: int) -> bytearray | None:
            return None

    store = MeteredStore(Near())
    decorated = retrying(LimitedStore(store, 1))
    assert decorated.at_hand is not None
    assert decorated.at_hand.put_now(KEY, [b"12", b"34"])
    assert not decorated.at_hand.put_now(KEY, b"12345")
    counted = store.stats.operations["put"]
    assert (counted.requests, counted.bytes) == (1, 4)
    decorated.budget.throttled(decorated._clock.monotonic() + 60, 1)
    assert not decorated.at_hand.put_now(KEY, b"1")
    assert counted.requests == 1


async def test_failed_attempts_are_counted_each() -> None:
    stats = StoreStats()
    inner = Scripted(error(NOT_DONE, throttled=True), error(AMBIGUOUS))
    await retrying(MeteredStore(inner, stats)).put(KEY, b"data")
    put = stats.operations["put"]
    assert (put.requests, put.failures, put.throttled, put.bytes) == (3, 2, 1, 4)


async def test_counts_are_shown_as_metrics() -> None:
    metrics = Metrics()
    store = MeteredStore(MemoryStore())
    metrics.register(StoreCollector(store.stats))
    await store.put(KEY, b"12345")
    shown = metrics.exposition().decode()
    assert 'skylog_objects_requests_total{operation="put"} 1.0' in shown
    assert 'skylog_objects_bytes_total{operation="put"} 5.0' in shown
    assert 'skylog_objects_failures_total{operation="get"} 0.0' in shown
    assert "skylog_objects_cost_dollars_total 5e-06" in shown


async def test_pages_of_a_listing_are_counted() -> None:
    store = MeteredStore(MemoryStore())
    for key in keys(2001):
        await store.put(key, b"")
    assert len([info async for info in store.list("")]) == 2001
    assert store.stats.operations["list"].requests == 3


async def test_closing_reaches_the_innermost_store() -> None:
    inner = Scripted()
    limited = LimitedStore(MeteredStore(inner), 1)
    await FaultyStore(retrying(limited), random.Random(1)).close()
    assert inner.calls == -1
    assert set(StoreStats().operations) == set(OPERATIONS)


@pytest.mark.parametrize(
    ("fault", "kind", "done"),
    [
        ("before", NOT_DONE, False),
        ("unclear", AMBIGUOUS, False),
        ("after", AMBIGUOUS, True),
        ("refused", REFUSED, False),
        ("throttled", NOT_DONE, False),
    ],
)
async def test_each_fault_does_what_it_says(fault: str, kind: Outcome, done: bool) -> None:
    inner = MemoryStore()
    store = FaultyStore(inner, random.Random(1), Faults(**{fault: 1.0}))
    with pytest.raises(ObjectError) as raised:
        await store.put(KEY, b"data")
    assert raised.value.kind is kind
    assert raised.value.throttled == (fault == "throttled")
    assert [info.key async for info in inner.list("")] == ([KEY] if done else [])
    assert store.injected == {fault: 1}


async def test_truncation_and_corruption_are_silent() -> None:
    inner = MemoryStore()
    data = bytes(range(50))
    await inner.put(KEY, data)
    cut = await FaultyStore(inner, random.Random(1), Faults(truncated=1.0)).get(KEY)
    assert len(cut) < 50
    assert data.startswith(cut)
    turned = await FaultyStore(inner, random.Random(1), Faults(corrupted=1.0)).get(KEY)
    difference = int.from_bytes(turned, "big") ^ int.from_bytes(data, "big")
    assert len(turned) == 50
    assert difference.bit_count() == 1


async def test_a_partial_delete_leaves_some() -> None:
    inner = MemoryStore()
    for key in keys(10):
        await inner.put(key, b"")
    store = FaultyStore(inner, random.Random(1), Faults(partial_delete=1.0))
    with pytest.raises(ObjectError):
        await store.delete_many(keys(10))
    left = len([info async for info in inner.list("")])
    assert 0 < left < 10


async def test_latency_stalls_and_outages() -> None:
    pauses = Pauses()
    store = FaultyStore(
        MemoryStore(), random.Random(1), Faults(latency=1.0, stall=1.0), sleep=pauses
    )
    await store.put(KEY, b"data")
    assert pauses.taken[1] == 30.0
    assert 0 <= pauses.taken[0] <= 0.2
    store.down = True
    for work in (lambda: store.put(KEY, b""), lambda: store.get(KEY), lambda: store.head(KEY)):
        with pytest.raises(ObjectError, match="down"):
            await work()
    store.down = False
    assert await store.get(KEY) == b"data"


EVERYTHING = Faults(
    before=0.1, unclear=0.1, after=0.1, throttled=0.05, truncated=0.1, partial_delete=0.1
)


async def history(seed: int) -> list[object]:
    rng = random.Random(seed)
    inner = FaultyStore(MemoryStore(), rng, EVERYTHING)
    store = retrying(inner, attempts_max=3)
    seen: list[object] = []
    held: dict[ObjectKey, set[bytes | None]] = {}
    for _ in range(120):
        key = rng.choice(keys(6))
        possible = held.setdefault(key, {None})
        operation = rng.choice(("create", "get", "delete"))
        try:
            if operation == "create":
                data = b"%d" % rng.randrange(3)
                await store.put(key, data, if_absent=True)
                assert possible & {None, data}
                held[key] = {data}
            elif operation == "delete":
                await store.delete_many([key])
                held[key] = {None}
            else:
                found = await store.get(key, 0, 1)
                assert found in possible
                held[key] = {found}
            seen.append(operation)
        except NotFound:
            assert None in possible
            held[key] = {None}
        except Exists:
            assert possible - {None}
            held[key] = possible - {None}
        except ObjectError as failure:
            seen.append(failure.kind)
            if failure.kind is AMBIGUOUS:
                held[key] = possible | ({None} if operation == "delete" else {data})
    return seen


async def test_what_errors_say_is_true_under_all_faults_at_once() -> None:
    """A model that trusts every outcome always matches the store."""
    outcomes: set[object] = set()
    for seed in range(60):
        outcomes |= set(await history(seed))
    assert {"create", "get", "delete", AMBIGUOUS} <= outcomes
    assert await history(7) == await history(7)  # the seed decides


async def test_files_are_put_again_as_a_whole() -> None:
    for kind in (NOT_DONE, AMBIGUOUS):
        inner = Scripted(error(kind), error(kind))
        await retrying(inner).put_file(KEY, [b"one", b"two"], 6)
        assert await inner.memory.get(KEY) == b"onetwo"
        assert inner.calls == 3
    inner = Scripted(error(AMBIGUOUS), error(REFUSED))
    with pytest.raises(ObjectError) as raised:
        await retrying(inner).put_file(KEY, [b"data"], 4)
    assert raised.value.kind is AMBIGUOUS


async def test_a_large_file_has_time_for_all_its_parts() -> None:
    """One request has a tenth of a second; a file of many parts takes longer than that."""

    class Slow(MemoryStore):
        async def put_file(self, key: ObjectKey, source: Source, size: int) -> None:
            await asyncio.sleep(0.3)
            await self.put(key, b"data")

    policy = {"attempt_seconds_max": 0.1, "attempts_max": 1}
    with pytest.raises(ObjectError, match="no answer within") as raised:
        await RetryingStore(Slow(), RetryPolicy(**policy)).put_file(KEY, [b"data"], 4)
    assert raised.value.kind is AMBIGUOUS
    large = 100 * 1024 * 1024
    await RetryingStore(Slow(), RetryPolicy(**policy)).put_file(KEY, [b"data"], large)


async def test_files_are_counted_and_limited_like_other_puts() -> None:
    metered = MeteredStore(MemoryStore())
    limited = LimitedStore(metered, 1)
    await asyncio.gather(*(limited.put_file(key, [b"data"], 4) for key in keys(5)))
    assert metered.stats.operations["put"].requests == 5
    assert metered.stats.bytes_written == 20


async def test_faults_come_to_files_too() -> None:
    for fault, done in (("before", False), ("unclear", False), ("after", True)):
        store = FaultyStore(MemoryStore(), random.Random(1), Faults(**{fault: 1.0}))
        with pytest.raises(ObjectError):
            await store.put_file(KEY, [b"data"], 4)
        assert store.injected[fault] == 1
        assert (len([info async for info in store._inner.list("")]) == 1) == done
