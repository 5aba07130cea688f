"""A bar of bytes on a terminal's stderr, and nothing anywhere else."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID


class BytesProgress:
    """Bytes read of those planned."""

    def __init__(self, label: str, total: int, *, wanted: bool = True) -> None:
        self._label = label
        self._total = total
        self._shown = wanted and sys.stderr.isatty()
        self._bar: Progress | None = None
        self._task: TaskID | None = None

    def __enter__(self) -> BytesProgress:
        if self._shown:
            self._start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def add(self, size: int) -> None:
        """So many bytes more; from any thread."""
        if self._bar is not None and self._task is not None:
            self._bar.advance(self._task, size)

    def _start(self) -> None:
        from rich.console import Console  # noqa: PLC0415 - takes long to import
        from rich.progress import (  # noqa: PLC0415
            BarColumn,
            DownloadColumn,
            Progress,
            TextColumn,
            TimeRemainingColumn,
            TransferSpeedColumn,
        )

        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            DownloadColumn(binary_units=True),
            TransferSpeedColumn(),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            transient=True,
        )
        self._task = self._bar.add_task(self._label, total=self._total)
        self._bar.start()
