"""The transitions of a transaction, one function each; invalid ones raise Kafka's error.

Kafka has two rules for ending a transaction. By the first the epoch of a producer stays until it
is fenced. By the second (version 2, KIP-890) each end raises it, so that nothing sent before the
end can become part of the next transaction.
"""

from __future__ import annotations

from dataclasses import replace

from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.transactions.ports import TopicPartition
from skylog.transactions.requests import EndTxn
from skylog.transactions.state import (
    EPOCH_BUMP,
    EPOCH_MAX,
    NO_EPOCH,
    NO_PRODUCER_ID,
    NO_TIME,
    State,
    Transaction,
)


def check_expected(transaction: Transaction, expected: tuple[int, int]) -> None:
    """Whether a producer with this id and epoch may continue; its epoch is checked later."""
    producer_id, producer_epoch = expected
    is_new = transaction.producer_epoch == NO_EPOCH
    # It may not know the id that has replaced its own.
    replaced = producer_id == transaction.previous_producer_id and producer_epoch >= EPOCH_MAX - 1
    if not (is_new or producer_id == transaction.producer_id or replaced):
        raise KafkaError(ErrorCode.PRODUCER_FENCED)


def needs_new_id(transaction: Transaction, expected: tuple[int, int] | None) -> bool:
    """Whether InitProducerId has no epoch left."""
    return transaction.epoch_exhausted and (
        expected is None or expected[1] == transaction.producer_epoch
    )


def next_epoch(
    transaction: Transaction, expected: tuple[int, int] | None, timeout_ms: int, now_ms: int
) -> Transaction:
    """A producer registers, or returns: a new epoch fences all earlier ones."""
    if transaction.epoch_exhausted:  # and the producer expects another one: Kafka also fails here
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "No epoch is left.")
    epoch, last = transaction.producer_epoch + 1, NO_EPOCH
    if expected is not None:
        if NO_EPOCH != transaction.producer_epoch != expected[1]:
            if expected[1] != transaction.last_epoch:
                raise KafkaError(ErrorCode.PRODUCER_FENCED)
            # A repeated request whose response was lost.
            epoch, last = transaction.producer_epoch, transaction.last_epoch
        else:
            last = transaction.producer_epoch
    return _initialized(transaction, transaction.producer_id, epoch, last, timeout_ms, now_ms)


def new_id(
    transaction: Transaction,
    expected: tuple[int, int] | None,
    producer_id: int,
    timeout_ms: int,
    now_ms: int,
) -> Transaction:
    """All epochs of the producer id are used up: another id replaces it."""
    last = NO_EPOCH if expected is None else transaction.producer_epoch
    return _initialized(transaction, producer_id, 0, last, timeout_ms, now_ms)


def _initialized(
    transaction: Transaction,
    producer_id: int,
    epoch: int,
    last_epoch: int,
    timeout_ms: int,
    now_ms: int,
) -> Transaction:
    return replace(
        transaction,
        producer_id=producer_id,
        previous_producer_id=transaction.producer_id,
        producer_epoch=epoch,
        last_epoch=last_epoch,
        timeout_ms=timeout_ms,
        state=State.EMPTY,
        partitions=frozenset(),
        started_ms=NO_TIME,
        updated_ms=now_ms,
    )


def add_partitions(
    transaction: Transaction,
    partitions: frozenset[TopicPartition],
    client_version: int,
    now_ms: int,
) -> Transaction:
    """The first partitions begin a transaction."""
    return replace(
        transaction,
        state=State.ONGOING,
        previous_producer_id=transaction.producer_id,
        partitions=transaction.partitions | partitions,
        started_ms=transaction.started_ms if transaction.is_open else now_ms,
        updated_ms=now_ms,
        client_version=client_version,
    )


