"""A manifest as bytes: JSON, so that the contents of an epoch are readable.

Pure: everything in it is validated.
"""

from __future__ import annotations

import json
from typing import Any, Final

from skylog.bulk.epoch import EpochFailed, Manifest
from skylog.client.bulk.types import StagedBatch, StagedObject
from skylog.kernel.ids import Uuid
from skylog.objects.keys import BadKey, ObjectKey

VERSION: Final = 0


def encode_manifest(manifest: Manifest) -> bytes:
    """Topics stand once, batches are [topic, partition, byte offset, byte size]."""
    topics: dict[tuple[str, Uuid], int] = {}
    objects = []
    for staged in manifest.objects:
        batches = [
            [
                topics.setdefault((batch.topic, batch.topic_id), len(topics)),
                batch.partition,
                batch.byte_offset,
                batch.byte_size,
            ]
            for batch in staged.batches
        ]
        objects.append({"key": staged.key, "size": staged.size, "batches": batches})
    document = {
        "version": VERSION,
        "writer": manifest.writer,
        "epoch": manifest.epoch,
        "expires_ms": manifest.expires_ms,
        "topics": [[name, str(topic_id)] for name, topic_id in topics],
        "objects": objects,
    }
    return json.dumps(document, separators=(",", ":")).encode()


def encode_done(manifest: Manifest) -> bytes:
    """The mark of a completed epoch: the same from every attempt that completes the manifest."""
    first = manifest.objects[0].key if manifest.objects else None
    document = {
        "version": VERSION,
        "writer": manifest.writer,
        "epoch": manifest.epoch,
        "first": first,
    }
    return json.dumps(document, separators=(",", ":")).encode()


def decode_manifest(data: bytes, writer: str, epoch: int) -> Manifest:
    """Read a manifest; EpochFailed where it is none, or another's."""
    try:
        document = json.loads(data)
        if document["version"] != VERSION:
            raise ValueError(f"version {document['version']}")
        found = Manifest(
            _text(document["writer"]),
            _number(document["epoch"]),
            _number(document["expires_ms"]),
            _objects(document),
        )
    except (ValueError, KeyError, TypeError, IndexError, RecursionError, BadKey) as error:
        raise EpochFailed(
            f"the manifest of epoch {epoch} of writer {writer} cannot be read: {error!r}"
        ) from error
    if (found.writer, found.epoch) != (writer, epoch):
        raise EpochFailed(
            f"the manifest of epoch {epoch} of writer {writer} is one of epoch {found.epoch} of"
            f" writer {found.writer}"
        )
    return found


def written_by(data: bytes) -> str:
    """The writer that a manifest names; EpochFailed where it names none."""
    try:
        return _text(json.loads(data)["writer"])
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise EpochFailed(f"the manifest cannot be read: {error!r}") from error


def _objects(document: Any) -> tuple[StagedObject, ...]:
    topics = [(_text(name), Uuid.parse(topic_id)) for name, topic_id in document["topics"]]
    return tuple(
        StagedObject(
            ObjectKey.parse(_text(staged["key"])).text,
            _number(staged["size"]),
            tuple(
                StagedBatch(*topics[_number(topic)], *map(_number, place))
                for topic, *place in staged["batches"]
            ),
        )
        for staged in document["objects"]
    )


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{value!r} is not text")
    return value


def _number(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ValueError(f"{value!r} is not a number")
    return value
