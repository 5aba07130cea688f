"""Reads of classic partitions that would block: run by the executor, in the request's order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from skylog.broker.partitions.port import Budget
from skylog.broker.partitions.questions import Question
from skylog.kernel.errors import KafkaError
from skylog.log.reader import MovedToRemote
from skylog.wire.messages.fetch_response import AbortedTransaction, PartitionData

if TYPE_CHECKING:
    from skylog.broker.partitions.classic import ClassicPartition
    from skylog.broker.partitions.port import Reader
    from skylog.kernel.executor import Executor
    from skylog.log.reader import ReadInfo
    from skylog.wire.messages.fetch_request import FetchPartition

T = TypeVar("T")
# A blocking read, and one that may turn out to be another question.
Cold: TypeAlias = "Callable[[], PartitionData]"
Late: TypeAlias = "Callable[[], PartitionData | Question[PartitionData]]"
Turn: TypeAlias = "tuple[ClassicPartition, FetchPartition, Reader, bool, Cold | None]"


class BlockingReads:
    """The resolvers of such questions."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor

    async def search(self, works: Sequence[Callable[[], T]]) -> list[T | KafkaError]:
        """Run all blocking work of a request in one call to a thread."""
        return await self._executor.run(lambda: [_outcome(work) for work in works])

    async def read_in_turn(
        self,
        asked: Sequence[Turn],
        budget: Budget,
    ) -> list[PartitionData | KafkaError]:
        """Reads that would have blocked, and those held behind them, one by one."""
        left = Budget(budget.left, untouched=budget.untouched)
        answers: list[PartitionData | KafkaError] = []
        for partition, wanted, reader, is_new, cold in asked:
            late = partial(partition.read_late, wanted, reader, left, is_new=is_new)
            answer = await self._read(late, cold, left)
            if isinstance(answer, PartitionData) and answer.records:
                left.take(len(answer.records))
            answers.append(answer)
        return answers

    async def _read(
        self, late: Late, cold: Cold | None, budget: Budget
    ) -> PartitionData | KafkaError:
        found: Any = cold
        while True:
            if found is None:
                found = _outcome(late)
            if isinstance(found, Question):
                if found.resolver != self.read_in_turn:
                    (found,) = await found.resolver([found.asked], budget)
                else:
                    found = found.asked[-1]
            if not isinstance(found, PartitionData | KafkaError):
                (found,) = await self.search([found])
            if not isinstance(found, MovedToRemote):
                answer: PartitionData | KafkaError = found
                return answer
            found = None  # dropped locally in between


def _outcome(work: Callable[[], T]) -> T | KafkaError:
    try:
        return work()
    except KafkaError as error:
        return error.without_frames()


def fill(answer: PartitionData, read: Callable[[], ReadInfo]) -> PartitionData:
    found = read()
    answer.records = found.buffer
    return with_aborted(answer, found) if found.aborted else answer


def with_aborted(answer: PartitionData, found: ReadInfo) -> PartitionData:
    answer.aborted_transactions = [
        AbortedTransaction(each.producer_id, each.first_offset) for each in found.aborted
    ]
    return answer
