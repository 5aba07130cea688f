"""Holds: time ranges whose objects are not treated as orphans until an operator releases them.

A restore from a backup creates one. Objects uploaded since the backup are then unknown, and may be
the only copy of some records. A hold is a small object in the bucket, so that every broker sees it
and it needs no disk.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from skylog.objects.keys import ObjectKey
from skylog.objects.store import ObjectError, ObjectStore, Outcome

PREFIX: Final = "backup/holds/"
_NAME: Final = re.compile(r"([0-9]{1,15})-([0-9]{1,15})\Z", re.ASCII)


@dataclass(frozen=True, slots=True)
class Hold:
    """Objects created from ``from_ms`` to ``until_ms``, both included."""

    from_ms: int
    until_ms: int

    def covers(self, created_ms: int) -> bool:
        return self.from_ms <= created_ms <= self.until_ms

    @property
    def key(self) -> ObjectKey:
        return ObjectKey.named("backup", "holds", f"{self.from_ms}-{self.until_ms}")


async def read_holds(store: ObjectStore) -> list[Hold]:
    """All holds; an unreadable one is an error, since it may cover anything."""
    found = []
    async for info in store.list(PREFIX):
        matched = _NAME.match(info.key.text.removeprefix(PREFIX))
        if matched is None:
            raise ObjectError(f"{info.key} is not a hold that this version knows", Outcome.REFUSED)
        found.append(Hold(int(matched[1]), int(matched[2])))
    return found


async def put_hold(store: ObjectStore, hold: Hold) -> None:
    await store.put(hold.key, b"held after a restore\n", if_absent=True)


async def release_holds(store: ObjectStore) -> list[Hold]:
    """The operator has checked: unknown objects are orphans again."""
    holds = await read_holds(store)
    await store.delete_many([hold.key for hold in holds])
    return holds
