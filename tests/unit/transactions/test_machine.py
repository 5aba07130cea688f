"""The rules of a transactional id, one by one; visible ones are those of Kafka 4.3.1."""

from __future__ import annotations

from dataclasses import replace

import pytest

from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.transactions.requests import (
    AbortTimedOut,
    AddPartitions,
    Describe,
    EndTxn,
    ExpireIds,
    FindIds,
    FindPrepared,
    FindTimedOut,
    InitProducerId,
    ListFilter,
    MarkersWritten,
    Outcome,
    VerifyPartitions,
)
from skylog.transactions.state import EPOCH_MAX, State
from tests.unit.transactions.support import ID, TIMEOUT_MS, A, B, Bench

FENCED = ErrorCode.PRODUCER_FENCED
MAPPING = ErrorCode.INVALID_PRODUCER_ID_MAPPING
INVALID = ErrorCode.INVALID_TXN_STATE
CONCURRENT = ErrorCode.CONCURRENT_TRANSACTIONS
LAST_EPOCH = EPOCH_MAX - 1


@pytest.fixture
def bench() -> Bench:
    return Bench()


# InitProducerId


def test_a_new_id_begins_with_epoch_0(bench: Bench) -> None:
    assert bench.init() == Outcome(producer_id=1000, producer_epoch=0)
    assert bench.state is State.EMPTY
    assert bench.transaction.timeout_ms == TIMEOUT_MS


def test_each_producer_fences_the_one_before(bench: Bench) -> None:
    bench.init()
    assert bench.init() == Outcome(producer_id=1000, producer_epoch=1)
    assert bench.code(AddPartitions(ID, 1000, 0, frozenset({A}))) is FENCED


def test_a_new_producer_aborts_what_is_open(bench: Bench) -> None:
    bench.began(A, B)
    first = bench.init()
    assert first.error is CONCURRENT
    assert first.decided is not None
    assert first.decided.partitions == {A, B}
    assert not first.decided.commits
    assert bench.producer == (1000, 1)
    assert bench.code(InitProducerId(ID, TIMEOUT_MS)) is CONCURRENT
    bench.mark(A, B)
    assert bench.init() == Outcome(producer_id=1000, producer_epoch=2)


def test_without_version_2_fencing_raises_the_epoch_as_well() -> None:
    bench = Bench(version=1)
    bench.began(version=0)
    assert bench.init().error is CONCURRENT
    assert bench.producer == (1000, 1)
    assert bench.transaction.client_version == 0
    bench.mark(A)
    assert bench.state is State.COMPLETE_ABORT
    assert bench.init() == Outcome(producer_id=1000, producer_epoch=2)


def test_a_producer_goes_on_after_an_error(bench: Bench) -> None:
    bench.init()
    assert bench.init((1000, 0)).producer_epoch == 1
    assert bench.init((1000, 0)).producer_epoch == 1, "a retry after a lost response"
    assert bench.init((1000, 1)).producer_epoch == 2
    assert bench.code(InitProducerId(ID, TIMEOUT_MS, (1000, 0))) is FENCED
    assert bench.code(InitProducerId(ID, TIMEOUT_MS, (1001, 2))) is FENCED


def test_after_another_producer_came_a_repeated_question_is_fenced(bench: Bench) -> None:
    bench.init()
    bench.init((1000, 0))
    bench.init()
    assert bench.code(InitProducerId(ID, TIMEOUT_MS, (1000, 0))) is FENCED


def test_an_unknown_producer_may_go_on_where_the_id_is_new(bench: Bench) -> None:
    assert bench.init((55, 7)) == Outcome(producer_id=1000, producer_epoch=0)


def test_a_used_up_epoch_brings_a_new_producer_id(bench: Bench) -> None:
    bench.init()
    bench.set_epoch(LAST_EPOCH)
    assert bench.init() == Outcome(producer_id=1001, producer_epoch=0)
    assert bench.code(InitProducerId(ID, TIMEOUT_MS, (1000, LAST_EPOCH))) is FENCED


def test_a_retry_returns_the_new_producer_id_again(bench: Bench) -> None:
    bench.init()
    bench.set_epoch(LAST_EPOCH)
    assert bench.init((1000, LAST_EPOCH)) == Outcome(producer_id=1001, producer_epoch=0)
    assert bench.init((1000, LAST_EPOCH)) == Outcome(producer_id=1001, producer_epoch=0)


