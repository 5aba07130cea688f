"""A bulk writer as brokers see it: it stages objects in the bucket and asks for their commit."""

from __future__ import annotations

import random
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

from skylog.client.bulk import StagedBatch, StagedObject
from skylog.client.cluster import Cluster
from skylog.client.settings import ClientSettings
from skylog.kernel.ids import Uuid
from skylog.objects.keys import ObjectKey
from skylog.wire.batch import Compression
from skylog.wire.records import encode_batch
from tests.integration.auth_world import PASSWORDS

RNG = random.Random(503)
HOUR_MS = 60 * 60 * 1000


@asynccontextmanager
async def cluster(address: str, user: str | None = None) -> AsyncIterator[Cluster]:
    """A user's client, with short timeouts for tests."""
    properties = {"bootstrap.servers": address}
    if user is not None:
        module = "org.apache.kafka.common.security.plain.PlainLoginModule"
        properties |= {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.jaas.config": (
                f'{module} required username="{user}" password="{PASSWORDS[user]}";'
            ),
        }
    async with Cluster(ClientSettings.of(properties)) as opened:
        yield opened


def now_ms() -> int:
    return int(time.time() * 1000)


def object_path(storage_url: str | None, key: str) -> Path:
    """The path of an object in the bucket."""
    assert storage_url is not None
    return Path(urlsplit(storage_url).path) / key


class Stage:
    """One object to be staged in the bucket."""

    def __init__(self, prefix: str, *, age_ms: int = 0) -> None:
        owner = prefix.removeprefix("staging/").rstrip("/")
        self.key = ObjectKey.staged(owner, now_ms() - age_ms, RNG)
        self.data = bytearray(b"\0")
        self.batches: list[StagedBatch] = []

    def add(
        self,
        topic: str,
        topic_id: Uuid,
        *values: bytes,
        partition: int = 0,
        codec: Compression = Compression.NONE,
        timestamp: int | None = None,
        **more: int,
    ) -> Stage:
        encoded = encode_batch(
            [(None, value) for value in values],
            timestamp=now_ms() if timestamp is None else timestamp,
            codec=codec,
            **more,
        )
        return self.add_bytes(topic, topic_id, encoded, partition)

    def add_bytes(self, topic: str, topic_id: Uuid, data: bytes, partition: int = 0) -> Stage:
        self.batches.append(StagedBatch(topic, topic_id, partition, len(self.data), len(data)))
        self.data += data
        return self

    def put(self, storage_url: str | None) -> StagedObject:
        """Upload it as an executor would, with direct access to the bucket."""
        path = object_path(storage_url, self.key.text)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(self.data)
        return self.told()

    def told(self) -> StagedObject:
        return StagedObject(self.key.text, len(self.data), tuple(self.batches))
