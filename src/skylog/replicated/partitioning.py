"""The partition of a key in an internal topic: its leader is the key's coordinator."""

from __future__ import annotations


def java_hash(text: str) -> int:
    """Java's ``String.hashCode``, over UTF-16, as a signed 32-bit number."""
    value = 0
    encoded = text.encode("utf-16-be", "surrogatepass")
    for high, low in zip(encoded[::2], encoded[1::2], strict=True):
        value = (value * 31 + (high << 8 | low)) & 0xFFFFFFFF
    return value - 2**32 if value >= 2**31 else value


def partition_of(key: str, partition_count: int) -> int:
    """The partition of the key, as in Kafka."""
    # Java has no absolute value for the smallest number; Kafka uses 0 for it.
    number = java_hash(key)
    return (0 if number == -(2**31) else abs(number)) % partition_count
