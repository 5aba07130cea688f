"""Settings as fields: a frozen dataclass defines the setting of each field, and its purpose.

    session_timeout_ms_min: int = setting("group.min.session.timeout.ms", "Shortest …")

``bind`` fills such a class from typed values. A setting is *used* when some field is bound to it;
all others that Kafka knows are accepted without effect.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Bound:
    """The setting behind a field."""

    name: str
    doc: str


def setting(name: str, doc: str) -> Any:
    """A dataclass field that holds the setting ``name``."""
    return field(metadata={"setting": Bound(name, doc)})


def bound(cls: type[Any]) -> dict[str, Bound]:
    """Field name to setting, for the fields of ``cls`` that are settings."""
    return {f.name: f.metadata["setting"] for f in fields(cls) if "setting" in f.metadata}


def docs_of(*classes: type[Any]) -> dict[str, str]:
    """Setting name to its documentation."""
    return {known.name: known.doc for cls in classes for known in bound(cls).values()}


def bind(cls: type[T], values: Mapping[str, Any], **others: Any) -> T:
    """Create a ``cls`` from typed values by setting name; fields that are not settings are
    passed in."""
    given = {name: values[known.name] for name, known in bound(cls).items()}
    return cls(**given, **others)