def test_a_used_up_epoch_and_a_producer_that_expects_another(bench: Bench) -> None:
    bench.init()
    bench.set_epoch(LAST_EPOCH)
    request = InitProducerId(ID, TIMEOUT_MS, (1000, 3))
    assert bench.code(request) is ErrorCode.UNKNOWN_SERVER_ERROR


# Partitions


def test_partitions_begin_a_transaction(bench: Bench) -> None:
    bench.init()
    bench.now_ms += 5
    bench.add(A)
    began_ms = bench.transaction.started_ms
    assert began_ms == bench.now_ms
    bench.now_ms += 5
    bench.add(B)
    assert bench.state is State.ONGOING
    assert bench.transaction.partitions == {A, B}
    assert bench.transaction.started_ms == began_ms
    written = len(bench.log)
    bench.add(A, B)
    assert len(bench.log) == written, "what is known already needs no record"


@pytest.mark.parametrize(
    ("producer", "expected"),
    [((1001, 0), MAPPING), ((1000, 1), FENCED), ((1000, -1), FENCED)],
)
def test_partitions_of_another_producer(
    bench: Bench, producer: tuple[int, int], expected: ErrorCode
) -> None:
    bench.init()
    partitions = frozenset({A})
    assert bench.code(AddPartitions(ID, *producer, partitions)) is expected
    assert bench.code(AddPartitions("other", *producer, partitions)) is MAPPING
    assert bench.code(VerifyPartitions(ID, *producer, partitions)) is expected
    assert bench.code(VerifyPartitions("other", *producer, partitions)) is MAPPING


def test_verification_tells_what_is_missing(bench: Bench) -> None:
    bench.began(A)
    assert bench.missing(A) == frozenset()
    assert bench.missing(A, B) == {B}
    bench.end()
    request = VerifyPartitions(ID, *bench.producer, frozenset({A}))
    assert bench.code(request) is CONCURRENT
    assert bench.code(replace(request, producer_epoch=0)) is FENCED


def test_while_markers_are_written_nothing_can_be_added(bench: Bench) -> None:
    bench.began(A)
    bench.end()
    # For any producer: the transaction's end may be about to change the producer id.
    assert bench.code(AddPartitions(ID, 7, 7, frozenset({B}))) is CONCURRENT


# The end, without version 2


def test_the_epoch_stays_without_version_2(bench: Bench) -> None:
    bench.began(A, version=0)
    outcome = bench.end(version=0)
    assert (outcome.producer_id, outcome.producer_epoch) == (-1, -1)
    assert bench.producer == (1000, 0)
    assert bench.state is State.PREPARE_COMMIT
    assert bench.mark(A)
    assert bench.state is State.COMPLETE_COMMIT
    assert bench.producer == (1000, 0)
    assert bench.end(version=0) == Outcome()


# (state, commit) → the response to a producer with the current epoch.
OLD_ENDS = {
    ("empty", True): INVALID,
    ("empty", False): INVALID,
    ("committed", True): ErrorCode.NONE,
    ("committed", False): INVALID,
    ("aborted", True): INVALID,
    ("aborted", False): ErrorCode.NONE,
    ("committing", True): CONCURRENT,
    ("committing", False): CONCURRENT,
    ("aborting", True): CONCURRENT,
    ("aborting", False): CONCURRENT,
}


def arrive(bench: Bench, state: str, version: int) -> None:
    match state:
        case "empty":
            bench.init()
        case "committed" | "aborted":
            bench.ended(commit=state == "committed", version=version)
        case _:
            bench.began(A, version=version)
            bench.end(commit=state == "committing", version=version)


@pytest.mark.parametrize(("state", "commit"), OLD_ENDS)
def test_ends_without_version_2(bench: Bench, state: str, commit: bool) -> None:
    arrive(bench, state, 0)
    producer = bench.producer
    assert bench.code(EndTxn(ID, *producer, commit)) is OLD_ENDS[state, commit]
    assert bench.code(EndTxn(ID, producer[0], producer[1] + 1, commit)) is FENCED
    assert bench.code(EndTxn(ID, producer[0], producer[1] - 1, commit)) is FENCED
    assert bench.code(EndTxn(ID, producer[0] + 1, producer[1], commit)) is MAPPING
    assert bench.code(EndTxn("other", *producer, commit)) is MAPPING


# The end with version 2


def test_the_end_raises_the_epoch(bench: Bench) -> None:
    bench.began(A)
    outcome = bench.end()
    assert (outcome.producer_id, outcome.producer_epoch) == (1000, 1)
    assert outcome.decided is not None
    assert outcome.decided.producer_epoch == 1, "the markers carry the new epoch"
    assert bench.mark(A)
    assert bench.producer == (1000, 1)


