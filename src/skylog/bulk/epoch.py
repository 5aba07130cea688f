"""The protocol by which an epoch's rows are written once, whatever dies in between.

Pure: ``next_step`` looks at what one driver knows and says what to do next; ``staging.py`` does it.

Tasks stage objects. Then the driver of an epoch goes through these steps:

1. PIN the objects at their coordinators, so that they can be committed for the next seven days;
2. CLAIM the epoch: put its manifest, which lists the objects, unless there is one;
3. LOOK which epochs are done. Looking comes after claiming: a manifest is removed only when its
   epoch is done, so an attempt that could claim an epoch again sees here that it is done;
4. FETCH the manifest if another attempt had claimed the epoch: its objects count, not ours;
5. COMMIT the manifest's objects, which is idempotent by key;
6. MARK_DONE; then RELEASE the pins, DISCARD our objects if they were not the ones that count,
   and SWEEP away marks of epochs long done.

An attempt that dies leaves a state from which the next one, by the same steps, comes to the same
end. Epochs of a writer follow one another, so an epoch is done when it or a later one has the mark,
and the latest mark is never removed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from hashlib import sha256
from typing import Final

from skylog.client.bulk.types import StagedObject
from skylog.kernel.errors import KafkaError, SkylogError
from skylog.objects.keys import ObjectKey

PIN_LIFETIME_MS: Final = 7 * 24 * 60 * 60 * 1000
# The marks of this many epochs are kept for inspection; older ones are removed in groups.
EPOCHS_KEPT: Final = 8
EPOCHS_SWEPT_AT_ONCE: Final = 8
_KEYS_SWEPT_MAX: Final = 1000
_DIGITS: Final = 19
_MANIFEST: Final = "manifest"
_DONE: Final = "done"
NO_EPOCH: Final = -1


class EpochFailed(SkylogError):  # noqa: N818 - reads well without Error
    """An epoch that cannot be completed; the message names writer and epoch."""


class NotBegun(KafkaError):  # noqa: N818
    """An epoch of which nothing is written, nor will be."""


class Step(Enum):
    """What to do next."""

    PIN = "pin"
    CLAIM = "claim"
    LOOK = "look"
    FETCH = "fetch"
    COMMIT = "commit"
    MARK_DONE = "mark done"
    RELEASE = "release"
    DISCARD = "discard"
    SWEEP = "sweep"
    FINISHED = "finished"


class Claim(Enum):
    """Whose manifest stands for the epoch."""

    OURS = "ours"
    OTHERS = "others"


@dataclass(frozen=True, slots=True)
class Manifest:
    """The objects that an epoch consists of, and until when they can be committed."""

    writer: str
    epoch: int
    expires_ms: int
    objects: tuple[StagedObject, ...]


@dataclass(frozen=True, slots=True)
class Marks:
    """What a listing shows of a writer."""

    manifests: frozenset[int] = frozenset()
    done: frozenset[int] = frozenset()

    @property
    def latest_done(self) -> int:
        return max(self.done, default=NO_EPOCH)


@dataclass(slots=True)
class Attempt:
    """What one driver knows of its epoch; the shell fills in what it learns."""

    writer: str
    epoch: int
    objects: tuple[StagedObject, ...]
    single: bool = False  # the writer's only epoch, which is never resumed
    expires_ms: int | None = None  # of the pins on our objects
    claim: Claim | None = None
    marks: Marks | None = None
    manifest: Manifest | None = None  # the one that counts
    performed: set[Step] = field(default_factory=set)

    @property
    def ours(self) -> Manifest:
        """The manifest to claim with."""
        return Manifest(self.writer, self.epoch, self.expires_ms or 0, self.objects)

    @property
    def is_superseded(self) -> bool:
        """Another attempt has completed the epoch."""
        return self.marks is not None and self.marks.latest_done >= self.epoch


def next_step(attempt: Attempt, now_ms: int) -> Step:
    """What to do next; EpochFailed where nothing can be done that is certain to be right."""
    if attempt.objects and attempt.expires_ms is None:
        return Step.PIN
    if attempt.objects and attempt.claim is None:
        return Step.CLAIM
    if attempt.marks is None:
        return Step.LOOK
    if attempt.is_superseded:
        return _leave(attempt)
    if attempt.manifest is None:
        nothing = not attempt.objects and attempt.epoch not in attempt.marks.manifests
        return Step.FINISHED if nothing else Step.FETCH
    if Step.COMMIT not in attempt.performed:
        _check_pins(attempt.manifest, now_ms)
        return Step.COMMIT
    return _conclude(attempt)


def _conclude(attempt: Attempt) -> Step:
    """The rows are written: say so, and clean up."""
    left = [Step.MARK_DONE, Step.RELEASE, Step.SWEEP]
    if attempt.claim is Claim.OTHERS:
        left.insert(2, Step.DISCARD)
    return next((step for step in left if step not in attempt.performed), Step.FINISHED)


def _leave(attempt: Attempt) -> Step:
    """Discard our objects only if no manifest lists them: otherwise they may be committed."""
    if attempt.claim is Claim.OTHERS and Step.DISCARD not in attempt.performed:
        return Step.DISCARD
    return Step.FINISHED


def _check_pins(manifest: Manifest, now_ms: int) -> None:
    if now_ms >= manifest.expires_ms:
        raise EpochFailed(
            f"epoch {manifest.epoch} of writer {manifest.writer} was begun and not completed before"
            f" its staged objects expired ({manifest.expires_ms} ms): some of its rows may be"
            " written and others not, and nothing can tell which"
        )


def forget_claim(attempt: Attempt) -> None:
    """The manifest that was to be fetched is gone: done and swept meanwhile, or removed by hand."""
    attempt.claim = attempt.marks = None


# Marks ---------------------------------------------------------------------------------------


def writer_prefix(staging_prefix: str, writer: str) -> str:
    """Where a writer's marks are; ``staging_prefix`` is what the broker gave."""
    return f"{staging_prefix}w/{sha256(writer.encode()).hexdigest()[:32]}/"


