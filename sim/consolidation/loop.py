"""An event loop per process, whose time is the world's: it runs only when the world says so."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from typing import Any, Final

from skylog.kernel.clock import Clock

# Far more than what can be done at one moment.
TURNS_MAX: Final = 5_000


class _NoFiles:
    """There is nothing to wait for outside of the world."""

    def select(self, timeout: float | None) -> list[Any]:
        return []

    def close(self) -> None: ...


class ProcessLoop(asyncio.BaseEventLoop):
    """Real tasks, locks and timers. Nothing is waited for in real time."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._clock = clock
        self._selector = _NoFiles()
        self.failures: list[BaseException] = []
        self.set_exception_handler(self._note)

    def time(self) -> float:
        return self._clock.monotonic()

    def run_ready(self) -> bool:
        """Everything that can go on does, until all of it waits; False if nothing could."""
        went_on = False
        asyncio._set_running_loop(self)
        self._thread_id = threading.get_ident()
        try:
            for _ in range(TURNS_MAX):
                if not self._has_work():
                    break
                went_on = True
                self._run_once()  # type: ignore[attr-defined]
            else:
                raise AssertionError("a task goes round in circles")
        finally:
            self._thread_id = None  # type: ignore[assignment]
            asyncio._set_running_loop(None)
        if self.failures:
            failure = self.failures[0]
            raise AssertionError(f"nobody waits for what failed: {failure!r}") from failure
        return went_on

    def kill(self) -> None:
        """The process is gone: none of its tasks goes on."""
        self._ready.clear()  # type: ignore[attr-defined]
        self._scheduled.clear()  # type: ignore[attr-defined]
        for task in asyncio.all_tasks(self):
            task._log_destroy_pending = False  # type: ignore[attr-defined]
            with contextlib.suppress(Exception):  # it may want to wait for something
                task.get_coro().close()
        self.close()

    def _has_work(self) -> bool:
        if self._ready:  # type: ignore[attr-defined]
            return True
        timers = self._scheduled  # type: ignore[attr-defined]
        return bool(timers) and timers[0].when() <= self.time()

    def _note(self, loop: Any, context: dict[str, Any]) -> None:
        failure = context.get("exception")
        if isinstance(failure, Exception):
            self.failures.append(failure)

    def _process_events(self, event_list: list[Any]) -> None: ...

    def _write_to_self(self) -> None: ...