NONE = ErrorCode.NONE
# (state, commit) → the responses to a retry, and to a request with the current epoch.
ENDS = {
    ("empty", False): (FENCED, NONE),
    ("empty", True): (FENCED, INVALID),
    ("aborted", False): (NONE, NONE),
    ("aborted", True): (INVALID, INVALID),
    ("committed", False): (INVALID, NONE),
    ("committed", True): (NONE, INVALID),
    ("committing", False): (CONCURRENT, CONCURRENT),
    ("committing", True): (CONCURRENT, CONCURRENT),
    ("aborting", False): (CONCURRENT, CONCURRENT),
    ("aborting", True): (CONCURRENT, CONCURRENT),
}


@pytest.mark.parametrize(("state", "commit"), ENDS)
def test_ends_with_version_2(bench: Bench, state: str, commit: bool) -> None:
    arrive(bench, state, 2)
    producer_id, epoch = bench.producer
    repeated, current = ENDS[state, commit]
    written = len(bench.log)
    assert bench.code(EndTxn(ID, producer_id, epoch - 1, commit, 2)) is repeated
    assert len(bench.log) == written
    if "ing" not in state:
        assert bench.code(EndTxn(ID, producer_id, epoch + 1, commit, 2)) is FENCED
        assert bench.code(EndTxn(ID, producer_id + 1, epoch, commit, 2)) is MAPPING
    assert bench.code(EndTxn(ID, producer_id, epoch, commit, 2)) is current
    if current is NONE:
        assert bench.producer == (producer_id, epoch + 1)
        assert bench.state is State.COMPLETE_ABORT, "without partitions there are no markers"


def test_a_repeated_end_hears_the_epoch_again(bench: Bench) -> None:
    bench.began(A)
    first = bench.end()
    bench.mark(A)
    repeated = bench.run(EndTxn(ID, 1000, 0, True, 2))
    assert repeated == replace(first, decided=None)


def test_the_last_epoch_is_followed_by_a_new_producer_id(bench: Bench) -> None:
    bench.init()
    bench.set_epoch(LAST_EPOCH)
    bench.add(A)
    outcome = bench.end()
    assert (outcome.producer_id, outcome.producer_epoch) == (1001, 0)
    assert bench.producer == (1000, EPOCH_MAX), "markers are of the old one"
    bench.reload()
    assert bench.mark(A)
    assert bench.producer == (1001, 0)
    repeated = bench.run(EndTxn(ID, 1000, LAST_EPOCH, True, 2))
    assert (repeated.producer_id, repeated.producer_epoch) == (1001, 0)


def test_fencing_at_the_last_epoch_brings_a_new_producer_id_too(bench: Bench) -> None:
    bench.init()
    bench.set_epoch(LAST_EPOCH)
    bench.add(A)
    assert bench.init().error is CONCURRENT
    bench.mark(A)
    assert bench.producer == (1001, 0)
    assert bench.init() == Outcome(producer_id=1001, producer_epoch=1)


def test_the_oldest_version_has_no_room_for_newer_clients() -> None:
    bench = Bench(version=0)
    bench.began(A, version=0)
    unsupported = ErrorCode.UNSUPPORTED_VERSION
    assert bench.code(EndTxn(ID, *bench.producer, True, 2)) is unsupported
    assert bench.code(AddPartitions(ID, *bench.producer, frozenset({B}), 2)) is unsupported
    assert bench.state is State.ONGOING
    assert bench.code(EndTxn(ID, *bench.producer, True)) is NONE


def test_what_was_decided_completes_in_an_older_version(bench: Bench) -> None:
    bench.began(A)
    bench.end()
    bench.version = 0
    assert bench.mark(A)
    bench.reload()
    assert bench.state is State.COMPLETE_COMMIT


# Markers


def test_complete_when_all_partitions_have_their_markers(bench: Bench) -> None:
    bench.began(A, B)
    bench.end()
    written = len(bench.log)
    assert not bench.mark(A)
    assert bench.transaction.partitions == {B}
    assert len(bench.log) == written, "a new coordinator would write markers to both again"
    assert bench.mark(B)
    assert bench.state is State.COMPLETE_COMMIT
    assert bench.transaction.partitions == frozenset()


