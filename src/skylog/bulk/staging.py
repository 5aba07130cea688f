"""Stages objects and completes epochs, as ``epoch.py`` decides.

Brokers keep an unpinned object for a day, which is how long tasks may take; after that the driver's
pins keep it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from skylog.bulk.encode import RowBatch
from skylog.bulk.epoch import (
    PIN_LIFETIME_MS,
    Attempt,
    Claim,
    EpochFailed,
    Manifest,
    NotBegun,
    Step,
    done_key,
    forget_claim,
    manifest_key,
    marks_of,
    marks_to_sweep,
    next_step,
    writer_prefix,
)
from skylog.bulk.manifest import decode_manifest, encode_done, encode_manifest
from skylog.client.bulk import (
    CommitStagedResult,
    PinResult,
    StagedBatch,
    StagedObject,
    commit_staged,
    pin_staged,
)
from skylog.client.cluster import Cluster
from skylog.client.errors import error_of
from skylog.diskless.layout import HEADER, Layout, arrange
from skylog.kernel.clock import Clock
from skylog.kernel.errors import KafkaError
from skylog.kernel.ids import Uuid
from skylog.kernel.limits import BULK_COMMIT_BATCHES_PER_REQUEST
from skylog.kernel.rng import Random
from skylog.objects.keys import ObjectKey
from skylog.objects.store import Exists, NotFound, ObjectError, ObjectStore

OBJECT_BYTES_DEFAULT: Final = 32 * 1024 * 1024
# An object and its batches are one item each of the request that commits it.
_BATCHES_PER_OBJECT: Final = BULK_COMMIT_BATCHES_PER_REQUEST // 2


class Brokers(Protocol):
    """The brokers' side: pins and commits staged objects."""

    async def pin(
        self,
        writer: str,
        epoch: int,
        objects: Sequence[StagedObject],
        lifetime_ms: int,
        *,
        release: bool = False,
    ) -> list[PinResult]: ...

    async def commit(
        self, writer: str, epoch: int, objects: Sequence[StagedObject]
    ) -> list[CommitStagedResult]: ...


@dataclass(frozen=True, slots=True)
class ClusterBrokers:
    """Those of a cluster."""

    cluster: Cluster

    async def pin(
        self,
        writer: str,
        epoch: int,
        objects: Sequence[StagedObject],
        lifetime_ms: int,
        *,
        release: bool = False,
    ) -> list[PinResult]:
        return await pin_staged(self.cluster, writer, epoch, objects, lifetime_ms, release=release)

    async def commit(
        self, writer: str, epoch: int, objects: Sequence[StagedObject]
    ) -> list[CommitStagedResult]:
        return await commit_staged(self.cluster, writer, epoch, objects)


@dataclass(frozen=True, slots=True)
class StagingArea:
    """The brokers, their bucket, and the prefix under which this client's user may stage."""

    brokers: Brokers
    store: ObjectStore
    prefix: str
    clock: Clock
    rng: Random

    async def pin(self, writer: str, epoch: int, objects: Sequence[StagedObject]) -> int:
        """Pin objects; returns when the first of these pins expires."""
        found = await self.brokers.pin(writer, epoch, objects, PIN_LIFETIME_MS)
        for staged, result in zip(objects, found, strict=True):
            error = error_of(result.error, f"staged object {staged.key}: {result.message}")
            if error is not None:
                raise error
        return min(result.expires_ms for result in found)

    async def release(self, writer: str, epoch: int, objects: Sequence[StagedObject]) -> None:
        """Release pins. They would expire anyway, so a failure is ignored."""
        if not objects:
            return
        try:
            await self.brokers.pin(writer, epoch, objects, 0, release=True)
        except KafkaError:
            return

    async def discard(self, writer: str, epoch: int, objects: Sequence[StagedObject]) -> None:
        """Remove objects that will never be committed; the orphan scan finds the rest."""
        await self.release(writer, epoch, objects)
        await self.delete([ObjectKey.parse(staged.key) for staged in objects])

    async def delete(self, keys: Sequence[ObjectKey]) -> None:
        """Remove what is no longer needed; what cannot be removed now does no harm."""
        if not keys:
            return
        try:
            await self.store.delete_many(keys)
        except ObjectError:
            return


# A task's side -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Piece:
    topic: str
    topic_id: Uuid
    partition: int
    buffer: bytes


def objects_of(batches: Sequence[RowBatch], object_bytes: int) -> list[Layout[_Piece]]:
    """Arrange batches in objects of limited size and batch count."""
    parts: list[list[_Piece]] = []
    size = 0
    for batch in batches:
        crowded = parts and len(parts[-1]) >= _BATCHES_PER_OBJECT
        if not parts or crowded or size + batch.size > object_bytes:
            parts.append([])
            size = len(HEADER)
        parts[-1].append(_Piece(batch.topic, batch.topic_id, batch.partition, batch.joined()))
        size += batch.size
    return [arrange(part) for part in parts]


class Stager:
    """Uploads what one attempt of a task writes."""

    def __init__(self, area: StagingArea, object_bytes: int) -> None:
        self._area = area
        self._object_bytes = object_bytes
        self._begun: list[ObjectKey] = []

    async def stage(self, batches: Sequence[RowBatch]) -> list[StagedObject]:
        """Upload batches as objects of their own."""
        area = self._area
        owner = area.prefix.split("/")[1]
        staged = []
        for layout in objects_of(batches, self._object_bytes):
            key = ObjectKey.staged(owner, area.clock.now_ms(), area.rng)
            self._begun.append(key)
            await area.store.put(key, layout.parts)
            staged.append(StagedObject(key.text, layout.size, _batches_of(layout)))
        return staged

    async def discard(self) -> None:
        """The attempt failed: remove what it uploaded."""
        await self._area.delete(self._begun)


