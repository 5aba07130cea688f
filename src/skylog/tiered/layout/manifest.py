"""Pure: the manifest of a remote segment, ``….rsm-manifest`` of Aiven's plugin.

It is put last and deleted first: a segment whose manifest is there is whole. Its text is compact
JSON with the plugin's properties in the plugin's order and no others, since the plugin's reader
refuses unknown ones. What is read is hostile: every number is checked before it is used.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final, NamedTuple

from skylog.kernel.ids import Uuid
from skylog.kernel.topics import topic_name_fault
from skylog.tiered.layout.chunks import (
    INT32_MAX,
    BadManifest,
    Chunks,
    FixedChunks,
    VariableChunks,
    decode_sizes,
    encode_sizes,
)
from skylog.tiered.segments import IndexType, RemoteSegment, SegmentState, TopicIdPartition

_VERSION: Final = "1"
_INT64_MAX: Final = (1 << 63) - 1
_EPOCHS_MAX: Final = 100_000
_EPOCH: Final = re.compile(r"(?:0|[1-9][0-9]{0,9})\Z", re.ASCII)


class EncryptedSegment(BadManifest):
    """The segment is encrypted, and this version has no keys."""


class IndexRange(NamedTuple):
    """Where an index is in the object that has all of them."""

    position: int
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """``segment`` is None if the manifest does not describe it; the plugin itself never reads that
    part."""

    chunks: Chunks
    # Without TRANSACTION if no transaction was aborted.
    indexes: Mapping[IndexType, IndexRange]
    compression: bool
    segment: RemoteSegment | None

    @property
    def indexes_size(self) -> int:
        """The least size of the object with the indexes."""
        return max((found.position + found.size for found in self.indexes.values()), default=0)


def plain_manifest(
    segment: RemoteSegment, chunk_size: int, sizes: Mapping[IndexType, int]
) -> Manifest:
    """The manifest of a segment whose objects are as they are on disk."""
    indexes, position = {}, 0
    for kind in IndexType:
        if kind in sizes:
            indexes[kind] = IndexRange(position, sizes[kind])
            position += sizes[kind]
    chunks = FixedChunks.plain(chunk_size, segment.size)
    return Manifest(chunks=chunks, indexes=indexes, compression=False, segment=segment)


def encode_manifest(manifest: Manifest) -> bytes:
    """The text as the plugin writes it."""
    indexes = {
        kind.value: found._asdict() if (found := manifest.indexes.get(kind)) else None
        for kind in IndexType
    }
    whole: dict[str, Any] = {
        "version": _VERSION,
        "chunkIndex": _chunks_json(manifest.chunks),
        "segmentIndexes": indexes,
        "compression": manifest.compression,
    }
    if manifest.segment is not None:
        whole["remoteLogSegmentMetadata"] = _segment_json(manifest.segment)
    return json.dumps(whole, separators=(",", ":"), ensure_ascii=False).encode()


def decode_manifest(data: bytes) -> Manifest:
    """Parse a manifest; BadManifest for what the plugin would not write, EncryptedSegment."""
    try:
        whole = json.loads(data, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise BadManifest(f"a manifest that is not JSON: {error}") from None
    whole = _object(whole, "manifest")
    if whole.get("version") != _VERSION:
        raise BadManifest(f"a manifest of version {_shown(whole.get('version'))}")
    if whole.get("encryption") is not None:
        raise EncryptedSegment(f"the segment is encrypted with key {_key_id(whole['encryption'])}")
    compression = whole.get("compression")
    if not isinstance(compression, bool):
        raise BadManifest(f"compression is {_shown(compression)}")
    described = whole.get("remoteLogSegmentMetadata")
    chunks, indexes = _chunks(whole.get("chunkIndex")), _indexes(whole.get("segmentIndexes"))
    segment = None
    if described is not None:
        empty = IndexType.TRANSACTION not in indexes
        segment = _segment(described, chunks.original_file_size, txn_index_empty=empty)
    return Manifest(chunks=chunks, indexes=indexes, compression=compression, segment=segment)


def _chunks_json(chunks: Chunks) -> dict[str, Any]:
    sizes = {
        "originalChunkSize": chunks.original_chunk_size,
        "originalFileSize": chunks.original_file_size,
    }
    if isinstance(chunks, VariableChunks):
        return {"type": "variable", **sizes, "transformedChunks": encode_sizes(chunks.sizes)}
    return {
        "type": "fixed",
        **sizes,
        "transformedChunkSize": chunks.transformed_chunk_size,
        "finalTransformedChunkSize": chunks.final_transformed_chunk_size,
    }


def _chunks(found: object) -> Chunks:
    given = _object(found, "chunkIndex")
    chunk_size = _number(given, "originalChunkSize", INT32_MAX, least=1)
    file_size = _number(given, "originalFileSize", INT32_MAX)
    match given.get("type"):
        case "fixed":
            size = _number(given, "transformedChunkSize", INT32_MAX)
            last = _number(given, "finalTransformedChunkSize", INT32_MAX)
            return FixedChunks(chunk_size, file_size, size, last)
        case "variable":
            text = given.get("transformedChunks")
            if not isinstance(text, str):
                raise BadManifest("transformedChunks is missing")
            # Refuses too many chunks before their sizes are decompressed.
            count = FixedChunks(chunk_size, file_size, 0, 0).count
            return VariableChunks(chunk_size, file_size, decode_sizes(text, count))
        case other:
            raise BadManifest(f"chunkIndex of type {_shown(other)}")


def _indexes(found: object) -> dict[IndexType, IndexRange]:
    given = _object(found, "segmentIndexes")
    indexes = {}
    for kind in IndexType:
        if given.get(kind.value) is None:
            if kind is not IndexType.TRANSACTION:
                raise BadManifest(f"no {kind.value} index")
            continue
        place = _object(given[kind.value], kind.value)
        position = _number(place, "position", INT32_MAX)
        size = _number(place, "size", INT32_MAX)
        if position + size > INT32_MAX:
            raise BadManifest(f"{kind.value} index up to {position + size}")
        indexes[kind] = IndexRange(position, size)
    return indexes


def _segment_json(segment: RemoteSegment) -> dict[str, Any]:
    topic = {"topic": segment.topic, "partition": segment.partition.partition_index}
    return {
        "remoteLogSegmentId": {
            "topicIdPartition": {
                "topicId": str(segment.partition.topic_id),
                "topicPartition": topic,
            },
            "id": str(segment.id),
        },
        "startOffset": segment.start_offset,
        "endOffset": segment.end_offset,
        "maxTimestampMs": segment.max_timestamp_ms,
        "brokerId": segment.broker_id,
        "eventTimestampMs": segment.event_timestamp_ms,
        "segmentLeaderEpochs": {str(epoch): offset for epoch, offset in segment.epochs},
    }


def _segment(found: object, size: int, *, txn_index_empty: bool) -> RemoteSegment:
    given = _object(found, "remoteLogSegmentMetadata")
    name = _object(given.get("remoteLogSegmentId"), "remoteLogSegmentId")
    whose = _object(name.get("topicIdPartition"), "topicIdPartition")
    place = _object(whose.get("topicPartition"), "topicPartition")
    topic = place.get("topic")
    if not isinstance(topic, str) or topic_name_fault(topic):
        raise BadManifest(f"topic {_shown(topic)}")
    start = _number(given, "startOffset", _INT64_MAX)
    index = _number(place, "partition", INT32_MAX)
    return RemoteSegment(
        topic=topic,
        partition=TopicIdPartition(_uuid(whose.get("topicId")), index),
        id=_uuid(name.get("id")),
        start_offset=start,
        end_offset=_number(given, "endOffset", _INT64_MAX - 1, least=start),
        broker_id=_number(given, "brokerId", INT32_MAX, least=-INT32_MAX - 1),
        max_timestamp_ms=_number(given, "maxTimestampMs", _INT64_MAX, least=-_INT64_MAX - 1),
        event_timestamp_ms=_number(given, "eventTimestampMs", _INT64_MAX, least=-_INT64_MAX - 1),
        epochs=_epochs(given.get("segmentLeaderEpochs")),
        size=size,
        state=SegmentState.COPY_FINISHED,
        txn_index_empty=txn_index_empty,
    )


def _epochs(found: object) -> tuple[tuple[int, int], ...]:
    given = _object(found, "segmentLeaderEpochs")
    if not 1 <= len(given) <= _EPOCHS_MAX:
        raise BadManifest(f"{len(given)} leader epochs")
    epochs = []
    for text in given:
        if not _EPOCH.match(text) or int(text) > INT32_MAX:
            raise BadManifest(f"leader epoch {_shown(text)}")
        epochs.append((int(text), _number(given, text, _INT64_MAX)))
    epochs.sort()
    for (_, before), (epoch, offset) in pairwise(epochs):
        if offset < before:
            raise BadManifest(f"leader epoch {epoch} that begins before the one below it")
    return tuple(epochs)


def _object(found: object, what: str) -> dict[str, Any]:
    if not isinstance(found, dict):
        raise BadManifest(f"{what} is {_shown(found)}")
    return found


def _number(given: Mapping[str, Any], name: str, most: int, *, least: int = 0) -> int:
    found = given.get(name)
    if not isinstance(found, int) or isinstance(found, bool) or not least <= found <= most:
        raise BadManifest(f"{name[:50]} is {_shown(found)}")
    return found


def _uuid(found: object) -> Uuid:
    try:
        parsed = Uuid.parse(found) if isinstance(found, str) and len(found) == 22 else None
    except ValueError:
        parsed = None
    if parsed is None or str(parsed) != found:
        raise BadManifest(f"an id {_shown(found)}")
    return parsed


def _key_id(encryption: object) -> str:
    """The plugin writes ``<id of the key>:<encrypted key>``."""
    data_key = encryption.get("dataKey") if isinstance(encryption, dict) else None
    return _shown(data_key.rpartition(":")[0] if isinstance(data_key, str) else data_key)


def _shown(found: object) -> str:
    return repr(found)[:50] if not isinstance(found, dict | list) else "not a value"


def _no_constant(name: str) -> None:
    raise ValueError(name)
