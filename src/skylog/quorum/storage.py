"""Formatting and opening a node's directories, as ``kafka-storage format --standalone`` does.

``meta.properties`` is written last: a directory without it counts as not formatted. All checks come
before the first write, so a refused format changes nothing.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from skylog.kernel.errors import StorageError
from skylog.kernel.ids import Uuid
from skylog.kernel.rng import Random, random_uuid
from skylog.kernel.topics import CLUSTER_METADATA
from skylog.log.checkpoints import LOCK
from skylog.log.files import Files
from skylog.log.locks import DirectoryLock
from skylog.log.names import LOG_SUFFIX, parse_directory_name
from skylog.quorum.bootstrap import bootstrap_records
from skylog.quorum.control import QuorumRecords
from skylog.quorum.meta_properties import (
    FILE_NAME as META_NAME,
)
from skylog.quorum.meta_properties import (
    MetaProperties,
    read_meta_properties,
    write_meta_properties,
)
from skylog.quorum.snapshots import (
    BOOTSTRAP_ID,
    BOOTSTRAP_NAME,
    Snapshot,
    encode_snapshot,
    read_snapshot,
    write_snapshot,
)
from skylog.quorum.voters import KRAFT_VERSION_MAX, Endpoint, ReplicaKey, Voter, VoterSet
from skylog.replicated.log import KeyValue

METADATA_DIRECTORY: Final = f"{CLUSTER_METADATA}-0"
# Kafka reserves the first directory ids for meanings such as "unassigned".
_RESERVED_DIRECTORY_IDS: Final = 100
_FORMAT_FILES_MAX: Final = 16


@dataclass(frozen=True, slots=True)
class NodeStorage:
    """A node's formatted directories."""

    cluster_id: str
    node_id: int
    directory_ids: Mapping[Path, Uuid]
    metadata_dir: Path
    # The first records of a new metadata log.
    bootstrap: Sequence[KeyValue]

    @property
    def replica(self) -> ReplicaKey:
        """This node as a member of the metadata quorum."""
        return ReplicaKey(self.node_id, self.directory_ids[self.metadata_dir])

    @property
    def metadata_log(self) -> Path:
        return self.metadata_dir / METADATA_DIRECTORY


@dataclass(frozen=True, slots=True)
class FormatPlan:
    """What ``format_directory`` writes in addition to the ids."""

    node_id: int
    cluster_id: str
    controller: Endpoint
    bootstrap: Sequence[KeyValue]
    # The initial voters; by default only this node.
    voters: VoterSet | None = None
    # No voters in the log: static voters are in the settings, a joining node is added later.
    joins: bool = False

    def check(self) -> None:
        """StorageError if the voters do not include this node."""
        if self.voters is not None and self.voters.get(self.node_id) is None:
            raise StorageError(
                f"the initial controllers do not name node.id={self.node_id}: "
                f"{', '.join(str(key.id) for key in self.voters.keys)}"
            )


def new_cluster_id(rng: Random) -> str:
    return str(random_uuid(rng))


def format_directory(
    dirs: Sequence[Path],
    plan: FormatPlan,
    rng: Random,
    now_ms: int,
    *,
    metadata_dir: Path | None = None,
    ignore_formatted: bool = False,
) -> NodeStorage:
    """Format every directory that is not formatted yet, and open all of them."""
    plan.check()
    metadata_dir, dirs = _with_metadata_dir(dirs, metadata_dir)
    found = {directory: read_meta_properties(directory) for directory in dirs}
    formatted = [directory for directory, properties in found.items() if properties is not None]
    if formatted and not ignore_formatted:
        raise StorageError(
            f"{formatted[0]} is already formatted; use --ignore-formatted to format the others"
        )
    _check_ids(found, plan.node_id, plan.cluster_id)
    for directory in dirs:
        _check_usable(directory)
    for directory in dirs:
        if found[directory] is None:
            _format(directory, plan, rng, now_ms, is_metadata=directory == metadata_dir)
    return load_directory(dirs, plan.node_id, plan.cluster_id, metadata_dir=metadata_dir)


def format_if_new(
    dirs: Sequence[Path],
    node_id: int,
    controller: Endpoint,
    rng: Random,
    now_ms: int,
    *,
    cluster_id: str | None = None,
    metadata_dir: Path | None = None,
) -> NodeStorage:
    """Open the directories; if none was ever used, format them with the defaults first."""
    first, everything = _with_metadata_dir(dirs, metadata_dir)
    if not any(_is_used(directory) for directory in everything):
        plan = FormatPlan(
            node_id, cluster_id or new_cluster_id(rng), controller, bootstrap_records()
        )
        return format_directory(everything, plan, rng, now_ms, metadata_dir=first)
    return load_directory(everything, node_id, cluster_id, metadata_dir=first)


