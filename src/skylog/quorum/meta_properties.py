"""``meta.properties``: the cluster and the node that a directory belongs to."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from skylog.kernel.errors import ConfigError, StorageError
from skylog.kernel.ids import Uuid
from skylog.kernel.limits import QUORUM_FILE_BYTES_MAX
from skylog.kernel.properties import format_properties, parse_properties
from skylog.log.files import Files

FILE_NAME: Final = "meta.properties"
_VERSION: Final = "1"


@dataclass(frozen=True, slots=True)
class MetaProperties:
    """Version 1 of the file. ``directory_id`` is missing in files older than Kafka 3.7."""

    cluster_id: str
    node_id: int
    directory_id: Uuid | None

    def to_text(self) -> str:
        values = {
            "cluster.id": self.cluster_id,
            "node.id": str(self.node_id),
            "version": _VERSION,
        }
        if self.directory_id is not None:
            values["directory.id"] = str(self.directory_id)
        return format_properties(values)

    @classmethod
    def from_text(cls, text: str) -> MetaProperties:
        """Raises ValueError with the reason."""
        try:
            values = parse_properties(text)
        except ConfigError as error:
            raise ValueError(str(error)) from error
        if values.get("version") != _VERSION:
            raise ValueError(f"version is {values.get('version')!r}, expected {_VERSION!r}")
        for name in ("cluster.id", "node.id"):
            if not values.get(name):
                raise ValueError(f"{name} is missing")
        directory_id = values.get("directory.id")
        return cls(
            cluster_id=values["cluster.id"],
            node_id=int(values["node.id"]),
            directory_id=None if directory_id is None else Uuid.parse(directory_id),
        )


def read_meta_properties(directory: Path) -> MetaProperties | None:
    """The directory's file; None if there is none; StorageError if it cannot be read."""
    path = directory / FILE_NAME
    try:
        if path.stat().st_size > QUORUM_FILE_BYTES_MAX:
            raise StorageError(f"{path} is not a {FILE_NAME} file: it is too large")
        return MetaProperties.from_text(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (ValueError, OSError) as error:
        raise StorageError(f"{path} cannot be read: {error}") from error


def write_meta_properties(files: Files, directory: Path, properties: MetaProperties) -> None:
    files.replace(str(directory / FILE_NAME), properties.to_text().encode())
