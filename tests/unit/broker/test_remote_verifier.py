"""Verification by a transaction coordinator on another broker, with and without a response."""

from __future__ import annotations

from typing import Any

from skylog.broker.handlers.remote_verifier import RemoteVerifier
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.wire.messages.add_partitions_to_txn_request import AddPartitionsToTxnRequest
from skylog.wire.messages.add_partitions_to_txn_response import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
)

PARTITIONS = (("a", 0), ("a", 2), ("b", 1))
ASKED = ("tx", 7, 3, PARTITIONS)
WAIT_MS = 10_000


class Peers:
    """Answers with one code after the other for every partition."""

    def __init__(self, *answers: ErrorCode | KafkaError) -> None:
        self.answers = list(answers)
        self.requests: list[AddPartitionsToTxnRequest] = []

    async def send(self, node_id: int, request: Any, version: int, *, lane: str) -> Any:
        assert (node_id, version) == (2, 5)
        self.requests.append(request)
        answer = self.answers.pop(0)
        if isinstance(answer, KafkaError):
            raise answer
        (asked,) = request.transactions
        topics = [
            AddPartitionsToTxnTopicResult(
                topic.name, [AddPartitionsToTxnPartitionResult(p, answer) for p in topic.partitions]
            )
            for topic in asked.topics
        ]
        result = AddPartitionsToTxnResult(asked.transactional_id, topics)
        return AddPartitionsToTxnResponse(results_by_transaction=[result])


def verifier(peers: Peers, wait_ms: int = WAIT_MS) -> RemoteVerifier:
    return RemoteVerifier(2, peers, wait_ms)  # type: ignore[arg-type]


async def test_the_coordinators_word_is_passed_on() -> None:
    peers = Peers(ErrorCode.NONE, ErrorCode.TRANSACTION_ABORTABLE)
    assert await verifier(peers).verify(*ASKED) == dict.fromkeys(PARTITIONS, ErrorCode.NONE)
    refused = await verifier(peers).verify(*ASKED)
    assert refused == dict.fromkeys(PARTITIONS, ErrorCode.TRANSACTION_ABORTABLE)
    assert all(request.transactions[0].verify_only for request in peers.requests)


async def test_a_lost_answer_says_nothing_of_the_transaction() -> None:
    peers = Peers(KafkaError(ErrorCode.REQUEST_TIMED_OUT, ambiguous=True))
    found = await verifier(peers).verify(*ASKED)
    assert found == dict.fromkeys(PARTITIONS, ErrorCode.NETWORK_EXCEPTION)


async def test_the_end_of_the_transaction_before_is_waited_for() -> None:
    busy = ErrorCode.CONCURRENT_TRANSACTIONS
    peers = Peers(busy, busy, ErrorCode.NONE)
    assert await verifier(peers).add(*ASKED) == dict.fromkeys(PARTITIONS, ErrorCode.NONE)
    assert not any(request.transactions[0].verify_only for request in peers.requests)


async def test_it_is_not_waited_for_longer_than_allowed() -> None:
    peers = Peers(ErrorCode.CONCURRENT_TRANSACTIONS)
    found = await verifier(peers, wait_ms=0).add(*ASKED)
    assert found == dict.fromkeys(PARTITIONS, ErrorCode.CONCURRENT_TRANSACTIONS)
