"""Answers of partitions for which somebody has to be asked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Generic, TypeVar

from skylog.kernel.errors import KafkaError

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
S = TypeVar("S")


class Question(Generic[T_co]):
    """Stands for an answer: ``joint`` is called with all that was ``asked`` of it in a request.

    ``holds``: partitions behind this one in a fetch are read after it.
    """

    __slots__ = ("asked", "holds", "joint")

    def __init__(self, joint: Any, asked: Any, *, holds: bool = False) -> None:
        self.joint = joint
        self.asked = asked
        self.holds = holds


async def ask_all(
    questions: Sequence[tuple[S, Question[T]]], *more: object
) -> list[tuple[S, T | KafkaError]]:
    """The answers to questions, each with whatever it was noted with: one call of each joint."""
    joints: dict[Any, list[tuple[S, Question[T]]]] = {}
    for one in questions:
        joints.setdefault(one[1].joint, []).append(one)
    found: list[tuple[S, T | KafkaError]] = []
    for joint, asked in joints.items():
        answers = await joint([question.asked for _, question in asked], *more)
        found += [(about, answer) for (about, _), answer in zip(asked, answers, strict=True)]
    return found
