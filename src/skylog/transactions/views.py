"""The results of DescribeTransactions and ListTransactions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from skylog.kernel.errors import ErrorCode
from skylog.transactions.records import by_topic
from skylog.transactions.requests import ListFilter
from skylog.transactions.state import State, Transaction
from skylog.wire.messages.describe_transactions_response import TopicData
from skylog.wire.messages.describe_transactions_response import TransactionState as Described
from skylog.wire.messages.list_transactions_response import TransactionState as Listed

STATE_NAMES: Final = frozenset(state.label for state in State)


def describe(transactional_id: str, known: Mapping[str, Transaction]) -> Described:
    transaction = known.get(transactional_id)
    if transaction is None:
        return Described(ErrorCode.TRANSACTIONAL_ID_NOT_FOUND, transactional_id)
    return Described(
        ErrorCode.NONE,
        transactional_id,
        transaction.state.label,
        transaction.timeout_ms,
        transaction.started_ms,
        transaction.producer_id,
        transaction.producer_epoch,
        [TopicData(topic, indexes) for topic, indexes in by_topic(transaction.partitions)],
    )


def listed(wanted: ListFilter, known: Iterable[Transaction], now_ms: int) -> list[Listed]:
    return [
        Listed(found.transactional_id, found.producer_id, found.state.label)
        for found in known
        if _is_wanted(wanted, found, now_ms)
    ]


def _is_wanted(wanted: ListFilter, found: Transaction, now_ms: int) -> bool:
    if wanted.producer_ids and found.producer_id not in wanted.producer_ids:
        return False
    if wanted.states and found.state.label not in wanted.states:
        return False
    if wanted.duration_ms >= 0 and now_ms - found.started_ms <= wanted.duration_ms:
        return False
    return wanted.matches is None or wanted.matches(found.transactional_id)
