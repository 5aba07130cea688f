"""Makes the broker follow the metadata log: first the image, then everything that depends on it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from skylog.controller.image import ClusterImage, Delta
from skylog.kernel.logging import get_logger
from skylog.replicated.log import LoadedBatch
from skylog.wire.metadata_records import decode_metadata

log = get_logger("broker.metadata")


class Follower(Protocol):
    """A part of the broker that acts on metadata changes."""

    def metadata_changed(self, image: ClusterImage, delta: Delta) -> None: ...


class MetadataPublisher:
    """Applies committed records to the broker's image and notifies the followers, in order.

    Until ``start`` they are not notified: a broker reads the whole log first and then acts on the
    current state, not on its history.
    """

    def __init__(self, image: ClusterImage) -> None:
        self.image = image
        self.end_offset = 0
        # The offset of the newest topic.
        self.topics_created_offset = 0
        self._followers: Sequence[Follower] = ()
        self._started = False

    def committed(self, batch: LoadedBatch) -> None:
        """Apply records that can no longer be lost."""
        found = (decode_metadata(value) for _, value in batch.records if value is not None)
        records = [record for record in found if record is not None]
        if batch.from_snapshot:
            delta = self.image.replace(records)
        else:
            delta = Delta()
            for record in records:
                self.image.apply(record, delta)
        self.end_offset = batch.offset_of(len(batch.records) - 1) + 1
        if delta.topics_created:
            self.topics_created_offset = self.end_offset
        if self._started and delta:
            self._tell(delta)

    def start(self, followers: Sequence[Follower]) -> None:
        """Notify the followers of the whole image, and from now on of every change."""
        self._followers = followers
        self._started = True
        self._tell(everything(self.image))

    def _tell(self, delta: Delta) -> None:
        for follower in self._followers:
            try:
                follower.metadata_changed(self.image, delta)
            except Exception:
                # The image is correct and the other followers follow it; stopping would not help.
                log.exception("metadata not followed", follower=type(follower).__name__)


def everything(image: ClusterImage) -> Delta:
    """The delta from nothing to an image."""
    delta = Delta()
    copy = ClusterImage()
    for record in image.snapshot():
        copy.apply(record, delta)
    return delta