def manifest_key(prefix: str, epoch: int) -> ObjectKey:
    return ObjectKey.parse(f"{prefix}{epoch:0{_DIGITS}d}.{_MANIFEST}")


def done_key(prefix: str, epoch: int) -> ObjectKey:
    return ObjectKey.parse(f"{prefix}{epoch:0{_DIGITS}d}.{_DONE}")


def marks_of(keys: Iterable[ObjectKey]) -> Marks:
    """What the keys under a writer's prefix say; others are ignored."""
    found: dict[str, set[int]] = {_MANIFEST: set(), _DONE: set()}
    for key in keys:
        number, _, kind = key.text.rpartition("/")[2].partition(".")
        if kind in found and number.isdigit() and len(number) == _DIGITS:
            found[kind].add(int(number))
    return Marks(frozenset(found[_MANIFEST]), frozenset(found[_DONE]))


def marks_to_sweep(prefix: str, attempt: Attempt) -> Sequence[ObjectKey]:
    """Marks that are not needed once the attempt's epoch is done; never its own ``done``.

    All of them, if the writer never resumes.
    """
    if attempt.single:
        return [manifest_key(prefix, attempt.epoch), done_key(prefix, attempt.epoch)]
    marks = attempt.marks or Marks()
    old = attempt.epoch - EPOCHS_KEPT
    manifests = sorted(epoch for epoch in marks.manifests if epoch <= old)
    done = sorted(epoch for epoch in marks.done if epoch <= old)
    if max(len(manifests), len(done)) < EPOCHS_SWEPT_AT_ONCE:
        return []
    keys = [manifest_key(prefix, epoch) for epoch in manifests]
    keys += [done_key(prefix, epoch) for epoch in done]
    return keys[:_KEYS_SWEPT_MAX]
