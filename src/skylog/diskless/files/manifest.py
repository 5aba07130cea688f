"""Pure: the contents of a backup, as JSON that is written last and completes it.

Parts are named by their content, so that nothing is ever overwritten and unchanged parts are
written once: ``backup/node-1/diskless-metadata-0/<digest>``. A manifest is only written after all
of its parts; parts without a manifest are left over from an interrupted backup.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from hashlib import blake2b
from typing import Any, Final

from skylog.kernel.errors import StorageError
from skylog.objects.keys import BadKey, ObjectKey

VERSION: Final = 1
_DIGEST_BYTES: Final = 16


@dataclass(frozen=True, slots=True)
class Part:
    """One object: a snapshot file, or a range of a log."""

    key: str
    size: int
    digest: str
    # The offsets that it contains; for a snapshot, those that it covers.
    start_offset: int
    end_offset: int

    @property
    def object_key(self) -> ObjectKey:
        try:
            return ObjectKey.parse(self.key)
        except BadKey as error:
            raise StorageError(f"a backup names {self.key!r}, which is not an object") from error

    def check(self, data: bytes) -> None:
        if len(data) != self.size or digest_of(data) != self.digest:
            raise StorageError(f"{self.key} differs from what was backed up")


@dataclass(frozen=True, slots=True)
class LogBackup:
    """A log: its latest snapshot if it has one, and everything committed after it."""

    topic: str
    partition: int
    topic_id: str
    snapshot: Part | None
    snapshot_name: str
    pieces: tuple[Part, ...]

    @property
    def start_offset(self) -> int:
        return self.snapshot.end_offset if self.snapshot else 0

    @property
    def end_offset(self) -> int:
        return self.pieces[-1].end_offset if self.pieces else self.start_offset

    @property
    def parts(self) -> Sequence[Part]:
        return [*([self.snapshot] if self.snapshot else []), *self.pieces]


@dataclass(frozen=True, slots=True)
class Manifest:
    """Everything that is needed to rebuild a node on empty disks.

    ``created_ms`` is when the backup began: what was committed later may not be in it.
    """

    cluster_id: str
    node_id: int
    # In the order of ``log.dirs``, the one with the metadata log first.
    directory_ids: tuple[str, ...]
    created_ms: int
    # Kafka's quorum-state file.
    election: str
    logs: tuple[LogBackup, ...]

    def to_bytes(self) -> bytes:
        return json.dumps({"version": VERSION, **asdict(self)}).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> Manifest:
        """StorageError for anything that ``to_bytes`` would not write."""
        try:
            values = json.loads(data)
            if values.pop("version") != VERSION:
                raise StorageError("the backup was made by another version of skylog")
            return cls(
                cluster_id=_text(values, "cluster_id"),
                node_id=int(values["node_id"]),
                directory_ids=tuple(map(str, values["directory_ids"])),
                created_ms=int(values["created_ms"]),
                election=_text(values, "election"),
                logs=tuple(map(_log, values["logs"])),
            )
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise StorageError(f"the manifest of the backup is damaged: {error!r}") from error


def _log(values: Mapping[str, Any]) -> LogBackup:
    snapshot = values["snapshot"]
    return LogBackup(
        topic=_text(values, "topic"),
        partition=int(values["partition"]),
        topic_id=_text(values, "topic_id"),
        snapshot=None if snapshot is None else _part(snapshot),
        snapshot_name=_text(values, "snapshot_name"),
        pieces=tuple(map(_part, values["pieces"])),
    )


def _part(values: Mapping[str, Any]) -> Part:
    return Part(
        key=_text(values, "key"),
        size=int(values["size"]),
        digest=_text(values, "digest"),
        start_offset=int(values["start_offset"]),
        end_offset=int(values["end_offset"]),
    )


def _text(values: Mapping[str, Any], name: str) -> str:
    found = values[name]
    if not isinstance(found, str):
        raise TypeError(f"{name} is not text")
    return found


def digest_of(data: bytes) -> str:
    return blake2b(data, digest_size=_DIGEST_BYTES).hexdigest()


def node_prefix(node_id: int) -> str:
    return f"backup/node-{node_id}/"


def manifest_prefix(node_id: int) -> str:
    return f"{node_prefix(node_id)}manifests/"


def manifest_key(node_id: int, created_ms: int, unique: bytes) -> ObjectKey:
    """Sorts by time."""
    name = f"{created_ms:012x}-{unique.hex()}"
    return ObjectKey.named("backup", f"node-{node_id}", "manifests", name)


def part_key(node_id: int, topic: str, partition: int, digest: str) -> ObjectKey:
    log = f"{topic.strip('_').replace('_', '-')}-{partition}"
    return ObjectKey.named("backup", f"node-{node_id}", log, digest)
