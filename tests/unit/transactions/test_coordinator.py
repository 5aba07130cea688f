"""The coordinator carries out its decisions, whatever fails meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.transactions.coordinator import TransactionCoordinator
from skylog.transactions.requests import ListFilter, Outcome
from tests.unit.transactions.shell_support import (
    NODE,
    OTHER,
    TIMEOUT_MS,
    Marker,
    Shell,
    turn,
)

ID = "transactional"
A, B = ("topic", 0), ("topic", 1)
NONE, CONCURRENT = ErrorCode.NONE, ErrorCode.CONCURRENT_TRANSACTIONS


@pytest.fixture
async def shell() -> AsyncIterator[Shell]:
    shell = Shell()
    await shell.lead()
    yield shell
    shell.partitions.open.set()
    await shell.coordinator.close()


async def state(shell: Shell) -> str:
    return (await shell.coordinator.describe(ID)).transaction_state


async def begin(shell: Shell, *partitions: tuple[str, int]) -> Outcome:
    outcome = await shell.coordinator.init_producer_id(ID, TIMEOUT_MS, None)
    assert outcome.error is NONE
    producer = (outcome.producer_id, outcome.producer_epoch)
    assert await shell.coordinator.add_partitions(ID, *producer, partitions or [A], 2) is NONE
    return outcome


async def end(shell: Shell, producer: Outcome, *, commit: bool = True) -> Outcome:
    return await shell.coordinator.end_txn(
        ID, producer.producer_id, producer.producer_epoch, commit=commit, client_version=2
    )


async def test_every_partition_gets_its_marker(shell: Shell) -> None:
    outcome = await end(shell, await begin(shell, A, B))
    assert (outcome.error, outcome.producer_epoch) == (NONE, 1)
    await turn()
    assert set(shell.partitions.markers) == {
        Marker(A, 1000, 1, True, 1, 2),
        Marker(B, 1000, 1, True, 1, 2),
    }
    assert len(shell.partitions.requests) == 1
    assert await state(shell) == "CompleteCommit"


@pytest.mark.parametrize(("count", "sent"), [(2, 1), (100, 0)])
async def test_a_producer_does_not_wait_for_many_markers(
    shell: Shell, count: int, sent: int
) -> None:
    outcome = await end(shell, await begin(shell, *(("topic", index) for index in range(count))))
    assert outcome.error is NONE
    assert len(shell.partitions.requests) == sent
    await turn()
    assert len(shell.partitions.requests) == 1
    assert len(shell.partitions.markers) == count
    assert await state(shell) == "CompleteCommit"


async def test_no_marker_before_the_decision_is_committed() -> None:
    shell = Shell(lagging=True)
    await shell.lead()
    shell.log.commit()
    starting = asyncio.ensure_future(begin(shell))
    for _ in range(3):
        await turn()
        shell.log.commit()
    ending = asyncio.ensure_future(end(shell, await starting))
    await turn()
    assert not ending.done()
    assert not shell.partitions.requests
    shell.log.commit()
    assert (await ending).error is NONE
    await turn()
    assert [marker.partition for marker in shell.partitions.markers] == [A]
    await shell.coordinator.close()


@pytest.mark.parametrize("lost", ["request", "response"])
async def test_a_leader_that_does_not_answer_is_tried_again(shell: Shell, lost: str) -> None:
    shell.partitions.lost = lost
    await end(shell, await begin(shell))
    for _ in range(5):
        await shell.later()
    assert await state(shell) == "PrepareCommit"
    shell.partitions.lost = ""
    await shell.later()
    assert await state(shell) == "CompleteCommit"
    assert len({marker.epoch for marker in shell.partitions.markers}) == 1


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.UNKNOWN_SERVER_ERROR,
        ErrorCode.TRANSACTION_COORDINATOR_FENCED,
    ],
)
async def test_only_the_partition_that_fails_is_tried_again(shell: Shell, code: ErrorCode) -> None:
    shell.partitions.errors[B] = code
    await end(shell, await begin(shell, A, B))
    for _ in range(3):
        await shell.later()
    assert [marker.partition for marker in shell.partitions.markers] == [A]
    assert await state(shell) == "PrepareCommit"
    del shell.partitions.errors[B]
    await shell.later()
    assert await state(shell) == "CompleteCommit"


async def test_a_partition_that_knows_a_later_epoch_needs_no_marker(shell: Shell) -> None:
    shell.partitions.errors[A] = ErrorCode.INVALID_PRODUCER_EPOCH
    await end(shell, await begin(shell))
    await turn()
    assert await state(shell) == "CompleteCommit"


async def test_deleted_topics_need_no_marker(shell: Shell) -> None:
    producer = await begin(shell, A, B)
    shell.leaders[A] = None
    await end(shell, producer)
    await turn()
    assert [marker.partition for marker in shell.partitions.markers] == [B]
    assert await state(shell) == "CompleteCommit"


async def test_a_partition_without_a_leader_is_waited_for(shell: Shell) -> None:
    producer = await begin(shell)
    shell.leaders[A] = -1
    await end(shell, producer)
    await shell.later()
    assert not shell.partitions.requests
    shell.leaders[A] = OTHER
    await shell.later()
    assert [node for node, _ in shell.partitions.requests] == [OTHER]
    assert await state(shell) == "CompleteCommit"


async def test_each_leader_gets_its_own_request(shell: Shell) -> None:
    producer = await begin(shell, A, B)
    shell.leaders[B] = OTHER
    await end(shell, producer)
    await turn()
    assert sorted(node for node, _ in shell.partitions.requests) == [NODE, OTHER]


async def test_decisions_that_wait_for_a_node_go_in_one_request(shell: Shell) -> None:
    shell.partitions.open.clear()
    coordinator = shell.coordinator
    for name in "abcde":
        producer = await coordinator.init_producer_id(name, TIMEOUT_MS, None)
        asked = (name, producer.producer_id, producer.producer_epoch)
        assert await coordinator.add_partitions(*asked, [A], 2) is NONE
        ended = await coordinator.end_txn(*asked, commit=True, client_version=2)
        assert ended.error is NONE
        await turn()
    shell.partitions.open.set()
    await turn()
    assert [len(request.markers) for _, request in shell.partitions.requests] == [1, 4]
    assert {m.producer_id for m in shell.partitions.markers} == {1000, 1001, 1002, 1003, 1004}


async def test_a_cancelled_caller_does_not_cancel_the_decision(shell: Shell) -> None:
    producer = await begin(shell)
    ending = asyncio.ensure_future(end(shell, producer))
    await asyncio.sleep(0)
    ending.cancel()
    await turn()
    assert ending.cancelled()
    assert await state(shell) == "CompleteCommit"


@pytest.mark.parametrize("commit", [True, False])
async def test_the_next_coordinator_carries_on(shell: Shell, commit: bool) -> None:
    shell.partitions.errors[B] = ErrorCode.NOT_LEADER_OR_FOLLOWER
    await end(shell, await begin(shell, A, B), commit=commit)
    await turn()
    await shell.fail_over()
    assert [m.coordinator_epoch for m in shell.partitions.markers] == [1, 2], "A once more"
    shell.partitions.errors.clear()
    await shell.later()
    assert await state(shell) == ("CompleteCommit" if commit else "CompleteAbort")
    assert {marker.commit for marker in shell.partitions.markers} == {commit}


async def test_a_coordinator_that_resigned_stops(shell: Shell) -> None:
    shell.partitions.lost = "request"
    await end(shell, await begin(shell))
    await turn()
    shell.coordinator.partition_resigned(0)
    sent = len(shell.partitions.requests)
    await shell.later()
    await shell.later()
    assert len(shell.partitions.requests) == sent
    outcome = await shell.coordinator.init_producer_id(ID, TIMEOUT_MS, None)
    assert outcome.error is ErrorCode.NOT_COORDINATOR


async def test_a_log_that_fails_is_loaded_again(shell: Shell) -> None:
    shell.partitions.errors[B] = ErrorCode.NOT_LEADER_OR_FOLLOWER
    await end(shell, await begin(shell, A, B))
    await turn()
    shell.log.failure = OSError("disk")
    other = await shell.coordinator.init_producer_id("other", TIMEOUT_MS, None)
    assert other.error in (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE)
    await shell.later(1_000)
    shell.partitions.errors.clear()
    await shell.later()
    await shell.later()
    assert await state(shell) == "CompleteCommit"


async def test_what_is_left_of_an_earlier_try_spares_the_next_transaction(shell: Shell) -> None:
    """Without version 2 the next transaction has the same epoch: an extra marker would end it."""
    coordinator = shell.coordinator
    shell.partitions.lost = "response"
    producer = await begin(shell)
    asked = (ID, producer.producer_id, producer.producer_epoch)
    assert (await coordinator.end_txn(*asked, commit=True, client_version=0)).error is NONE
    await turn()  # the response is lost: the marker is sent again later
    shell.log.failure = OSError("disk")
    await coordinator.init_producer_id("other", TIMEOUT_MS, None)
    shell.partitions.lost = ""
    shell.coordinator._run(shell.coordinator._load(shell.coordinator._led[0]))
    await turn()
    assert await state(shell) == "CompleteCommit"
    assert await coordinator.add_partitions(*asked, [A], 0) is NONE
    sent = len(shell.partitions.markers)
    await shell.later()
    await shell.later()
    assert len(shell.partitions.markers) == sent
    assert await state(shell) == "Ongoing"


async def test_a_marker_that_could_not_be_noted_is_noted_later(shell: Shell) -> None:
    producer = await begin(shell)
    shell.partitions.open.clear()
    await end(shell, producer)
    shell.log.failure = OSError("disk")
    shell.partitions.open.set()
    await turn()
    await shell.later(1_000)
    await shell.later()
    assert await state(shell) == "CompleteCommit"


# Writes of version 2


async def test_a_write_waits_for_the_end_of_the_transaction_before(shell: Shell) -> None:
    producer = await begin(shell)
    shell.partitions.open.clear()
    await end(shell, producer)
    adding = asyncio.ensure_future(shell.coordinator.add(ID, 1000, 1, [A]))
    await turn()
    assert not adding.done()
    shell.partitions.open.set()
    assert await adding == {A: NONE}


async def test_a_client_is_told_at_once_that_it_has_to_wait(shell: Shell) -> None:
    producer = await begin(shell)
    shell.partitions.open.clear()
    await end(shell, producer)
    assert await shell.coordinator.add_partitions(ID, 1000, 1, [A], 2) is CONCURRENT


async def test_verification(shell: Shell) -> None:
    await begin(shell, A)
    verify = shell.coordinator.verify
    assert await verify(ID, 1000, 0, [A, B]) == {A: NONE, B: ErrorCode.TRANSACTION_ABORTABLE}
    assert await verify(ID, 1000, 1, [A]) == {A: ErrorCode.PRODUCER_FENCED}
    assert await verify("", 1000, 0, [A]) == {A: ErrorCode.INVALID_REQUEST}


# Passes


async def test_transactions_time_out(shell: Shell) -> None:
    await begin(shell)
    await shell.coordinator.abort_timed_out()
    assert await state(shell) == "Ongoing"
    shell.clock.advance(TIMEOUT_MS + 1)
    await shell.coordinator.abort_timed_out()
    await turn()
    assert await state(shell) == "CompleteAbort"
    assert [marker.commit for marker in shell.partitions.markers] == [False]


async def test_ids_expire(shell: Shell) -> None:
    await shell.coordinator.init_producer_id(ID, TIMEOUT_MS, None)
    shell.clock.advance(604_800_000)
    await shell.coordinator.expire_ids()
    found = await shell.coordinator.describe(ID)
    assert found.error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND


# Refusals


@pytest.mark.parametrize("timeout_ms", [0, -1, 900_001])
async def test_time_outs_that_no_producer_may_ask_for(shell: Shell, timeout_ms: int) -> None:
    outcome = await shell.coordinator.init_producer_id(ID, timeout_ms, None)
    assert outcome.error is ErrorCode.INVALID_TRANSACTION_TIMEOUT


async def test_an_id_must_have_a_name(shell: Shell) -> None:
    coordinator: TransactionCoordinator = shell.coordinator
    invalid = ErrorCode.INVALID_REQUEST
    assert (await coordinator.init_producer_id("", TIMEOUT_MS, None)).error is invalid
    ended = await coordinator.end_txn("", 1, 1, commit=True, client_version=2)
    assert ended.error is invalid
    assert await coordinator.add_partitions("", 1, 1, [A], 2) is invalid
    assert (await coordinator.describe("")).error_code == invalid


async def test_records_that_are_too_large(shell: Shell) -> None:
    await begin(shell)
    shell.log.failure = KafkaError(ErrorCode.MESSAGE_TOO_LARGE)
    code = await shell.coordinator.add_partitions(ID, 1000, 0, [B], 2)
    assert code is ErrorCode.UNKNOWN_SERVER_ERROR
    assert await state(shell) == "Ongoing"


async def test_nothing_is_listed_while_a_partition_is_loaded() -> None:
    shell = Shell()
    assert await shell.coordinator.list_transactions(ListFilter()) == []
    shell.coordinator.partition_led(0, shell.log, 1)
    with pytest.raises(KafkaError) as caught:
        await shell.coordinator.list_transactions(ListFilter())
    assert caught.value.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    await shell.coordinator.loaded()
    await begin(shell)
    [found] = await shell.coordinator.list_transactions(ListFilter())
    assert (found.transactional_id, found.transaction_state) == (ID, "Ongoing")
    await shell.coordinator.close()
