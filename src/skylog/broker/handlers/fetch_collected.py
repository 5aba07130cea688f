"""What one pass over a fetch session has found."""

from __future__ import annotations

from typing import Any, Final, TypeAlias

from skylog.broker.handlers.fetch_sessions import Entry
from skylog.broker.partitions.port import Budget
from skylog.broker.partitions.questions import Question
from skylog.wire.messages.fetch_response import PartitionData

NOT_YET: Final = PartitionData()
Questions: TypeAlias = list[tuple[Entry, Question[PartitionData]]]


class Collected(Budget):
    """What one pass over the session found, and what it may still read.

    A pending answer already has its place.
    """

    __slots__ = ("answers", "questions", "read_bytes", "refused", "urgent")

    def __init__(self, left: int) -> None:
        super().__init__(left)
        self.answers: dict[Entry, PartitionData] = {}
        self.questions: dict[Any, Questions] = {}
        self.read_bytes = 0
        self.refused: set[Entry] = set()
        self.urgent = False  # log errors and divergences are returned at once

    def add(self, entry: Entry, answer: PartitionData) -> None:
        self.answers[entry] = answer
        if answer.records:
            size = len(answer.records)
            self.read_bytes += size
            self.take(size)
        elsewhere = answer.preferred_read_replica >= 0
        if answer.diverging_epoch.epoch >= 0 or elsewhere or answer.error_code:
            self.urgent = True

    def ask(self, entry: Entry, question: Question[PartitionData]) -> None:
        self.answers[entry] = NOT_YET
        self.questions.setdefault(question.resolver, []).append((entry, question))
        if question.reserves:
            self.reserve(question.reserves)
            # As in Kafka, a fetch that reads remote segments is answered when that is done.
            self.urgent = True


def kept(entry: Entry, before: Collected, found: Collected) -> bool:
    """Whether the earlier result is still valid: the partition was found, and has not changed."""
    answer = before.answers.get(entry)
    if answer is None or entry.moved or entry.partition is None or entry in before.refused:
        return False
    found.add(entry, answer)
    return True


def holds_none(asked: tuple[Any, Questions]) -> bool:
    return not asked[1][0][1].holds


def asked_of(questions: Questions) -> list[Any]:
    return [question.asked for _, question in questions]
