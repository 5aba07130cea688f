"""Answers of partitions that need a disk, an object store or another broker."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Generic, TypeVar

from skylog.kernel.errors import KafkaError

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
S = TypeVar("S")


class Question(Generic[T_co]):
    """A placeholder for an answer: ``resolver`` is called once with all that a request ``asked`` of
    it.

    ``holds``: later partitions of a fetch are read after this one. ``reserves``: bytes that count
    against a fetch's budget at once, so that nothing has to wait for the answer.
    """

    __slots__ = ("asked", "holds", "reserves", "resolver")

    def __init__(
        self, resolver: Any, asked: Any, *, holds: bool = False, reserves: int = 0
    ) -> None:
        self.resolver = resolver
        self.asked = asked
        self.holds = holds
        self.reserves = reserves


async def ask_all(
    questions: Sequence[tuple[S, Question[T]]], *more: object
) -> list[tuple[S, T | KafkaError]]:
    """The answers, each with the item that its question came with: one call of each resolver."""
    resolvers: dict[Any, list[tuple[S, Question[T]]]] = {}
    for one in questions:
        resolvers.setdefault(one[1].resolver, []).append(one)
    found: list[tuple[S, T | KafkaError]] = []
    for resolver, asked in resolvers.items():
        answers = await resolver([question.asked for _, question in asked], *more)
        found += [(about, answer) for (about, _), answer in zip(asked, answers, strict=True)]
    return found