def check_end(transaction: Transaction, request: EndTxn) -> bool:
    """Whether there is something to end; False for a decision that has been carried out."""
    if request.client_version >= EPOCH_BUMP:
        return _check_end_with_bump(transaction, request)
    if transaction.producer_id != request.producer_id:
        raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    if transaction.producer_epoch != request.producer_epoch:
        raise KafkaError(ErrorCode.PRODUCER_FENCED)
    if transaction.is_prepared:
        raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)
    if transaction.is_open:
        return True
    if transaction.is_complete and transaction.commits == request.commit:
        return False
    raise KafkaError(ErrorCode.INVALID_TXN_STATE)


def _check_end_with_bump(transaction: Transaction, request: EndTxn) -> bool:
    """The epoch distinguishes a repeated request from the next one.

    ==============  ==========================  ==========================
    state           abort, repeated · current   commit, repeated · current
    ==============  ==========================  ==========================
    Empty           fenced · ended              fenced · invalid
    CompleteAbort   done · ended                invalid · invalid
    CompleteCommit  invalid · ended             done · invalid
    ==============  ==========================  ==========================
    """
    if transaction.is_prepared:
        raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)
    epoch = request.producer_epoch
    overflowed = (
        transaction.previous_producer_id == request.producer_id
        and epoch == EPOCH_MAX - 1
        and transaction.producer_epoch == 0
    )
    repeated = overflowed or transaction.producer_epoch == epoch + 1
    if transaction.producer_id != request.producer_id and not overflowed:
        raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    if transaction.producer_epoch != epoch and not (transaction.is_complete and repeated):
        raise KafkaError(ErrorCode.PRODUCER_FENCED)
    if transaction.is_open:
        return True
    if repeated and transaction.commits == request.commit:
        return False
    if repeated or request.commit:
        raise KafkaError(ErrorCode.INVALID_TXN_STATE)
    # A producer that does not know whether it has begun anything aborts to be sure.
    return True


def decide(
    transaction: Transaction,
    *,
    commit: bool,
    version: int,
    next_producer_id: int,
    now_ms: int,
) -> Transaction:
    """The decision: from here on there is no other outcome."""
    epoch, last = transaction.producer_epoch, transaction.last_epoch
    if version >= EPOCH_BUMP:
        epoch, last = min(epoch + 1, EPOCH_MAX), epoch
    return replace(
        transaction,
        state=State.PREPARE_COMMIT if commit else State.PREPARE_ABORT,
        previous_producer_id=transaction.producer_id,
        next_producer_id=next_producer_id,
        producer_epoch=epoch,
        last_epoch=last,
        started_ms=transaction.started_ms if transaction.is_open else now_ms,
        updated_ms=now_ms,
        client_version=version,
    )


def fence(
    transaction: Transaction, *, version: int, next_producer_id: int, now_ms: int
) -> Transaction:
    """The coordinator aborts the transaction; the producer's epoch is no longer valid."""
    if version >= EPOCH_BUMP:  # ending it already fences the producer
        bumped = transaction
    else:
        epoch = min(transaction.producer_epoch + 1, EPOCH_MAX)
        bumped = replace(transaction, producer_epoch=epoch, last_epoch=NO_EPOCH)
        version, next_producer_id = 0, NO_PRODUCER_ID
    return decide(
        bumped, commit=False, version=version, next_producer_id=next_producer_id, now_ms=now_ms
    )


def complete(transaction: Transaction, now_ms: int) -> Transaction:
    """All partitions have their markers."""
    producer_id, epoch = transaction.producer_id, transaction.producer_epoch
    if transaction.client_version >= EPOCH_BUMP and transaction.next_producer_id >= 0:
        producer_id, epoch = transaction.next_producer_id, 0
    return replace(
        transaction,
        state=State.COMPLETE_COMMIT if transaction.commits else State.COMPLETE_ABORT,
        producer_id=producer_id,
        previous_producer_id=transaction.producer_id,
        next_producer_id=NO_PRODUCER_ID,
        producer_epoch=epoch,
        partitions=frozenset(),
        updated_ms=now_ms,
    )
