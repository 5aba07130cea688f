"""Generated from ZkMigrationStateRecord.json; do not edit."""

from __future__ import annotations

from skylog.wire.schema import LAST, Field, Message, Versions


class ZkMigrationStateRecord(Message):
    __slots__ = ("zk_migration_state",)
    TYPE = "metadata"
    API_KEY = 21
    VERSIONS = Versions(0, 0)
    FLEXIBLE = Versions(0, LAST)
    FIELDS = (
        Field("zk_migration_state", "int8", Versions(0, LAST), 0),
    )

    def __init__(
        self,
        zk_migration_state: int = 0,
    ) -> None:
        self.zk_migration_state = zk_migration_state

