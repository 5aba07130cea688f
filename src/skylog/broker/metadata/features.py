"""Feature levels as returned by ApiVersions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from skylog.controller.image.features import KRAFT_VERSION

if TYPE_CHECKING:
    from skylog.broker.metadata.publisher import MetadataPublisher


class Features:
    """What this node supports, and what the cluster has agreed on."""

    def __init__(
        self,
        supported: Mapping[str, tuple[int, int]],
        publisher: MetadataPublisher,
        kraft_version: Callable[[], int],
    ) -> None:
        self._supported = supported
        self._publisher = publisher
        self._kraft_version = kraft_version

    def supported(self) -> Mapping[str, tuple[int, int]]:
        return self._supported

    def finalized(self) -> Mapping[str, int]:
        # The quorum stores its own version outside the metadata records.
        return {**self._publisher.image.finalized_features(), KRAFT_VERSION: self._kraft_version()}

    def epoch(self) -> int:
        """How far the metadata log had been read."""
        return self._publisher.end_offset - 1
