"""Incomplete epochs: what they contain, and how an operator resolves them.

A restarted query completes its epoch itself. This is for queries that are never restarted, or only
after their pins have expired.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from skylog.bulk.epoch import EpochFailed, Manifest, done_key, manifest_key, marks_of, writer_prefix
from skylog.bulk.manifest import decode_manifest, encode_done, written_by
from skylog.bulk.staging import EpochCommitter, StagingArea
from skylog.client.admin.diskless import DisklessAdmin
from skylog.client.cluster import Cluster
from skylog.kernel.errors import ConfigError, ErrorCode, KafkaError
from skylog.objects.keys import ObjectKey
from skylog.objects.store import Exists, NotFound

# Listings return a key and its neighbours: only the key itself is wanted.
_NEIGHBOURS: Final = 2


@dataclass(frozen=True, slots=True)
class OpenEpoch:
    """``committed``: how many of its objects the coordinators know; None if they do not say."""

    manifest: Manifest
    committed: int | None

    @property
    def name(self) -> str:
        return f"{self.manifest.writer}/{self.manifest.epoch}"

    @property
    def objects(self) -> int:
        return len(self.manifest.objects)

    @property
    def bytes(self) -> int:
        return sum(staged.size for staged in self.manifest.objects)

    @property
    def topics(self) -> list[str]:
        return sorted({one.topic for staged in self.manifest.objects for one in staged.batches})

    def has_expired(self, now_ms: int) -> bool:
        return now_ms >= self.manifest.expires_ms

    def advice(self, now_ms: int) -> str:
        """The recommended action."""
        if not self.has_expired(now_ms):
            return "restart its query, or --finish it if the query is not restarted"
        if self.committed == self.objects:
            return "all of it is committed: --skip only marks it done"
        if self.committed == 0:
            return "none of it is committed: --again, and its query writes it when restarted"
        return (
            "compare the topics with the source; then --skip what is missing, or --again, which "
            "writes all of it, committed rows a second time"
        )


@dataclass(frozen=True, slots=True)
class Found:
    """``unreadable``: keys of invalid manifests, with the reason."""

    epochs: list[OpenEpoch] = field(default_factory=list)
    unreadable: list[tuple[str, str]] = field(default_factory=list)


async def open_epochs(cluster: Cluster, area: StagingArea) -> Found:
    """Those of this client's user, by writer and epoch."""
    by_writer: dict[str, list[ObjectKey]] = {}
    async for info in area.store.list(f"{area.prefix}w/"):
        prefix, slash, _ = info.key.text.rpartition("/")
        by_writer.setdefault(prefix + slash, []).append(info.key)
    found = Found()
    for prefix, keys in by_writer.items():
        marks = marks_of(keys)
        for epoch in sorted(epoch for epoch in marks.manifests if epoch > marks.latest_done):
            try:
                manifest = await _manifest(area, prefix, epoch)
            except NotFound:
                continue  # completed meanwhile
            except EpochFailed as error:
                found.unreadable.append((manifest_key(prefix, epoch).text, str(error)))
                continue
            found.epochs.append(OpenEpoch(manifest, await _committed(cluster, manifest)))
    found.epochs.sort(key=lambda one: (one.manifest.writer, one.manifest.epoch))
    return found


async def _manifest(area: StagingArea, prefix: str, epoch: int) -> Manifest:
    data = await area.store.get(manifest_key(prefix, epoch))
    writer = written_by(data)
    if writer_prefix(area.prefix, writer) != prefix:
        raise EpochFailed(f"the manifest names the writer {writer!r}, whose place is another")
    return decode_manifest(data, writer, epoch)


async def _committed(cluster: Cluster, manifest: Manifest) -> int | None:
    """Files that retention has deleted since are not counted: the coordinators no longer know
    them."""
    admin = DisklessAdmin(cluster)
    try:
        return sum([await _is_known(admin, staged.key) for staged in manifest.objects])
    except KafkaError as error:
        if error.code is not ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
            raise
        return None


async def _is_known(admin: DisklessAdmin, key: str) -> bool:
    async for file in admin.files(key[:-1], page=_NEIGHBOURS):
        if file.object_key >= key:
            return file.object_key == key
    return False


def chosen(epochs: Sequence[OpenEpoch], name: str) -> OpenEpoch:
    """The epoch of that name, WRITER/NUMBER; ConfigError lists the existing ones."""
    for one in epochs:
        if one.name == name:
            return one
    there = ", ".join(one.name for one in epochs) or "none"
    raise ConfigError(f"there is no open epoch {name!r}; open are {there}")


async def finish(area: StagingArea, epoch: OpenEpoch) -> None:
    """Commit the rest of it and mark it done, as its own driver would."""
    manifest = epoch.manifest
    await EpochCommitter(area, manifest.writer).complete(manifest.epoch, ())


async def skip(area: StagingArea, epoch: OpenEpoch) -> None:
    """Mark it done as it is: the uncommitted rest is never written."""
    manifest = epoch.manifest
    prefix = writer_prefix(area.prefix, manifest.writer)
    with suppress(Exists):  # its own driver was faster
        key = done_key(prefix, manifest.epoch)
        await area.store.put(key, encode_done(manifest), if_absent=True)
    await area.release(manifest.writer, manifest.epoch, manifest.objects)


async def begin_again(area: StagingArea, epoch: OpenEpoch) -> None:
    """Forget it: its query writes it again. Committed rows stay."""
    manifest = epoch.manifest
    prefix = writer_prefix(area.prefix, manifest.writer)
    await area.store.delete_many([manifest_key(prefix, manifest.epoch)])
    await area.release(manifest.writer, manifest.epoch, manifest.objects)