def load_directory(
    dirs: Sequence[Path],
    node_id: int,
    cluster_id: str | None = None,
    *,
    metadata_dir: Path | None = None,
) -> NodeStorage:
    """Open formatted directories; StorageError if any is not this node's."""
    metadata_dir, dirs = _with_metadata_dir(dirs, metadata_dir)
    found = {directory: read_meta_properties(directory) for directory in dirs}
    for directory, properties in found.items():
        if properties is None:
            raise StorageError(
                f"No {META_NAME} found in {directory}: format the directory first, "
                "or remove it from log.dirs"
            )
    known = _check_ids(found, node_id, cluster_id)
    for directory in dirs:
        _check_usable(directory)
        metadata = directory / METADATA_DIRECTORY
        if directory != metadata_dir and metadata.exists():
            raise StorageError(
                f"Found the metadata log at {metadata}, but it belongs in {metadata_dir}"
            )
    return NodeStorage(
        cluster_id=next(iter(known.values())).cluster_id,
        node_id=node_id,
        directory_ids={
            directory: properties.directory_id
            for directory, properties in known.items()
            if properties.directory_id is not None
        },
        metadata_dir=metadata_dir,
        bootstrap=_read_bootstrap(metadata_dir),
    )


def _with_metadata_dir(
    dirs: Sequence[Path], metadata_dir: Path | None
) -> tuple[Path, Sequence[Path]]:
    """The metadata log is in the first directory by default, as in Kafka."""
    if not dirs:
        raise StorageError("log.dirs names no directory")
    first = metadata_dir or dirs[0]
    return first, list(dict.fromkeys((first, *dirs)))


def _check_ids(
    found: Mapping[Path, MetaProperties | None], node_id: int, cluster_id: str | None
) -> dict[Path, MetaProperties]:
    known = {directory: each for directory, each in found.items() if each is not None}
    seen: dict[Uuid, Path] = {}
    for directory, properties in known.items():
        cluster_id = cluster_id or properties.cluster_id
        if properties.cluster_id != cluster_id:
            raise StorageError(
                f"{directory / META_NAME} belongs to cluster {properties.cluster_id}, "
                f"not to {cluster_id}"
            )
        if properties.node_id != node_id:
            raise StorageError(
                f"{directory / META_NAME} belongs to node {properties.node_id}, but node.id is "
                f"{node_id}: correct node.id, or for a new node empty the directories"
            )
        _check_directory_id(directory, properties.directory_id, seen)
    return known


def _check_directory_id(directory: Path, found: Uuid | None, seen: dict[Uuid, Path]) -> None:
    if found is None:
        raise StorageError(f"directory.id is missing in {directory / META_NAME}")
    if int.from_bytes(found, "big") < _RESERVED_DIRECTORY_IDS:
        raise StorageError(f"{directory / META_NAME} has the reserved directory.id {found}")
    if found in seen:
        raise StorageError(f"{directory} and {seen[found]} have the same directory.id {found}")
    seen[found] = directory


def _check_usable(directory: Path) -> None:
    """The directory, or the nearest existing parent, must be writable and not in use.

    The running broker holds the lock (``LogManager``); this only detects another one early.
    """
    place = directory
    while not place.exists() and place != place.parent:
        place = place.parent
    if not place.is_dir():
        raise StorageError(f"{place} is not a directory")
    if not os.access(place, os.R_OK | os.W_OK | os.X_OK):
        raise StorageError(f"{place} is read-only")
    if (directory / LOCK).exists():
        DirectoryLock(str(directory)).release()


def _is_used(directory: Path) -> bool:
    """Formatted, or has partitions: the remains of an interrupted format do not count."""
    if not directory.is_dir():
        return False
    if (directory / META_NAME).exists():
        return True
    for entry in directory.iterdir():
        if not entry.is_dir() or parse_directory_name(entry.name) is None:
            continue
        if entry.name != METADATA_DIRECTORY or any(entry.glob(f"*{LOG_SUFFIX}")):
            return True
    return False


def _format(
    directory: Path, plan: FormatPlan, rng: Random, now_ms: int, *, is_metadata: bool
) -> None:
    files = Files(_FORMAT_FILES_MAX)
    known = plan.voters.get(plan.node_id) if plan.voters and is_metadata else None
    directory_id = random_uuid(rng) if known is None else known.key.directory_id
    lock: DirectoryLock | None = None
    try:
        directory.mkdir(parents=True, exist_ok=True)
        lock = DirectoryLock(str(directory))
        bootstrap = encode_snapshot(0, Snapshot(plan.bootstrap, QuorumRecords(), 0), now_ms)
        files.replace(str(directory / BOOTSTRAP_NAME), b"".join(bootstrap))
        if is_metadata:
            log = directory / METADATA_DIRECTORY
            log.mkdir(exist_ok=True)
            voter = Voter(ReplicaKey(plan.node_id, directory_id), (plan.controller,))
            quorum = QuorumRecords(KRAFT_VERSION_MAX, plan.voters or VoterSet((voter,)))
            batches = encode_snapshot(0, Snapshot((), quorum, now_ms), now_ms)
            if not plan.joins:
                write_snapshot(files, log / BOOTSTRAP_ID.file_name, batches)
        properties = MetaProperties(plan.cluster_id, plan.node_id, directory_id)
        write_meta_properties(files, directory, properties)
    except OSError as error:
        raise StorageError(f"{directory} cannot be formatted: {error}") from error
    finally:
        if lock is not None:
            lock.release()


def _read_bootstrap(directory: Path) -> Sequence[KeyValue]:
    path = directory / BOOTSTRAP_NAME
    try:
        return read_snapshot(path).records
    except FileNotFoundError:
        # Without the file Kafka uses the defaults of its release.
        return bootstrap_records()
    except OSError as error:
        raise StorageError(f"{path} cannot be read: {error}") from error