def _batches_of(layout: Layout[_Piece]) -> tuple[StagedBatch, ...]:
    return tuple(
        StagedBatch(piece.topic, piece.topic_id, piece.partition, byte_offset, len(piece.buffer))
        for piece, byte_offset in layout.pieces
    )


# The driver's side -------------------------------------------------------------------------------


class EpochCommitter:
    """Completes epochs of one writer."""

    def __init__(
        self,
        area: StagingArea,
        writer: str,
        before: Callable[[Step], None] = lambda step: None,
    ) -> None:
        """``before`` is called with each step before it is done."""
        self._area = area
        self._writer = writer
        self._before = before
        self._prefix = writer_prefix(area.prefix, writer)
        self._steps: dict[Step, Callable[[Attempt], Awaitable[None]]] = {
            Step.PIN: self._pin,
            Step.CLAIM: self._claim,
            Step.LOOK: self._look,
            Step.FETCH: self._fetch,
            Step.COMMIT: self._commit,
            Step.MARK_DONE: self._mark_done,
            Step.RELEASE: self._release,
            Step.DISCARD: self._discard,
            Step.SWEEP: self._sweep,
        }

    async def complete(
        self, epoch: int, objects: Sequence[StagedObject], *, single: bool = False
    ) -> Attempt:
        """Write the epoch exactly once: these objects, or those of an earlier attempt that got
        further."""
        attempt = Attempt(self._writer, epoch, tuple(objects), single)
        while (step := self._next_step(attempt)) is not Step.FINISHED:
            self._before(step)
            await self._steps[step](attempt)
            attempt.performed.add(step)
        self._before(Step.FINISHED)
        return attempt

    def _next_step(self, attempt: Attempt) -> Step:
        try:
            return next_step(attempt, self._area.clock.now_ms())
        except EpochFailed as failure:
            key = manifest_key(self._prefix, attempt.epoch)
            raise EpochFailed(f"{failure}; its manifest is {key}") from None

    async def give_up(self, epoch: int, objects: Sequence[StagedObject]) -> None:
        """The epoch's tasks failed: remove what some of them staged.

        Unless the epoch was claimed: then these may be the objects that count.
        """
        attempt = Attempt(self._writer, epoch, tuple(objects))
        await self._look(attempt)
        if attempt.marks is not None and epoch not in attempt.marks.manifests:
            await self._area.discard(self._writer, epoch, objects)

    async def _pin(self, attempt: Attempt) -> None:
        area, epoch, objects = self._area, attempt.epoch, attempt.objects
        try:
            attempt.expires_ms = await area.pin(self._writer, epoch, objects)
        except KafkaError as error:
            # No manifest lists them, so nothing refers to them.
            await area.discard(self._writer, epoch, objects)
            raise NotBegun(error.code, f"nothing is written: {error.message}") from error

    async def _claim(self, attempt: Attempt) -> None:
        ours = attempt.ours
        key = manifest_key(self._prefix, attempt.epoch)
        try:
            await self._area.store.put(key, encode_manifest(ours), if_absent=True)
        except Exists:
            attempt.claim = Claim.OTHERS
        else:
            attempt.claim, attempt.manifest = Claim.OURS, ours

    async def _look(self, attempt: Attempt) -> None:
        attempt.marks = marks_of([info.key async for info in self._area.store.list(self._prefix)])

    async def _fetch(self, attempt: Attempt) -> None:
        key = manifest_key(self._prefix, attempt.epoch)
        try:
            data = await self._area.store.get(key)
        except NotFound:
            forget_claim(attempt)
        else:
            attempt.manifest = decode_manifest(data, self._writer, attempt.epoch)

    async def _commit(self, attempt: Attempt) -> None:
        """One object after another: rows of a task keep their order even if one must be retried."""
        objects = _chosen(attempt).objects
        for place, staged in enumerate(objects):
            (result,) = await self._area.brokers.commit(self._writer, attempt.epoch, [staged])
            if not result.error:
                continue
            # A commit that comes too late is also refused: then another driver has completed
            # everything.
            await self._look(attempt)
            if attempt.is_superseded:
                return
            raise EpochFailed(
                f"epoch {attempt.epoch} of writer {self._writer}: {place} of {len(objects)} staged"
                f" objects are committed, {staged.key} is refused: {result.error.name},"
                f" {result.message}; its manifest is {manifest_key(self._prefix, attempt.epoch)}"
            )

    async def _mark_done(self, attempt: Attempt) -> None:
        try:
            mark = encode_done(_chosen(attempt))
            key = done_key(self._prefix, attempt.epoch)
            await self._area.store.put(key, mark, if_absent=True)
        except Exists:
            return

    async def _release(self, attempt: Attempt) -> None:
        await self._area.release(self._writer, attempt.epoch, _chosen(attempt).objects)

    async def _discard(self, attempt: Attempt) -> None:
        await self._area.discard(self._writer, attempt.epoch, attempt.objects)

    async def _sweep(self, attempt: Attempt) -> None:
        await self._area.delete(marks_to_sweep(self._prefix, attempt))


def _chosen(attempt: Attempt) -> Manifest:
    if attempt.manifest is None:
        raise RuntimeError("a step that needs a manifest came before there was one")
    return attempt.manifest
