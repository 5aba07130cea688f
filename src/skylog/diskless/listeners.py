"""Listeners for high watermarks."""

from __future__ import annotations

from skylog.diskless.plane import HighWatermarkListener, TopicPartition, Unsubscribe
from skylog.kernel.logging import get_logger

log = get_logger("diskless.plane")


class Listeners:
    """A set of listeners; a failing one affects neither the commit nor the others."""

    __slots__ = ("_listeners", "_next")

    def __init__(self) -> None:
        self._listeners: dict[int, HighWatermarkListener] = {}
        self._next = 0

    def __len__(self) -> int:
        return len(self._listeners)

    def add(self, listener: HighWatermarkListener) -> Unsubscribe:
        number = self._next
        self._next += 1
        self._listeners[number] = listener

        def unsubscribe() -> None:
            self._listeners.pop(number, None)

        return unsubscribe

    def tell(self, partition: TopicPartition, high_watermark: int) -> None:
        for listener in list(self._listeners.values()):
            try:
                listener(partition, high_watermark)
            except Exception:
                log.exception("a listener failed", topic=partition[0], partition=partition[1])
