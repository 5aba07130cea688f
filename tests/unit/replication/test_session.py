"""What a follower sends to its leader, and what a session lets it omit."""

from __future__ import annotations

from skylog.kernel.ids import Uuid
from skylog.replication.session import Key, ReplicaSession
from skylog.wire.messages.fetch_request import FetchPartition, FetchRequest

A, B = Uuid(b"a" * 16), Uuid(b"b" * 16)


def wanted(index: int, offset: int) -> FetchPartition:
    return FetchPartition(partition=index, fetch_offset=offset)


def filled(session: ReplicaSession) -> tuple[tuple[int, int], dict[Key, int], list[Key]]:
    request = FetchRequest()
    session.fill(request)
    said = {(t.topic_id, p.partition): p.fetch_offset for t in request.topics for p in t.partitions}
    gone = [(t.topic_id, index) for t in request.forgotten_topics_data for index in t.partitions]
    return (request.session_id, request.session_epoch), said, gone


def test_only_what_changed_is_said_again() -> None:
    session = ReplicaSession()
    assert not session.has_work
    session.want((A, 0), wanted(0, 5))
    session.want((A, 1), wanted(1, 6))
    session.want((B, 0), wanted(0, 7))
    assert filled(session) == ((0, 0), {(A, 0): 5, (A, 1): 6, (B, 0): 7}, [])
    session.answered(33)
    assert filled(session) == ((33, 1), {}, [])
    session.answered(33)
    session.want((A, 1), wanted(1, 9))
    session.drop((B, 0))
    session.drop((B, 7))  # was never asked for
    assert filled(session) == ((33, 2), {(A, 1): 9}, [(B, 0)])
    session.answered(33)
    assert filled(session) == ((33, 3), {}, [])
    assert len(session) == 2


def test_a_partition_that_comes_back_is_not_forgotten() -> None:
    session = ReplicaSession()
    session.want((A, 0), wanted(0, 5))
    filled(session)
    session.answered(33)
    session.drop((A, 0))
    session.want((A, 0), wanted(0, 8))
    assert filled(session) == ((33, 1), {(A, 0): 8}, [])


def test_after_an_error_everything_is_said() -> None:
    session = ReplicaSession()
    session.want((A, 0), wanted(0, 5))
    filled(session)
    session.answered(33)
    session.drop((A, 0))
    session.want((B, 0), wanted(0, 1))
    session.reset()
    assert filled(session) == ((33, 0), {(B, 0): 1}, [])  # the leader closes the old one
    session.answered(34)
    assert filled(session) == ((34, 1), {}, [])
    session.answered(0)  # it keeps no session
    assert filled(session) == ((0, 0), {(B, 0): 1}, [])


def test_an_answer_is_about_what_was_asked_not_about_what_is_wanted_now() -> None:
    session = ReplicaSession()
    session.want((A, 0), wanted(0, 5))
    assert session.asked((A, 0)) is None
    filled(session)
    session.want((A, 0), wanted(0, 9))
    asked = session.asked((A, 0))
    assert asked is not None
    assert asked.fetch_offset == 5
    session.answered(33)
    filled(session)
    asked = session.asked((A, 0))
    assert asked is not None
    assert asked.fetch_offset == 9
    session.drop((A, 0))
    assert session.has_work  # the leader must be told
    filled(session)
    assert session.asked((A, 0)) is None
    assert not session.has_work


def test_epochs_start_over_after_the_last() -> None:
    session = ReplicaSession()
    session.want((A, 0), wanted(0, 5))
    session.answered(33)
    session._epoch = 2**31 - 1
    session.answered(33)
    assert filled(session)[0] == (33, 1)
