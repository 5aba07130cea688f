"""Limits the bytes that wait in the writer, and queues requests for space. Pure.

A coordinator may use as much as is still free of twice the limit: alone it gets the limit. If
several are blocked, each has an equal share, and the same share is left for the others.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from skylog.diskless.writer.file import Request


class Room:
    """Requests in order of arrival; none overtakes another that needs the same coordinator.

    The last one may be larger than what is free, so that large requests get their turn too.
    """

    def __init__(self, bytes_max: int) -> None:
        self._free = 2 * bytes_max
        self._taken: dict[int, int] = {}
        self._waiting: deque[Request] = deque()
        self._waited_for: set[int] = set()

    @property
    def is_waited_for(self) -> bool:
        return bool(self._waiting)

    def take(self, request: Request) -> bool:
        """False: there is no space now, and the request is queued."""
        if self._fits(request):
            self._take(request)
            return True
        self._wait(request)
        return False

    def give_back(self, request: Request) -> None:
        for coordinator_id, size in request.bytes_by_coordinator.items():
            self._free += size
            self._taken[coordinator_id] -= size

    def admit(self) -> list[Request]:
        """The queued requests that have space now."""
        waiting, self._waiting = self._waiting, deque()
        self._waited_for.clear()
        return [request for request in waiting if self.take(request)]

    def _fits(self, request: Request) -> bool:
        needed = request.bytes_by_coordinator
        return self._waited_for.isdisjoint(needed) and all(
            self._taken.get(coordinator_id, 0) < self._free for coordinator_id in needed
        )

    def _take(self, request: Request) -> None:
        request.waits = False
        for coordinator_id, size in request.bytes_by_coordinator.items():
            self._free -= size
            self._taken[coordinator_id] = self._taken.get(coordinator_id, 0) + size

    def _wait(self, request: Request) -> None:
        request.waits = True
        self._waiting.append(request)
        self._waited_for.update(request.bytes_by_coordinator)
