"""Finalized feature levels of the cluster."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from skylog.controller.image.delta import Delta
from skylog.wire.messages.feature_level_record import FeatureLevelRecord
from skylog.wire.schema import Message

METADATA_VERSION: Final = "metadata.version"
KRAFT_VERSION: Final = "kraft.version"
ELR_VERSION: Final = "eligible.leader.replicas.version"


class Features:
    """Finalized levels. The quorum's own version is in its control records, never here."""

    def __init__(self) -> None:
        self.levels: dict[str, int] = {}

    @property
    def metadata_version(self) -> int | None:
        """None until the first records are written."""
        return self.levels.get(METADATA_VERSION)

    @property
    def elr_enabled(self) -> bool:
        return self.levels.get(ELR_VERSION, 0) >= 1

    def apply(self, record: FeatureLevelRecord, delta: Delta) -> None:
        if record.name == KRAFT_VERSION:  # old logs contain it by mistake
            return
        if record.feature_level == 0:
            self.levels.pop(record.name, None)
        else:
            self.levels[record.name] = record.feature_level
        delta.features.add(record.name)

    def records(self) -> Iterator[Message]:
        """The metadata version first: it may define how to read what follows."""
        for name in sorted(self.levels, key=lambda name: (name != METADATA_VERSION, name)):
            yield FeatureLevelRecord(name, self.levels[name])
