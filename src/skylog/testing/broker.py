"""A whole node in a thread of this process, on free ports and in its own directory."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from skylog.testing.threads import NodeThread

# Settings with which a broker starts quickly; all can be overridden.
DEFAULTS: Mapping[str, str] = {
    "listeners": "PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0",
    "http.listener": "",
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "4",
}


class Broker(NodeThread):
    """``with Broker() as b: … b.bootstrap``; settings are Kafka's, with dots or underscores."""

    def __init__(
        self,
        settings: Mapping[str, str] | None = None,
        *,
        directory: Path | None = None,
    ) -> None:
        """``directory`` keeps the data beyond this broker; by default it is deleted with the
        broker."""
        self._temporary = None if directory else tempfile.TemporaryDirectory(prefix="skylog-")
        self.directory = directory or Path(self._temporary.name)  # type: ignore[union-attr]
        given = {**DEFAULTS, **(settings or {}), "log.dirs": str(self.directory)}
        super().__init__([f"{key}={value}" for key, value in given.items()])

    @property
    def bootstrap(self) -> str:
        """``host:port``, for ``bootstrap.servers``."""
        return self.node.address()

    def address(self, listener: str) -> str:
        """``host:port`` of a named listener."""
        return self.node.address(listener)

    def start(self) -> Self:
        """Start; raises the error that prevents the broker from starting."""
        try:
            return super().start()
        except BaseException:
            self._clean_up()
            raise

    def stop(self) -> None:
        """Shut down cleanly and free the ports; the data in a given directory stays."""
        try:
            super().stop()
        finally:
            self._clean_up()

    def _clean_up(self) -> None:
        if self._temporary is not None:
            self._temporary.cleanup()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()
