"""Progress on stderr, for terminals only, and only if the work takes a while."""

from __future__ import annotations

import sys
import threading
from types import TracebackType
from typing import TYPE_CHECKING, Final

from skylog.kernel.clock import SystemClock

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress
    from rich.progress import TaskID

_SILENT_SECONDS: Final = 1.0
_STEP: Final = 0.1


class Progress:
    """A bar towards ``total``, or a count if there is none; with units if ``in_bytes``."""

    def __init__(
        self, label: str, total: int | None, *, quiet: bool = False, in_bytes: bool = False
    ) -> None:
        self._label = label
        self._total = total
        self._in_bytes = in_bytes
        self._done = 0
        self._clock = SystemClock()
        self._lock = threading.Lock()
        self._silent = quiet or not sys.stderr.isatty()
        self._next = self._clock.monotonic() + _SILENT_SECONDS
        self._shown: RichProgress | None = None
        self._task: TaskID | None = None

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._shown is not None and self._task is not None:
            self._shown.update(self._task, completed=self._done)
            self._shown.stop()

    def add(self, more: int) -> None:
        """Advance by this amount; from any thread."""
        with self._lock:
            self._done += more
            self.advance(self._done)

    def advance(self, done: int) -> None:
        """Set the completed amount."""
        self._done = done
        if self._silent or self._clock.monotonic() < self._next:
            return
        self._next = self._clock.monotonic() + _STEP
        if self._shown is None:
            self._start()
        if self._shown is not None and self._task is not None:
            self._shown.update(self._task, completed=done)

    def _start(self) -> None:
        from rich.console import Console  # noqa: PLC0415 - slow to import
        from rich.progress import (  # noqa: PLC0415
            BarColumn,
            DownloadColumn,
            MofNCompleteColumn,
            ProgressColumn,
            TextColumn,
            TimeElapsedColumn,
            TransferSpeedColumn,
        )
        from rich.progress import Progress as RichProgress  # noqa: PLC0415

        amount: list[ProgressColumn] = [MofNCompleteColumn()]
        if self._in_bytes:
            amount = [DownloadColumn(binary_units=True), TransferSpeedColumn()]
        self._shown = RichProgress(
            TextColumn("{task.description}"),
            BarColumn(),
            *amount,
            TimeElapsedColumn(),
            console=Console(stderr=True),
            transient=True,
        )
        self._task = self._shown.add_task(self._label, total=self._total)
        self._shown.start()
