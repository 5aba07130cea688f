"""Fetch sessions and waiting fetches, without sockets."""

from __future__ import annotations

import asyncio
import gc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skylog.kernel import limits
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.executor import InlineExecutor
from skylog.wire.messages.fetch_request import FetchPartition
from skylog.wire.messages.fetch_response import FetchResponse, PartitionData
from tests.integration.broker_client import told
from tests.unit.broker.support import NODE, StepExecutor, World, soon
from tests.unit.replication.support import state

FOREVER_MS = 10**9


# Against a model that checks every partition every time, as Kafka does


class Model:
    """KIP-227 in its simplest form."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.offsets: dict[tuple[str, int], int] = {}
        self.sent: dict[tuple[str, int], tuple[int, int]] = {}

    def update(self, wanted: dict[tuple[str, int], int], forgotten: set[tuple[str, int]]) -> None:
        self.offsets.update(wanted)
        for key in forgotten:
            self.offsets.pop(key, None)
            self.sent.pop(key, None)

    def answer(self, *, full: bool) -> dict[tuple[str, int], tuple[int, int, int, int]]:
        told = {}
        for key, offset in self.offsets.items():
            code, high_watermark, start, count = self._read(key, offset)
            news = code or count or self.sent.get(key, (-1, -1)) != (high_watermark, start)
            if full or news:
                told[key] = (code, high_watermark, start, count)
            self.sent[key] = (-1 if code else high_watermark, start)
        return told

    def _read(self, key: tuple[str, int], offset: int) -> tuple[int, int, int, int]:
        if key[0] in self.world.denied:
            return ErrorCode.TOPIC_AUTHORIZATION_FAILED, -1, -1, 0
        partition = self.world.partitions.get(key)
        if partition is None:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1, -1, 0
        log = partition.log
        if not log.log_start_offset <= offset <= log.log_end_offset:
            return ErrorCode.OFFSET_OUT_OF_RANGE, -1, -1, 0
        return 0, log.high_watermark, log.log_start_offset, log.log_end_offset - offset


def shown(answer: FetchResponse) -> dict[tuple[str, int], tuple[int, int, int, int]]:
    def count(found: PartitionData) -> int:
        return len(found.records or b"") // 69  # the size of a batch of one byte

    return {
        key: (found.error_code, found.high_watermark, found.log_start_offset, count(found))
        for key, found in told(answer).items()
    }


KEYS = [("a", 0), ("a", 1), ("b", 0), ("c", 0)]
keys = st.sampled_from(KEYS)
events = st.one_of(
    st.tuples(st.just("append"), keys),
    st.tuples(st.just("trim"), keys),
    st.tuples(st.just("create"), keys),
    st.tuples(st.just("delete"), keys),
    st.tuples(st.just("permit"), keys),
    st.tuples(
        st.just("fetch"), st.dictionaries(keys, st.integers(0, 4), max_size=3),
        st.sets(keys, max_size=2),
    ),
)  # fmt: skip


def happens(world: World, kind: str, key: tuple[str, int]) -> None:
    partition = world.partitions.get(key)
    if kind == "create" and partition is None:
        world.create(*key)
    elif kind == "permit":
        world.denied ^= {key[0]}
        world.sessions.look_again()
    elif partition is None:
        return
    elif kind == "append":
        world.append(*key)
    elif kind == "trim":
        partition.delete_records_before(partition.log.high_watermark)
    elif kind == "delete":
        world.delete(*key)


@settings(max_examples=150, deadline=None)
@given(st.lists(events, max_size=30))
def test_a_session_tells_what_one_that_looks_at_everything_would(history: list[tuple]) -> None:  # type: ignore[type-arg]
    world = World()
    for key in KEYS[:3]:
        world.create(*key)
    model = Model(world)
    model.update(dict.fromkeys(KEYS, 0), set())
    answer = world.fetch(*((*key, 0) for key in KEYS), session=(0, 0))
    assert shown(answer) == model.answer(full=True)
    session, epoch = answer.session_id, 1
    for kind, *details in history:
        if kind != "fetch":
            happens(world, kind, details[0])
            continue
        wanted, forgotten = details
        if not (model.offsets.keys() | wanted.keys()) - forgotten:
            continue  # ends the session: another test
        model.update(wanted, forgotten)
        answer = world.fetch(
            *((*key, offset) for key, offset in wanted.items()),
            session=(session, epoch),
            forget=forgotten,
        )
        epoch += 1
        assert answer.session_id == session
        assert shown(answer) == model.answer(full=False)
    world.sessions.close(session)
    assert world.watchers == 0


@settings(max_examples=50, deadline=None)
@given(st.integers(2, 6), st.integers(0, 300), st.lists(st.integers(0, 5), max_size=20))
def test_no_partition_waits_for_more_than_one_round_of_others(
    count: int, max_bytes: int, appends: list[int]
) -> None:
    world = World()
    offsets = [0] * count
    for index in range(count):
        world.create("t", index)
        world.append("t", index)
    answer = world.fetch(*(("t", i, 0) for i in range(count)), session=(0, 0), max_bytes=max_bytes)
    session = answer.session_id
    hungry = [0] * count
    for epoch in range(1, 5 * count):
        moved = []
        for (_, index), found in told(answer).items():
            if found.records:
                hungry[index] = 0
                offsets[index] += len(found.records) // 69
                moved.append(("t", index, offsets[index]))
        for index in appends[epoch : epoch + 1]:
            world.append("t", index % count)
        answer = world.fetch(*moved, session=(session, epoch), max_bytes=max_bytes)
        for index in range(count):
            log = world.partitions["t", index].log
            hungry[index] = hungry[index] + 1 if log.log_end_offset > offsets[index] else 0
        assert max(hungry) <= count + 1


def test_a_quiet_session_looks_at_nothing() -> None:
    world = World()
    for index in range(100):
        world.create("t", index)
    answer = world.fetch(*(("t", index, 0) for index in range(100)), session=(0, 0))
    session = world.sessions._sessions[answer.session_id]
    assert len(session.ready) == 0
    world.append("t", 42)
    assert [entry.index for entry in session.ready] == [42]


# Waiting


async def test_what_comes_before_the_wait_has_begun_is_noticed() -> None:
    world = World()
    world.create("t")
    for session in ((0, 0), (0, -1)):
        answer = world.begin(("t", 0, 0), wait_ms=FOREVER_MS, session=session)
        world.append("t")  # between the check and the first step of the wait
        assert told(await soon(answer))["t", 0].records
        world.delete("t")
        world.create("t")


async def test_a_wait_counts_bytes_over_all_partitions() -> None:
    world = World()
    world.create("t", 0)
    world.create("t", 1)
    waiting = asyncio.ensure_future(
        world.begin(("t", 0, 0), ("t", 1, 0), wait_ms=FOREVER_MS, min_bytes=3 * 69)
    )
    for index in (0, 1):
        world.append("t", index)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert not waiting.done()
    world.append("t", 0)
    assert len(told(await soon(waiting))) == 2
    assert world.watchers == 0


async def test_a_wait_ends_when_a_partition_is_lost() -> None:
    world = World()
    world.create("t", 0)
    world.create("t", 1)
    waiting = world.begin(("t", 0, 0), ("t", 1, 0), wait_ms=FOREVER_MS)
    world.delete("t", 1)
    found = told(await soon(waiting))
    assert found["t", 1].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


async def test_what_was_refused_before_does_not_end_a_wait() -> None:
    world = World()
    world.create("t")
    world.denied.add("secret")
    waiting = asyncio.ensure_future(
        world.begin(("secret", 0, 0), ("t", 0, 0), wait_ms=FOREVER_MS, min_bytes=2 * 69)
    )
    await asyncio.sleep(0)
    world.append("t")
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert not waiting.done()
    world.append("t")
    found = told(await soon(waiting))
    assert found["secret", 0].error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED


async def test_a_fetch_whose_client_has_gone_watches_nothing() -> None:
    world = World()
    world.create("t")
    waiting = asyncio.ensure_future(world.begin(("t", 0, 0), wait_ms=FOREVER_MS))
    await asyncio.sleep(0)
    assert world.watchers == 1
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    assert world.watchers == 0


async def test_a_later_request_ends_the_wait_of_an_earlier_one() -> None:
    world = World()
    world.create("t")
    session = world.fetch(("t", 0, 0), session=(0, 0)).session_id
    for started in (False, True):
        epoch = world.sessions._sessions[session].epoch
        first = asyncio.ensure_future(world.begin(session=(session, epoch), wait_ms=FOREVER_MS))
        if started:
            await asyncio.sleep(0)
        second = asyncio.ensure_future(
            world.begin(session=(session, epoch + 1), wait_ms=FOREVER_MS)
        )
        assert (await soon(first)).error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH
        # The earlier one did not cancel the wake-up of the later one.
        world.append("t")
        assert told(await soon(second))["t", 0].records
        world.fetch(("t", 0, world.partitions["t", 0].log.log_end_offset),
                    session=(session, epoch + 2))  # fmt: skip


async def test_closing_a_session_ends_its_wait() -> None:
    world = World()
    world.create("t")
    session = world.fetch(("t", 0, 0), session=(0, 0)).session_id
    waiting = asyncio.ensure_future(world.begin(session=(session, 1), wait_ms=FOREVER_MS))
    await asyncio.sleep(0)
    world.sessions.close(session)
    assert told(await soon(waiting)) == {}
    assert world.watchers == 0


# Reads from a disk


async def test_what_moves_during_a_read_is_not_forgotten() -> None:
    world = World()
    world.create("cold", 0).log.cold = True  # type: ignore[attr-defined]
    world.create("warm", 0)
    world.append("cold")
    executor = world.executor = StepExecutor()
    answer = asyncio.ensure_future(
        world.begin(("warm", 0, 0), ("cold", 0, 0), session=(0, 0), wait_ms=FOREVER_MS)
    )
    await soon(executor.entered.wait())
    world.append("warm")  # after the check, before the response is built
    executor.go_on.set()
    first = await soon(answer)
    assert told(first)["warm", 0].high_watermark == 0
    again = await soon(world.begin(session=(first.session_id, 1), wait_ms=FOREVER_MS))
    assert told(again)["warm", 0].records


async def test_cold_partitions_get_their_part_of_the_budget_in_order() -> None:
    world = World()
    for topic in ("a", "b", "c"):
        world.create(topic)
        for _ in range(3):
            world.append(topic)
    size = len(told(world.fetch(("a", 0, 0)))["a", 0].records) // 3
    for topic in ("a", "c"):
        world.partitions[topic, 0].log.cold = True  # type: ignore[attr-defined]
    world.executor = InlineExecutor()
    parts = [(topic, 0, 0) for topic in ("a", "b", "c")]
    for batches, expected in ((9, [3, 3, 3]), (7, [3, 3, 1]), (4, [3, 1, 0]), (0, [1, 0, 0])):
        found = told(await soon(world.begin(*parts, max_bytes=batches * size)))
        assert [(topic, len(one.records) // size) for (topic, _), one in found.items()] == list(
            zip("abc", expected, strict=True)
        )


async def test_partitions_behind_a_cold_one_are_checked_again_when_they_are_read() -> None:
    world = World()
    names = ("cold", "here", "deleted", "moved")
    for topic in names:
        world.create(topic)
        world.append(topic)
    world.partitions["cold", 0].log.cold = True  # type: ignore[attr-defined]
    executor = world.executor = StepExecutor()
    parts = [(topic, 0, 0) for topic in names]
    answer = asyncio.ensure_future(world.begin(*parts, epoch=0))
    await soon(executor.entered.wait())
    world.delete("deleted")
    world.partitions["moved", 0].update(state(7, 1, (NODE, 7), (7,)))
    executor.go_on.set()
    found = told(await soon(answer))
    assert [(one.error_code, bool(one.records)) for one in found.values()] == [
        (ErrorCode.NONE, True),
        (ErrorCode.NONE, True),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, False),
        (ErrorCode.FENCED_LEADER_EPOCH, False),
    ]


async def test_a_fetch_that_fails_behind_a_cold_one_is_let_go_without_the_collector() -> None:
    world = World()
    for topic in ("cold", "short"):
        world.create(topic)
        world.append(topic)
    world.partitions["cold", 0].log.cold = True  # type: ignore[attr-defined]
    world.executor = InlineExecutor()
    gc.collect()
    gc.disable()
    try:
        # Other tests of this process may have left some that nothing can collect.
        before = [one for one in gc.get_objects() if isinstance(one, FetchPartition)]
        found = told(await soon(world.begin(("cold", 0, 0), ("short", 0, 9))))
        assert found["short", 0].error_code == ErrorCode.OFFSET_OUT_OF_RANGE
        known = {id(one) for one in before}
        after = (one for one in gc.get_objects() if isinstance(one, FetchPartition))
        assert all(id(one) in known for one in after)
    finally:
        gc.enable()


async def test_a_topic_deleted_during_a_read() -> None:
    world = World()
    world.create("t").log.cold = True  # type: ignore[attr-defined]
    executor = world.executor = StepExecutor()
    for session in ((0, 0), (0, -1)):
        partition = world.partitions["t", 0]
        answer = asyncio.ensure_future(world.begin(("t", 0, 0), session=session, wait_ms=10**6))
        await soon(executor.entered.wait())
        world.delete("t")
        executor.go_on.set()
        found = told(await soon(answer))
        assert found["t", 0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if session[1] < 0:
            assert not partition._watchers
        world.create("t").log.cold = True  # type: ignore[attr-defined]


async def test_a_read_that_fails_unexpectedly_leaves_nothing_behind() -> None:
    world = World()
    world.create("t").log.cold = True  # type: ignore[attr-defined]

    class Broken:
        async def run(self, work: object) -> None:
            raise RuntimeError("a bug")

    world.executor = Broken()
    with pytest.raises(RuntimeError):
        await world.begin(("t", 0, 0))
    assert world.watchers == 0


# Keeping sessions


def test_sessions_are_bounded_and_the_idle_make_room() -> None:
    world = World(slots_max=2)
    world.create("t")
    first, second = (world.fetch(("t", 0, 0), session=(0, 0)).session_id for _ in range(2))
    assert world.fetch(("t", 0, 0), session=(0, 0)).session_id == 0
    world.clock.advance(100_000)
    world.fetch(session=(first, 1))
    world.clock.advance(60_000)
    third = world.fetch(("t", 0, 0), session=(0, 0)).session_id
    assert third not in (0, first, second)
    assert world.fetch(session=(first, 2)).error_code == 0
    with pytest.raises(KafkaError) as refused:
        world.fetch(session=(second, 1))
    assert refused.value.code is ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert len(world.sessions) == 2
    assert world.watchers == 2


def test_partitions_of_all_sessions_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "FETCH_SESSION_PARTITIONS_MAX", 3)
    world = World()
    for index in range(4):
        world.create("t", index)
    first = world.fetch(("t", 0, 0), ("t", 1, 0), session=(0, 0)).session_id
    assert first
    assert world.fetch(("t", 2, 0), ("t", 3, 0), session=(0, 0)).session_id == 0
    assert world.watchers == 2
    # A session that grows too large is answered and closed.
    assert world.fetch(("t", 2, 0), ("t", 3, 0), session=(first, 1)).session_id == 0
    assert (len(world.sessions), world.watchers) == (0, 0)
    assert world.fetch(*(("t", index, 0) for index in range(3)), session=(0, 0)).session_id


def test_epochs_begin_again_after_the_last() -> None:
    world = World()
    world.create("t")
    session = world.fetch(("t", 0, 0), session=(0, 0)).session_id
    world.sessions._sessions[session].epoch = 2**31 - 1
    assert world.fetch(session=(session, 2**31 - 1)).error_code == 0
    assert world.fetch(session=(session, 1)).error_code == 0


def test_a_throttled_full_fetch_opens_no_session() -> None:
    world = World()
    world.create("t")
    world.append("t", value=bytes(1000))
    world.quotas.update({"client-id": "test"}, "consumer_byte_rate", 50.0)
    answers = [world.fetch(("t", 0, 0), session=(0, 0)) for _ in range(2)]
    assert [bool(told(answer)) for answer in answers] == [False, False]
    assert [answer.session_id for answer in answers] == [0, 0]
    assert (len(world.sessions), world.watchers) == (0, 0)


def test_a_throttled_session_loses_nothing() -> None:
    world = World()
    world.create("t")
    session = world.fetch(("t", 0, 0), session=(0, 0)).session_id
    world.append("t", value=bytes(1000))
    world.quotas.update({"client-id": "test"}, "consumer_byte_rate", 50.0)
    throttled = world.fetch(session=(session, 1))
    assert (throttled.session_id, told(throttled)) == (session, {})
    world.quotas.update({"client-id": "test"}, "consumer_byte_rate", None)
    assert told(world.fetch(session=(session, 2)))["t", 0].records
