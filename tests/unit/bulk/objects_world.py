"""Topics in an in-memory store and a broker's responses about them, without a broker."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from random import Random

from skylog.bulk.source import WindowSource
from skylog.client.bulk import BatchLocation, Located, Split
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.ids import Uuid
from skylog.objects.keys import ObjectKey
from skylog.objects.memory import MemoryStore
from skylog.objects.store import AtHand, ObjectError, ObjectStore, Payload
from skylog.wire.records import encode_batch

ID = Uuid(bytes(range(16)))
CREATED_MS = 1_700_000_000_000


class WatchedStore(MemoryStore):
    """Counts requests; some responses can be set to fail or to be wrong once."""

    def __init__(self) -> None:
        super().__init__()
        self.gets: list[tuple[str, int, int | None]] = []
        self.under_way = 0
        self.failures: dict[str, list[ObjectError]] = {}
        self.garbled: dict[str, int] = {}
        self.near: dict[str, bytes] = {}

    @property
    def at_hand(self) -> AtHand:
        return self

    def put_now(self, key: ObjectKey, data: Payload) -> bool:
        return False

    def get_now(self, key: ObjectKey, start: int, end: int) -> bytearray | None:
        data = self.near.get(key.text)
        return None if data is None else bytearray(data[start:end])

    async def get(self, key: ObjectKey, start: int = 0, end: int | None = None) -> bytes:
        self.gets.append((key.text, start, end))
        if self.failures.get(key.text):
            raise self.failures[key.text].pop(0)
        data = await super().get(key, start, end)
        if self.garbled.get(key.text, 0) > 0:
            self.garbled[key.text] -= 1
            return data[:-1] + bytes([data[-1] ^ 1])
        return data


@dataclass
class World:
    """What a coordinator knows of each partition."""

    store: WatchedStore = field(default_factory=WatchedStore)
    rng: Random = field(default_factory=lambda: Random(7))
    batches: dict[int, list[BatchLocation]] = field(default_factory=dict)
    log_start: dict[int, int] = field(default_factory=dict)
    located: list[tuple[int, int]] = field(default_factory=list)
    requests: list[int] = field(default_factory=list)
    page: int = 100

    def new_key(self) -> ObjectKey:
        return ObjectKey.new("wal", CREATED_MS, self.rng)

    def end(self, partition: int) -> int:
        known = self.batches.get(partition)
        return known[-1].last_offset + 1 if known else 0

    async def write(
        self, content: Sequence[tuple[int, int]], *, codec: int = 0, appended: int = -1
    ) -> ObjectKey:
        """One object: batches of (partition, number of records), appended to their partitions."""
        key = self.new_key()
        parts, at = [b"\0"], 1
        for partition, count in content:
            base = self.end(partition)
            data = batch_of(partition, base, count, codec)
            self.batches.setdefault(partition, []).append(
                BatchLocation(
                    key.text,
                    at,
                    len(data),
                    base,
                    base + count - 1,
                    appended,
                    CREATED_MS,
                    int(appended >= 0),
                )
            )
            parts.append(data)
            at += len(data)
        await self.store.put(key, parts)
        return key

    async def move(self, key: ObjectKey) -> ObjectKey:
        """The same bytes under another name, as compaction of objects would do."""
        other = self.new_key()
        await self.store.put(other, await MemoryStore.get(self.store, key))
        await self.store.delete_many([key])
        for partition, known in self.batches.items():
            self.batches[partition] = [
                replace(batch, object_key=other.text) if batch.object_key == key.text else batch
                for batch in known
            ]
        return other

    async def delete_before(self, partition: int, offset: int) -> None:
        self.log_start[partition] = offset
        gone = [batch for batch in self.batches[partition] if batch.last_offset < offset]
        self.batches[partition] = self.batches[partition][len(gone) :]
        await self.store.delete_many([ObjectKey.parse(batch.object_key) for batch in gone])

    def split(self, partition: int, start: int = 0, end: int | None = None) -> Split:
        return Split("t", ID, partition, start, end or self.end(partition), 0, True)

    async def locate_many(
        self, wanted: Sequence[tuple[Split, int]]
    ) -> list[Located | KafkaError | None]:
        """Like a broker for many splits: what does not fit into a page is left out."""
        self.requests.append(len(wanted))
        found: list[Located | KafkaError | None] = []
        left = self.page
        for split, position in wanted:
            try:
                one = await self.locate(split, position)
            except KafkaError as error:
                found.append(error)
                continue
            found.append(one if len(one.batches) <= left else None)
            left -= len(one.batches)
        return found

    def open_tiered(self, url: str) -> ObjectStore:
        raise AssertionError(f"nothing is tiered, but {url} is asked for")

    def fetch(self, split: Split) -> WindowSource:
        raise AssertionError(f"nothing is fetched from brokers, but {split}")

    async def locate(self, split: Split, position: int) -> Located:
        """Like a broker, a page at a time."""
        self.located.append((split.partition, position))
        start = self.log_start.get(split.partition, 0)
        if position < start:
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, "deleted")
        found = [
            batch
            for batch in self.batches[split.partition]
            if batch.last_offset >= position and batch.base_offset < split.end_offset
        ]
        page = tuple(found[: self.page])
        done = len(page) == len(found)
        after = split.end_offset if done else page[-1].last_offset + 1
        return Located(page, after, start, self.end(split.partition))


def batch_of(partition: int, base: int, count: int, codec: int = 0) -> bytes:
    """Values name partition and offset; stored offsets start at 0 as producers send them."""
    pairs = [(None, b"%d:%d" % (partition, offset)) for offset in range(base, base + count)]
    return encode_batch(pairs, timestamp=CREATED_MS, codec=codec)
