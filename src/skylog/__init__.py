"""A Kafka-compatible streaming platform whose topics live in object storage."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from skylog.bulk.frame import read as read
    from skylog.spark.explanation import explain as explain

__all__ = ["explain", "read"]

# Where each is, and the extra that it needs: brokers and clients do without Arrow and Spark.
_LAZY: Final = {
    "read": ("skylog.bulk.frame", "frames"),
    "explain": ("skylog.spark.explanation", "spark"),
}
_EXTRAS: Final = ("numpy", "pyarrow", "pyspark")


def __getattr__(name: str) -> Any:
    """``skylog.read`` and ``skylog.explain`` are loaded when they are first used."""
    if name not in _LAZY:
        raise AttributeError(f"module 'skylog' has no attribute {name!r}")
    module, extra = _LAZY[name]
    try:
        return getattr(import_module(module), name)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in _EXTRAS:
            raise
        raise ModuleNotFoundError(
            f"skylog.{name} needs {error.name}: pip install 'skylog[{extra}]'", name=error.name
        ) from error
