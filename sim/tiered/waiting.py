"""Coroutines without an event loop: the world decides which one goes on, and when."""

from __future__ import annotations

from collections.abc import Callable, Generator
from types import coroutine
from typing import Any


@coroutine
def turn() -> Generator[None, None, None]:
    """Let the world do something else."""
    yield


class Request:
    """Something on its way to the metadata topic or to the store.

    It arrives or is lost whatever becomes of its sender, and its sender may give up before.
    """

    def __init__(self, name: str, act: Callable[[], Any], about: bytes = b"") -> None:
        """``about`` is the id of a segment."""
        self.name = name
        self.about = about
        self._act = act
        self.sender_waits = True
        self.is_answered = False
        self.failure: Exception | None = None
        self.answer: Any = None

    def arrive(self) -> None:
        self.answer = self._act()
        self.is_answered = True

    def fail(self, failure: Exception) -> None:
        """Definitely not done."""
        self.failure = failure
        self.is_answered = True

    async def answered(self, given_up: Exception) -> Any:
        """The answer; ``given_up`` is raised if the sender gives up."""
        try:
            while not self.is_answered:
                await turn()
                if not self.sender_waits:
                    raise given_up
        finally:
            self.sender_waits = False
        if self.failure is not None:
            raise self.failure
        return self.answer
