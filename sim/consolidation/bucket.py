"""The object store as one broker reaches it: every call is a request that may be lost or late."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from sim.consolidation.requests import Request, at_once
from skylog.objects.keys import ObjectKey
from skylog.objects.memory import MemoryStore
from skylog.objects.sources import pieces
from skylog.objects.store import (
    ObjectError,
    ObjectInfo,
    ObjectStore,
    Outcome,
    Payload,
    Source,
    joined,
)

if TYPE_CHECKING:
    from sim.consolidation.broker import SimBroker

PIECE_BYTES: Final = 1 << 20
# What is put and deleted, in the order that makes a manifest say that a segment is whole.
SUFFIXES: Final = ("log", "indexes", "rsm-manifest")


class Bucket(MemoryStore):
    """What is stored. ``changes`` grows with every put and deletion."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.changes = 0
        # Segments with a put that arrived after its sender had given up or was gone.
        self.late: set[bytes] = set()
        # Segments that somebody has read from, and those that the store has spoilt.
        self.looked_at: set[bytes] = set()
        self.rotten: set[bytes] = set()

    def text_keys(self) -> list[str]:
        return [key.text for key in self._objects]

    def data(self, key: str) -> bytes | None:
        held = self._objects.get(ObjectKey.parse(key))
        return None if held is None else held.data


class BrokerStore(ObjectStore):
    """The bucket as one process reaches it."""

    def __init__(self, broker: SimBroker, bucket: Bucket) -> None:
        self._broker = broker
        self._bucket = bucket

    async def put(self, key: ObjectKey, data: Payload, *, if_absent: bool = False) -> None:
        content = bytes(joined(data))

        def act() -> None:
            self._bucket.changes += 1
            at_once(self._bucket.put(key, content, if_absent=if_absent))

        await self._ask(f"put {_suffix(key)}", act, key)

    async def put_file(self, key: ObjectKey, source: Source, size: int) -> None:
        content = b"".join(pieces(source, size, PIECE_BYTES))
        self._broker.check_put(key)
        await self.put(key, content)

    async def get(self, key: ObjectKey, start: int = 0, end: int | None = None) -> bytes:
        def act() -> bytes:
            self._bucket.looked_at.add(_id(key))
            found: bytes = at_once(self._bucket.get(key, start, end))
            return found

        got: bytes = await self._ask(f"get {_suffix(key)}", act, key)
        return got

    async def head(self, key: ObjectKey) -> ObjectInfo:
        found: ObjectInfo = await self._ask("head", lambda: at_once(self._bucket.head(key)), key)
        return found

    async def delete_many(self, keys: Sequence[ObjectKey]) -> None:
        for key in keys:
            self._broker.check_delete(key)

            def act(key: ObjectKey = key) -> None:
                self._bucket.changes += 1
                at_once(self._bucket.delete_many([key]))

            await self._ask(f"delete {_suffix(key)}", act, key)

    async def list(self, prefix: str, after: str | None = None) -> AsyncIterator[ObjectInfo]:
        async for info in self._bucket.list(prefix, after):
            yield info

    async def close(self) -> None: ...

    async def _ask(self, name: str, act: Callable[[], Any], key: ObjectKey) -> Any:
        lost = ObjectError(name, Outcome.NOT_DONE)
        unclear = ObjectError(name, Outcome.AMBIGUOUS)
        request = Request(self._broker, name, act, lost, unclear)
        request.segment_id = _id(key)
        return await self._broker.ask(request)


def _id(key: ObjectKey) -> bytes:
    return b"" if key.segment is None else bytes(key.segment.segment_id)


def _suffix(key: ObjectKey) -> str:
    return key.segment.suffix if key.segment else key.kind
