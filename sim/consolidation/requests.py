"""Requests to the metadata topic, the store and the coordinator: each arrives or is lost, whatever
becomes of its sender."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sim.consolidation.broker import SimBroker


def at_once(work: Coroutine[Any, Any, Any]) -> Any:
    """The result of a coroutine that waits for nothing."""
    try:
        work.send(None)
    except StopIteration as ended:
        return ended.value
    raise AssertionError("it waits")


class Request:
    """``lost`` is raised if it certainly never arrived, ``unclear`` if its answer did not come."""

    def __init__(
        self,
        sender: SimBroker,
        name: str,
        act: Callable[[], Any],
        lost: Exception,
        unclear: Exception,
    ) -> None:
        self.sender = sender
        self.name = name
        self._act = act
        self._lost = lost
        self._unclear = unclear
        self._answer: asyncio.Future[Any] = sender.loop.create_future()
        # Its sender was killed.
        self.is_dead = False
        # The id of the segment whose object it concerns.
        self.segment_id = b""

    @property
    def sender_waits(self) -> bool:
        return not self._answer.done() and not self.is_dead

    def arrive(self, *, is_answered: bool = True) -> None:
        try:
            result, failure = self._act(), None
        except AssertionError:
            raise
        except Exception as error:  # noqa: BLE001 - the answer
            result, failure = None, error
        if not self.sender_waits:
            return
        if not is_answered:
            self._answer.set_exception(self._unclear)
        elif failure is not None:
            self._answer.set_exception(failure)
        else:
            self._answer.set_result(result)

    def lose(self) -> None:
        if self.sender_waits:
            self._answer.set_exception(self._lost)

    def give_up(self) -> None:
        """The sender waits no longer; it arrives later, perhaps."""
        self._answer.set_exception(self._unclear)

    async def answered(self) -> Any:
        return await self._answer
