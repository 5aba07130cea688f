"""Generated from Kafka's ZkMigrationStateRecord.json; do not edit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from skylog.wire.schema import LAST, Field, Message, Versions


@dataclass(slots=True)
class ZkMigrationStateRecord(Message):
    zk_migration_state: int = 0
    TYPE = "metadata"
    API_KEY = 21
    VERSIONS = Versions(0, 0)
    FLEXIBLE = Versions(0, LAST)
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("zk_migration_state", "int8", Versions(0, LAST), 0),
    )

