"""Feature levels as ApiVersions tells them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from skylog.broker.publisher import MetadataPublisher


class Features:
    """What this node supports, and what the cluster has agreed on."""

    def __init__(
        self, supported: Mapping[str, tuple[int, int]], publisher: MetadataPublisher
    ) -> None:
        self._supported = supported
        self._publisher = publisher

    def supported(self) -> Mapping[str, tuple[int, int]]:
        return self._supported

    def finalized(self) -> Mapping[str, int]:
        return self._publisher.image.finalized_features()

    def epoch(self) -> int:
        """How far the metadata log was read when the answer was made."""
        return self._publisher.end_offset - 1
