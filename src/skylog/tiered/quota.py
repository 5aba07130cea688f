"""How fast remote segments are written and read: Kafka's quota over sliding windows. Pure."""

from __future__ import annotations

from skylog.kernel.rates import SimpleRate, throttle_ms


class ByteQuota:
    """Bytes per second over the last windows. What is about to be moved counts as a whole."""

    __slots__ = ("_rate", "bytes_per_second_max")

    def __init__(self, bytes_per_second_max: int, window_count: int, window_seconds: int) -> None:
        # May be changed at any time.
        self.bytes_per_second_max = bytes_per_second_max
        self._rate = SimpleRate(window_count, window_seconds * 1000)

    def throttle_ms(self, now_ms: int) -> int:
        """How long to wait until the rate is within the quota; 0 if it is."""
        elapsed_ms = self._rate.elapsed_ms(now_ms)
        return throttle_ms(self._rate.measure(now_ms), self.bytes_per_second_max, elapsed_ms)

    def record(self, size: int, now_ms: int) -> None:
        self._rate.record(size, now_ms)
