"""Compares the store's objects with the files that coordinators know, by key, in constant
memory."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

from skylog.client.admin.diskless import DisklessAdmin
from skylog.diskless.files.orphans import STAGED_PREFIX
from skylog.kernel.progress import Progress
from skylog.objects.holds import read_holds
from skylog.objects.keys import ObjectKey, known
from skylog.objects.store import NotFound

if TYPE_CHECKING:
    from skylog.client.cluster import Cluster
    from skylog.objects.holds import Hold
    from skylog.objects.store import ObjectInfo, ObjectStore
    from skylog.wire.messages.describe_diskless_coordinators_response import (
        DescribeDisklessCoordinatorsResponse,
    )
    from skylog.wire.messages.list_diskless_files_response import ListedDisklessFile


class Verdict(Enum):
    """The state of a key; only ``ORPHAN`` is deleted by the next scan."""

    LIVE = "live"
    WAITING = "waiting"  # known, no live batch: deleted after the grace period
    MISSING = "missing"  # known, no object: records are lost if any batch is live
    GONE = "gone"  # known, no live batch, no object: about to be forgotten
    RECENT = "recent"  # unknown, but young: its commit may be in progress
    HELD = "held"  # unknown, kept since a restore
    STAGED = "staged"  # not committed: the pin of its writer, or its age, decides
    KEPT = "kept"  # unknown, and objects of this kind are never scanned
    ORPHAN = "orphan"


@dataclass(frozen=True, slots=True)
class Pair:
    """An object and the file of the same key; at least one of them."""

    object: ObjectInfo | None
    file: ListedDisklessFile | None

    @property
    def key(self) -> str:
        if self.object is not None:
            return self.object.key.text
        return self.file.object_key if self.file is not None else ""

    @property
    def created_ms(self) -> int | None:
        """According to the key."""
        key = known(self.key)
        return None if key is None else key.created_ms

    @property
    def size_differs(self) -> bool:
        if self.object is None or self.file is None:
            return False
        return self.object.size != self.file.size


async def side_by_side(
    objects: AsyncIterator[ObjectInfo], files: AsyncIterator[ListedDisklessFile]
) -> AsyncIterator[Pair]:
    """Every key of either, once, in order."""
    info, file = await _next(objects), await _next(files)
    while info is not None or file is not None:
        if file is None or (info is not None and info.key.text < file.object_key):
            yield Pair(info, None)
            info = await _next(objects)
        elif info is None or file.object_key < info.key.text:
            yield Pair(None, file)
            file = await _next(files)
        else:
            yield Pair(info, file)
            info, file = await _next(objects), await _next(files)


async def _next(found: AsyncIterator[Any]) -> Any:
    return await anext(found, None)


def judge(pair: Pair, threshold_ms: int, holds: Sequence[Hold]) -> Verdict:
    """Pure: ``threshold_ms`` is the broker's; -1 if nothing is scanned."""
    if pair.file is not None:
        live = pair.file.live_batches > 0
        if pair.object is None:
            return Verdict.MISSING if live else Verdict.GONE
        return Verdict.LIVE if live else Verdict.WAITING
    if pair.key.startswith(STAGED_PREFIX):
        return Verdict.STAGED
    created_ms = pair.created_ms
    if threshold_ms < 0 or created_ms is None:
        return Verdict.KEPT
    if any(hold.covers(created_ms) for hold in holds):
        return Verdict.HELD
    return Verdict.ORPHAN if created_ms < threshold_ms else Verdict.RECENT


async def judged(
    store: ObjectStore,
    cluster: Cluster,
    prefix: str,
    about: DescribeDisklessCoordinatorsResponse,
) -> AsyncIterator[tuple[Pair, Verdict]]:
    """Every object and file under a prefix, and its state."""
    holds = await read_holds(store)
    files = DisklessAdmin(cluster).files(prefix)
    done = 0
    with Progress("listing", None) as progress:
        async for pair in side_by_side(store.list(prefix), files):
            verdict = judge(pair, about.orphan_threshold_ms, holds)
            if verdict is Verdict.MISSING:
                pair = await _looked_again(store, pair)  # noqa: PLW2901
                verdict = judge(pair, about.orphan_threshold_ms, holds)
            yield pair, verdict
            done += 1
            progress.advance(done)


async def _looked_again(store: ObjectStore, pair: Pair) -> Pair:
    """The listing may be older than the file."""
    try:
        return Pair(await store.head(ObjectKey.parse(pair.key)), pair.file)
    except NotFound:
        return pair