def test_late_news_of_markers_changes_nothing(bench: Bench) -> None:
    bench.began(A)
    bench.end()
    marked = MarkersWritten(ID, *bench.producer, frozenset({A}))
    bench.run(marked)
    bench.add(A)
    assert bench.run(marked)
    assert bench.state is State.ONGOING
    assert bench.run(replace(marked, transactional_id="other"))


@pytest.mark.parametrize("commit", [True, False])
def test_a_new_coordinator_finds_what_is_left_to_do(bench: Bench, commit: bool) -> None:
    bench.began(A, B)
    bench.end(commit=commit)
    bench.mark(A)
    bench.reload()
    [found] = bench.run(FindPrepared())
    assert found.commits is commit
    assert found.partitions == {A, B}
    bench.mark(A, B)
    bench.reload()
    assert bench.run(FindPrepared()) == []


# Time


def test_time_outs(bench: Bench) -> None:
    bench.began(A)
    bench.now_ms += TIMEOUT_MS
    assert bench.run(FindTimedOut()) == []
    early = AbortTimedOut(ID, *bench.producer)
    assert bench.run(early) == Outcome()
    bench.now_ms += 1
    [found] = bench.run(FindTimedOut())
    outcome = bench.run(AbortTimedOut(ID, found.producer_id, found.producer_epoch))
    assert outcome.decided is not None
    assert bench.state is State.PREPARE_ABORT
    assert bench.producer == (1000, 1), "the producer is fenced"
    assert bench.run(FindTimedOut()) == []
    assert bench.run(early) == Outcome(), "it is over already"


def test_what_is_decided_cannot_time_out(bench: Bench) -> None:
    bench.began(A, version=0)
    late = AbortTimedOut(ID, *bench.producer)
    bench.now_ms += TIMEOUT_MS + 1
    bench.end(version=0)
    assert bench.run(late) == Outcome()
    assert bench.state is State.PREPARE_COMMIT


def test_a_time_out_that_comes_late_ends_nothing_new(bench: Bench) -> None:
    bench.began(A)
    late = AbortTimedOut(ID, *bench.producer)
    bench.now_ms += TIMEOUT_MS + 1
    bench.end()
    bench.mark(A)
    bench.add(A)
    assert bench.run(late) == Outcome()
    assert bench.state is State.ONGOING


def test_ids_expire_unless_something_is_under_way(bench: Bench) -> None:
    bench.init()
    bench.run(InitProducerId("used", TIMEOUT_MS))
    bench.run(AddPartitions("used", 1001, 0, frozenset({A}), 2))
    bench.now_ms += bench.settings.id_expiration_ms - 1
    bench.run(ExpireIds(bench.run(FindIds())))
    assert bench.run(FindIds()) == (ID, "used")
    bench.now_ms += 1
    bench.run(ExpireIds((*bench.run(FindIds()), "unknown")))
    assert bench.run(FindIds()) == ("used",)
    bench.reload()
    assert bench.run(FindIds()) == ("used",)


# Looking


def test_describe(bench: Bench) -> None:
    bench.began(B, A, ("another", 3))
    [found, unknown] = bench.run(Describe((ID, "unknown")))
    assert found.error_code == ErrorCode.NONE
    assert (found.producer_id, found.producer_epoch) == (1000, 0)
    assert found.transaction_state == "Ongoing"
    assert found.transaction_timeout_ms == TIMEOUT_MS
    assert found.transaction_start_time_ms == bench.now_ms
    assert [(t.topic, t.partitions) for t in found.topics] == [("another", [3]), ("topic", [0, 1])]
    assert unknown.error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (ListFilter(), {ID, "idle"}),
        (ListFilter(states=frozenset({"Ongoing"})), {ID}),
        (ListFilter(states=frozenset({"Unheard"})), set()),
        (ListFilter(producer_ids=frozenset({1001})), {"idle"}),
        (ListFilter(duration_ms=4), {ID, "idle"}),
        # An id without a transaction counts from time 0, as in Kafka.
        (ListFilter(duration_ms=5), {"idle"}),
        (ListFilter(matches=lambda name: name.startswith("id")), {"idle"}),
    ],
)
def test_list(bench: Bench, wanted: ListFilter, expected: set[str]) -> None:
    bench.began(A)
    bench.run(InitProducerId("idle", TIMEOUT_MS))
    bench.now_ms += 5
    assert {found.transactional_id for found in bench.run(wanted)} == expected


def test_unknown_producers_hear_of_it(bench: Bench) -> None:
    with pytest.raises(KafkaError) as caught:
        bench.run(EndTxn("unknown", 1, 1, True, 2))
    assert caught.value.code is MAPPING
