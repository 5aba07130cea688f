"""A Kafka-compatible streaming platform whose topics live in object storage."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from skylog.bulk.frame import read as read

__all__ = ["read"]


def __getattr__(name: str) -> Any:
    """``skylog.read`` loads Arrow, which brokers and clients do without, when it is first used."""
    if name != "read":
        raise AttributeError(f"module 'skylog' has no attribute {name!r}")
    try:
        from skylog.bulk.frame import read  # noqa: PLC0415
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in ("pyarrow", "numpy"):
            raise
        raise ModuleNotFoundError(
            f"skylog.read needs {error.name}: pip install 'skylog[frames]'", name=error.name
        ) from error
    return read
