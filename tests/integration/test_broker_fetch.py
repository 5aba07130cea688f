"""Fetch as a client sees it, over a socket."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from skylog.kernel.errors import ErrorCode
from skylog.kernel.ids import Uuid
from skylog.testing import Broker
from skylog.wire.apis import ApiKey
from skylog.wire.messages.delete_records_request import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from skylog.wire.messages.fetch_request import ReplicaState
from tests.integration.broker_client import (
    FETCH_BY_NAME,
    Client,
    batch,
    fetch_request,
    told,
    values,
)
from tests.integration.wire_client import frame, newest, request_bytes

# Longer than any test: a test that waits for it has failed.
FOREVER_MS = 1_000_000


@pytest.fixture
def other(broker: Broker) -> Iterator[Client]:
    with Client(broker.bootstrap) as client:
        yield client


def begin(client: Client, *parts: tuple[str, int, int], **options: object) -> None:
    """Send a fetch without waiting for its response."""
    request = fetch_request(parts, **{"wait_ms": FOREVER_MS, **options})  # type: ignore[arg-type]
    client.send(frame(request_bytes(request, FETCH_BY_NAME, 77)))


def end(client: Client) -> dict[tuple[str, int], object]:
    return told(client.answer(ApiKey.FETCH, FETCH_BY_NAME, 77))


def parked(broker: Broker, topic: str, index: int = 0) -> None:
    """Wait until a fetch waits for this partition."""
    partition = broker.node._services.replicas.get(topic, index)
    assert partition is not None
    while not partition._watchers:  # nothing in the broker's thread can be awaited from here
        time.sleep(0.001)


# One partition


def test_an_empty_answer_has_empty_records(client: Client) -> None:
    client.create("empty")
    answer = client.fetch("empty")
    assert (answer.error_code, answer.high_watermark, answer.log_start_offset) == (0, 0, 0)
    assert answer.records is not None
    assert bytes(answer.records) == b""
    assert answer.aborted_transactions is None


def test_a_first_batch_beyond_all_limits_comes_whole(client: Client) -> None:
    client.create("large")
    client.produce("large", bytes(5000))
    client.produce("large", b"second")
    answer = client.fetch("large", max_bytes=10, partition_max_bytes=10)
    assert values(answer.records) == [bytes(5000)]


def test_an_offset_inside_a_batch_gets_the_batch(client: Client) -> None:
    client.create("inside")
    client.produce("inside", b"0", b"1", b"2")
    assert values(client.fetch("inside", offset=1).records) == [b"0", b"1", b"2"]


def test_offsets_beyond_the_log_are_out_of_range_at_once(client: Client) -> None:
    client.create("range")
    client.produce("range", b"x")
    for offset in (-1, 2, 1_000_000):
        answer = client.fetch("range", offset=offset, wait_ms=FOREVER_MS)
        assert answer.error_code == ErrorCode.OFFSET_OUT_OF_RANGE
        assert (answer.high_watermark, answer.log_start_offset) == (-1, -1)
    assert client.fetch("range", offset=1).error_code == 0


def test_records_that_were_deleted_are_out_of_range(client: Client) -> None:
    client.create("deleted")
    for _ in range(4):
        client.produce("deleted", b"x")
    wanted = DeleteRecordsTopic("deleted", [DeleteRecordsPartition(0, 2)])
    answer = client.ask(DeleteRecordsRequest([wanted], 5000)).topics[0].partitions[0]
    assert (answer.error_code, answer.low_watermark) == (0, 2)
    assert client.fetch("deleted", offset=1).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    found = client.fetch("deleted", offset=2)
    assert found.log_start_offset == 2
    assert len(values(found.records)) == 2


def test_epochs_of_leaders_are_checked(client: Client) -> None:
    client.create("epochs")
    assert client.fetch("epochs", epoch=0).error_code == 0
    later = client.fetch("epochs", epoch=7, wait_ms=FOREVER_MS)
    assert later.error_code == ErrorCode.UNKNOWN_LEADER_EPOCH


def test_a_diverging_fetch_learns_where(client: Client) -> None:
    client.create("diverging")
    client.produce("diverging", b"x")
    answer = client.fetch("diverging", offset=1, last_epoch=0)
    assert answer.diverging_epoch.epoch == -1
    answer = client.fetch("diverging", offset=5, last_epoch=0, wait_ms=FOREVER_MS)
    assert (answer.diverging_epoch.epoch, answer.diverging_epoch.end_offset) == (0, 1)
    # Nothing is known of an epoch that never existed.
    answer = client.fetch("diverging", offset=1, last_epoch=9, wait_ms=FOREVER_MS)
    assert answer.error_code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_committed_reads_list_no_aborted_transactions(client: Client) -> None:
    client.create("committed")
    client.produce("committed", b"x")
    answer = client.fetch("committed", isolation_level=1)
    assert values(answer.records) == [b"x"]
    assert (answer.last_stable_offset, answer.aborted_transactions) == (1, [])


def test_only_replicas_fetch_as_replicas(client: Client) -> None:
    client.create("replicas")
    options = {"wait_ms": FOREVER_MS, "version": newest(type(fetch_request([])))}
    topic_id = client.metadata("replicas").topics[0].topic_id
    for epoch, code in (
        (-1, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (0, ErrorCode.UNKNOWN_LEADER_EPOCH),
    ):
        answer = client.fetch_all(
            (topic_id, 0, 0), replica_state=ReplicaState(5, -1), epoch=epoch, **options
        )
        assert answer.responses[0].partitions[0].error_code == code


# Several partitions


def test_the_first_gets_its_batch_and_the_others_what_is_left(client: Client) -> None:
    client.create("shares", partitions=3)
    for index in range(3):
        client.produce("shares", bytes(1000), index=index)
    size = len(batch(bytes(1000)))
    parts = [("shares", index, 0) for index in range(3)]

    def counts(**options: int) -> list[int]:
        found = told(client.fetch_all(*parts, **options))
        return [len(values(answer.records)) for answer in found.values()]

    assert counts() == [1, 1, 1]
    assert counts(max_bytes=1) == [1, 0, 0]
    assert counts(max_bytes=2 * size) == [1, 1, 0]
    assert counts(max_bytes=2 * size - 1) == [1, 0, 0]
    assert counts(partition_max_bytes=size - 1) == [1, 0, 0]


def test_a_partition_named_twice_is_answered_once(client: Client) -> None:
    client.create("twice")
    client.produce("twice", b"0")
    client.produce("twice", b"1")
    answer = client.fetch_all(("twice", 0, 0), ("twice", 0, 1))
    partitions = [p for topic in answer.responses for p in topic.partitions]
    assert [values(p.records) for p in partitions] == [[b"1"]]


def test_errors_and_data_in_one_response(client: Client) -> None:
    client.create("beside")
    client.produce("beside", b"x")
    found = told(client.fetch_all(("beside", 0, 0), ("beside", 7, 0), ("nobody's", 0, 0)))
    assert values(found["beside", 0].records) == [b"x"]
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert found["beside", 7].error_code == found["nobody's", 0].error_code == unknown


def test_partitions_with_errors_come_last(client: Client) -> None:
    client.create("first")
    found = told(client.fetch_all(("nobody's", 0, 0), ("first", 0, 0)))
    assert list(found) == [("first", 0), ("nobody's", 0)]


def test_a_negative_size_is_no_size(client: Client) -> None:
    client.create("negative")
    assert client.fetch("negative", partition_max_bytes=-1).error_code == 0
    client.produce("negative", b"x")
    for wrong in ({"partition_max_bytes": -1}, {"max_bytes": -1}):
        answer = client.fetch("negative", **wrong)
        assert answer.error_code == ErrorCode.UNKNOWN_SERVER_ERROR


def test_an_unknown_topic_id_is_an_error_of_its_partition(client: Client) -> None:
    answer = client.fetch_all((Uuid(bytes(range(16))), 0, 0), version=13)
    assert answer.error_code == 0
    assert answer.responses[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID


# Waiting


def test_a_fetch_waits_for_its_bytes(broker: Broker, client: Client, other: Client) -> None:
    client.create("waits")
    size = len(batch(b"x"))
    begin(client, ("waits", 0, 0), min_bytes=2 * size)
    parked(broker, "waits")
    other.produce("waits", b"x")
    other.produce("waits", b"y")
    answer = end(client)["waits", 0]
    assert values(answer.records) == [b"x", b"y"]  # type: ignore[attr-defined]


def test_a_fetch_of_many_is_woken_by_any(broker: Broker, client: Client, other: Client) -> None:
    client.create("any", partitions=20)
    begin(client, *(("any", index, 0) for index in range(20)))
    parked(broker, "any", 19)
    other.produce("any", b"x", index=13)
    found = end(client)
    assert len(found) == 20
    assert values(found["any", 13].records) == [b"x"]  # type: ignore[attr-defined]


def test_a_wait_returns_old_and_new_records(broker: Broker, client: Client, other: Client) -> None:
    client.create("both", partitions=3)
    client.produce("both", b"before", index=1)
    size = len(batch(b"before"))
    begin(client, *(("both", index, 0) for index in range(3)), min_bytes=2 * size)
    parked(broker, "both", 2)
    other.produce("both", b"after.", index=2)
    found = end(client)
    told_values = [values(found["both", index].records) for index in range(3)]  # type: ignore[attr-defined]
    assert told_values == [[], [b"before"], [b"after."]]


def test_the_wait_ends_with_its_time(client: Client) -> None:
    client.create("time")
    client.produce("time", b"x")
    answer = client.fetch("time", wait_ms=20, min_bytes=10_000)
    assert values(answer.records) == [b"x"]


def test_a_topic_deleted_while_a_fetch_waits(broker: Broker, client: Client, other: Client) -> None:
    client.create("doomed")
    begin(client, ("doomed", 0, 0))
    parked(broker, "doomed")
    other.delete("doomed")
    answer = end(client)["doomed", 0]
    assert answer.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION  # type: ignore[attr-defined]


def test_records_deleted_under_a_waiting_fetch(
    broker: Broker, client: Client, other: Client
) -> None:
    client.create("moving")
    other.produce("moving", b"x")
    begin(client, ("moving", 0, 0), min_bytes=10_000)
    parked(broker, "moving")
    wanted = DeleteRecordsTopic("moving", [DeleteRecordsPartition(0, -1)])
    other.ask(DeleteRecordsRequest([wanted], 5000))
    answer = end(client)["moving", 0]
    assert answer.error_code == ErrorCode.OFFSET_OUT_OF_RANGE  # type: ignore[attr-defined]


def test_an_error_does_not_end_the_wait_for_other_partitions(
    broker: Broker, client: Client, other: Client
) -> None:
    client.create("patient")
    begin(client, ("nobody's", 0, 0), ("patient", 0, 0))
    parked(broker, "patient")
    other.produce("patient", b"x")
    found = end(client)
    assert values(found["patient", 0].records) == [b"x"]  # type: ignore[attr-defined]
    assert found["nobody's", 0].error_code  # type: ignore[attr-defined]


def test_a_fetch_with_only_errors_is_answered_at_once(client: Client) -> None:
    answer = client.fetch("nobody's", wait_ms=FOREVER_MS)
    assert answer.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_fetches_without_a_session_leave_no_watchers(broker: Broker, client: Client) -> None:
    client.create("watched")
    for wait_ms in (0, 1, 5):
        client.fetch("watched", wait_ms=wait_ms)
    begin(client, ("watched", 0, 0))
    parked(broker, "watched")
    with Client(broker.bootstrap) as other:
        other.produce("watched", b"x")
    end(client)
    partition = broker.node._services.replicas.get("watched", 0)
    assert partition is not None
    assert not partition._watchers


# Sessions


def test_an_incremental_fetch_returns_what_changed(client: Client) -> None:
    client.create("session", partitions=3)
    parts = [("session", index, 0) for index in range(3)]
    full = client.fetch_all(*parts, session=(0, 0))
    session = full.session_id
    assert session > 0
    assert len(told(full)) == 3
    assert told(client.fetch_all(session=(session, 1))) == {}
    with_data = client.produce("session", b"x", index=1)
    assert with_data.error_code == 0
    assert set(told(client.fetch_all(session=(session, 2)))) == {("session", 1)}
    # The client did not move its offset, so it gets the same again.
    again = told(client.fetch_all(session=(session, 3)))
    assert values(again["session", 1].records) == [b"x"]
    assert told(client.fetch_all(("session", 1, 1), session=(session, 4))) == {}
    gone = client.fetch_all(session=(session, 5), forget=[("session", 1)])
    assert told(gone) == {}
    client.produce("session", b"y", index=1)
    assert told(client.fetch_all(session=(session, 6))) == {}


def test_a_moved_log_start_is_returned(client: Client) -> None:
    client.create("news")
    client.produce("news", b"x")
    session = client.fetch_all(("news", 0, 1), session=(0, 0)).session_id
    wanted = DeleteRecordsTopic("news", [DeleteRecordsPartition(0, 1)])
    client.ask(DeleteRecordsRequest([wanted], 5000))
    answer = told(client.fetch_all(session=(session, 1)))
    assert answer["news", 0].log_start_offset == 1


def test_errors_are_repeated_until_they_are_resolved(client: Client) -> None:
    session = client.fetch_all(("late", 0, 0), session=(0, 0)).session_id
    for epoch in (1, 2):
        found = told(client.fetch_all(session=(session, epoch)))
        assert found["late", 0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    client.create("late")
    client.produce("late", b"x")
    found = told(client.fetch_all(session=(session, 3)))
    assert values(found["late", 0].records) == [b"x"]


def test_wrong_sessions_and_epochs(client: Client) -> None:
    client.create("wrong")
    session = client.fetch_all(("wrong", 0, 0), session=(0, 0)).session_id
    assert client.fetch_all(session=(session, 5)).error_code == (
        ErrorCode.INVALID_FETCH_SESSION_EPOCH
    )
    assert client.fetch_all(session=(session ^ 1, 1)).error_code == (
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    )
    assert client.fetch_all(session=(session, 1), version=13).error_code == (
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR
    )
    assert client.fetch_all(session=(session, 1)).error_code == 0
    assert client.fetch_all(session=(session, -1)).session_id == 0
    assert client.fetch_all(session=(session, 2)).error_code == (
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    )


def test_a_new_full_fetch_ends_the_old_session(client: Client) -> None:
    client.create("anew")
    old = client.fetch_all(("anew", 0, 0), session=(0, 0)).session_id
    new = client.fetch_all(("anew", 0, 0), session=(old, 0)).session_id
    assert new not in (0, old)
    assert client.fetch_all(session=(old, 1)).error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_a_session_without_partitions_ends(client: Client) -> None:
    client.create("over")
    session = client.fetch_all(("over", 0, 0), session=(0, 0)).session_id
    answer = client.fetch_all(session=(session, 1), forget=[("over", 0)], wait_ms=FOREVER_MS)
    assert (answer.error_code, answer.session_id) == (0, 0)
    assert client.fetch_all(session=(session, 2)).error_code == (
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    )


def test_every_partition_gets_a_turn_however_small_the_responses(client: Client) -> None:
    client.create("turns", partitions=4)
    for index in range(4):
        for _ in range(5):
            client.produce("turns", b"x", index=index)
    offsets = [0, 0, 0, 0]
    answer = client.fetch_all(
        *(("turns", index, 0) for index in range(4)), session=(0, 0), max_bytes=1
    )
    session = answer.session_id
    for epoch in range(1, 20):
        moved = []
        for (_, index), found in told(answer).items():
            offsets[index] += len(values(found.records))
            if found.records:
                moved.append(("turns", index, offsets[index]))
        assert max(offsets) - min(offsets) <= 1, "a busy partition must not starve the others"
        answer = client.fetch_all(*moved, session=(session, epoch), max_bytes=1)
    assert sum(offsets) == 19


def test_a_waiting_session_is_woken_by_its_unchanged_partitions(
    broker: Broker, client: Client, other: Client
) -> None:
    client.create("quiet", partitions=50)
    parts = [("quiet", index, 0) for index in range(50)]
    session = client.fetch_all(*parts, session=(0, 0)).session_id
    begin(client, session=(session, 1))
    parked(broker, "quiet", 49)
    other.produce("quiet", b"x", index=31)
    assert set(end(client)) == {("quiet", 31)}


def test_a_second_request_of_a_session_ends_the_first(
    broker: Broker, client: Client, other: Client
) -> None:
    client.create("rivals")
    session = client.fetch_all(("rivals", 0, 0), session=(0, 0)).session_id
    begin(client, session=(session, 1))
    while other.fetch_all(session=(session, 2)).error_code:
        pass  # the first request has not arrived yet
    answer = client.answer(ApiKey.FETCH, FETCH_BY_NAME, 77)
    assert answer.error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH
