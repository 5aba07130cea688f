"""Batches for tests, made of the fields that a test is about."""

from __future__ import annotations

from typing import Any, TypeVar

from skylog.diskless.batch import BatchCoordinate, BatchToCommit, Extent, ProducerStamp, Stamp

PartT = TypeVar("PartT", Extent, Stamp, ProducerStamp)


def to_commit(object_key: str, **fields: Any) -> BatchToCommit:
    """``fields``: those of the batch, and of its parts."""
    extent = _taken(Extent, fields | {"object_key": object_key})
    parts = (extent, _taken(Stamp, fields), _taken(ProducerStamp, fields))
    rest = {name: fields[name] for name in fields if not any(name in one._fields for one in parts)}
    return BatchToCommit(extent=extent, stamp=parts[1], producer=parts[2], **rest)


def coordinate(object_key: str, batch_id: int = 1, **fields: Any) -> BatchCoordinate:
    extent = _taken(Extent, fields | {"object_key": object_key})
    return BatchCoordinate(batch_id=batch_id, extent=extent, stamp=_taken(Stamp, fields))


def _taken(part: type[PartT], fields: dict[str, Any]) -> PartT:
    return part(**{name: fields[name] for name in part._fields if name in fields})
