"""The state machine of one partition of ``__transaction_state``: its transactional ids.

==============  ===================================================================================
state of an id  goes to
==============  ===================================================================================
Empty           Ongoing: partitions or offsets are added · PrepareAbort: version 2 aborts to be
                sure · gone: unused for transactional.id.expiration.ms
Ongoing         PrepareCommit, PrepareAbort: the producer ends it · PrepareAbort: its time is over,
                or another producer takes over
PrepareCommit   CompleteCommit: all partitions have their markers
PrepareAbort    CompleteAbort: all partitions have their markers
Complete…       as Empty · Empty: a producer takes over
==============  ===================================================================================

The Prepare… record is the decision. The partition's leader must then write markers until all
partitions have theirs, and after a load ``FindPrepared`` returns what is left to do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.replicated.machine import Result
from skylog.transactions import transitions, views
from skylog.transactions.records import FLEXIBLE_FORMAT, ExpiredRecord, TransactionRecord
from skylog.transactions.requests import (
    NEEDS_PRODUCER_ID,
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
    PartitionsMarked,
    TransactionRequest,
    VerifyPartitions,
)
from skylog.transactions.settings import TransactionSettings
from skylog.transactions.state import (
    EPOCH_BUMP,
    NO_PRODUCER_ID,
    State,
    Transaction,
)


class TransactionMachine:
    """Transactional ids; see ``replicated/machine.py`` for the contract."""

    def __init__(self, settings: TransactionSettings, version: Callable[[], int]) -> None:
        """``version`` is the level of the feature ``transaction.version``."""
        self._settings = settings
        self._version = version
        self._transactions: dict[str, Transaction] = {}
        # Few of many ids, and looked up often.
        self._open: set[str] = set()
        self._prepared: set[str] = set()

    def handle(self, request: TransactionRequest, now_ms: int) -> Result[Any]:
        match request:
            case InitProducerId():
                return self._init(request, now_ms)
            case AddPartitions():
                return self._add(request, now_ms)
            case VerifyPartitions():
                return self._verify(request)
            case EndTxn():
                return self._end(request, now_ms)
            case AbortTimedOut():
                return self._abort(request, now_ms)
            case MarkersWritten():
                return self._written(request, now_ms)
            case ExpireIds():
                return self._expire(request, now_ms)
            case _:
                return Result(self._answer(request, now_ms))

    def _answer(self, question: TransactionRequest, now_ms: int) -> Any:
        match question:
            case FindPrepared():
                return [self._transactions[known] for known in self._prepared]
            case FindTimedOut():
                return [found for found in self._opened() if _is_over(found, now_ms)]
            case FindIds():
                return tuple(self._transactions)
            case Describe(transactional_ids):
                return [views.describe(asked, self._transactions) for asked in transactional_ids]
            case ListFilter():
                return views.listed(question, self._transactions.values(), now_ms)
            case _:
                raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)

    # What changes the state

    def apply(self, record: Any, offset: int) -> None:
        match record:
            case TransactionRecord(transaction):
                self._put(transaction)
            case ExpiredRecord(transactional_id):
                self._forget(transactional_id)
            case PartitionsMarked(transactional_id, partitions):
                known = self._transactions[transactional_id]
                self._put(replace(known, partitions=known.partitions - partitions))

    def _put(self, transaction: Transaction) -> None:
        transactional_id = transaction.transactional_id
        self._transactions[transactional_id] = transaction
        self._open.discard(transactional_id)
        self._prepared.discard(transactional_id)
        if transaction.is_open:
            self._open.add(transactional_id)
        elif transaction.is_prepared:
            self._prepared.add(transactional_id)

    def _forget(self, transactional_id: str) -> None:
        self._transactions.pop(transactional_id, None)
        self._open.discard(transactional_id)
        self._prepared.discard(transactional_id)

    def snapshot(self) -> Iterator[TransactionRecord]:
        for transaction in self._transactions.values():
            yield self._record(transaction)

    def transaction(self, transactional_id: str) -> Transaction | None:
        """Read-only, for inspection."""
        return self._transactions.get(transactional_id)

    def __len__(self) -> int:
        return len(self._transactions)

    # Producers' requests

    def _init(self, request: InitProducerId, now_ms: int) -> Result[Outcome]:
        known = self._transactions.get(request.transactional_id)
        expected, new_producer_id = request.expected, request.new_producer_id
        if known is None:
            if new_producer_id == NO_PRODUCER_ID:
                return Result(NEEDS_PRODUCER_ID)
            known = Transaction(request.transactional_id, new_producer_id)
        if known.is_prepared:
            raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)
        if expected is not None:
            transitions.check_expected(known, expected)
        if known.is_open:
            return self._fence(known, new_producer_id, now_ms, ErrorCode.CONCURRENT_TRANSACTIONS)
        timeout_ms = request.timeout_ms
        if transitions.needs_new_id(known, expected):
            if new_producer_id == NO_PRODUCER_ID:
                return Result(NEEDS_PRODUCER_ID)
            after = transitions.new_id(known, expected, new_producer_id, timeout_ms, now_ms)
        else:
            after = transitions.next_epoch(known, expected, timeout_ms, now_ms)
        reply = Outcome(producer_id=after.producer_id, producer_epoch=after.producer_epoch)
        return Result(reply, [self._record(after)])

    def _add(self, request: AddPartitions, now_ms: int) -> Result[None]:
        known = self._known(request.transactional_id)
        if known.is_prepared:
            raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)
        _check_producer(known, request.producer_id, request.producer_epoch)
        if known.is_open and request.partitions <= known.partitions:
            return Result(None)
        self._check_version(request.client_version)
        after = transitions.add_partitions(
            known, request.partitions, request.client_version, now_ms
        )
        return Result(None, [self._record(after)])

    def _verify(self, request: VerifyPartitions) -> Result[frozenset[Any]]:
        """The partitions that are not in the transaction."""
        known = self._known(request.transactional_id)
        _check_producer(known, request.producer_id, request.producer_epoch)
        if known.is_prepared:
            raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)
        return Result(request.partitions - known.partitions)

    def _end(self, request: EndTxn, now_ms: int) -> Result[Outcome]:
        known = self._known(request.transactional_id)
        bumps = request.client_version >= EPOCH_BUMP
        if not transitions.check_end(known, request):
            return Result(_told(known) if bumps else Outcome())
        self._check_version(request.client_version)
        next_id = NO_PRODUCER_ID
        if bumps and known.epoch_exhausted:
            next_id = request.new_producer_id
            if next_id == NO_PRODUCER_ID:
                return Result(NEEDS_PRODUCER_ID)
        decided = transitions.decide(
            known,
            commit=request.commit,
            version=request.client_version,
            next_producer_id=next_id,
            now_ms=now_ms,
        )
        reply = _told(transitions.complete(decided, now_ms)) if bumps else Outcome()
        return self._decided(decided, reply, now_ms)

    # The coordinator's own

    def _abort(self, request: AbortTimedOut, now_ms: int) -> Result[Outcome]:
        known = self._transactions.get(request.transactional_id)
        asked = (request.producer_id, request.producer_epoch)
        if known is None or (known.producer_id, known.producer_epoch) != asked:
            return Result(Outcome())
        if not known.is_open or not _is_over(known, now_ms):
            return Result(Outcome())
        return self._fence(known, request.new_producer_id, now_ms, ErrorCode.NONE)

    def _fence(
        self, known: Transaction, new_producer_id: int, now_ms: int, error: ErrorCode
    ) -> Result[Outcome]:
        version = self._version()
        next_id = NO_PRODUCER_ID
        if version >= EPOCH_BUMP and known.epoch_exhausted:
            next_id = new_producer_id
            if next_id == NO_PRODUCER_ID:
                return Result(NEEDS_PRODUCER_ID)
        decided = transitions.fence(known, version=version, next_producer_id=next_id, now_ms=now_ms)
        return self._decided(decided, Outcome(error), now_ms)

    def _decided(self, decided: Transaction, reply: Outcome, now_ms: int) -> Result[Outcome]:
        records = [self._record(decided)]
        if decided.partitions:
            return Result(replace(reply, decided=decided), records)
        # There is no caller to notify.
        return Result(reply, [*records, self._record(transitions.complete(decided, now_ms))])

    def _written(self, request: MarkersWritten, now_ms: int) -> Result[bool]:
        """Whether the transaction is complete, by this or earlier."""
        known = self._transactions.get(request.transactional_id)
        marked = (request.producer_id, request.producer_epoch)
        if known is None or (known.producer_id, known.producer_epoch) != marked:
            return Result(True)
        if not known.is_prepared:
            return Result(True)
        if known.partitions - request.partitions:
            event = PartitionsMarked(request.transactional_id, request.partitions)
            return Result(False, volatile=[event])
        return Result(True, [self._record(transitions.complete(known, now_ms))])

    def _expire(self, request: ExpireIds, now_ms: int) -> Result[None]:
        oldest_ms = now_ms - self._settings.id_expiration_ms
        found = map(self._transactions.get, request.transactional_ids)
        expired = [
            ExpiredRecord(known.transactional_id)
            for known in found
            if known is not None
            and (known.is_complete or known.state is State.EMPTY)
            and known.updated_ms <= oldest_ms
        ]
        return Result(None, expired)

    def _known(self, transactional_id: str) -> Transaction:
        known = self._transactions.get(transactional_id)
        if known is None:
            raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
        return known

    def _check_version(self, client_version: int) -> None:
        """Records of the oldest version have no fields for what newer clients need."""
        if client_version > 0 and self._version() < FLEXIBLE_FORMAT:
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)

    def _opened(self) -> Iterator[Transaction]:
        return (self._transactions[known] for known in self._open)

    def _record(self, transaction: Transaction) -> TransactionRecord:
        return TransactionRecord(transaction, min(self._version(), FLEXIBLE_FORMAT))


def _check_producer(known: Transaction, producer_id: int, producer_epoch: int) -> None:
    if known.producer_id != producer_id:
        raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    if known.producer_epoch != producer_epoch:
        raise KafkaError(ErrorCode.PRODUCER_FENCED)


def _is_over(known: Transaction, now_ms: int) -> bool:
    return known.started_ms + known.timeout_ms < now_ms


def _told(known: Transaction) -> Outcome:
    """The id and epoch with which the producer continues."""
    return Outcome(producer_id=known.producer_id, producer_epoch=known.producer_epoch)
