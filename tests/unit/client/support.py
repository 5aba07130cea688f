"""A broker that answers by script, over real sockets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from skylog.broker.net.server import stop_accepting
from skylog.client.cluster import Cluster
from skylog.client.settings import Address, ClientSettings
from skylog.kernel.errors import ErrorCode
from skylog.kernel.ids import Uuid
from skylog.wire.apis import (
    ApiKey,
    decode_request_header,
    request_class,
    response_header_version,
)
from skylog.wire.codec import decode, encode
from skylog.wire.messages.api_versions_response import ApiVersion, ApiVersionsResponse
from skylog.wire.messages.metadata_response import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from skylog.wire.schema import Message

TOPIC_ID = Uuid(b"0123456789abcdef")
# What a script may contain instead of a message.
HANG_UP = object()
SILENCE = object()
Answer = Callable[[Any], Any]


class FakeBroker:
    """Answers each request by the script of its API, and records requests."""

    def __init__(self, node_id: int = 1) -> None:
        self.node_id = node_id
        self.address = Address("127.0.0.1", 0)
        self.scripts: dict[ApiKey, Answer] = {ApiKey.METADATA: self.metadata}
        self.asked: list[tuple[ApiKey, int, Any]] = []
        self.partitions = {"t": 2}
        self.brokers: list[FakeBroker] = [self]
        self.versions: dict[ApiKey, tuple[int, int]] = {}
        self.api_versions_max = 4
        self.connections = 0
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    def requests(self, key: ApiKey) -> list[Any]:
        return [request for api, _, request in self.asked if api is key]

    def on(self, key: ApiKey, *answers: Any) -> None:
        """Answer with these in turn, the last one again and again; functions get the request."""
        rest = list(answers)

        def script(request: Any) -> Any:
            answer = rest.pop(0) if len(rest) > 1 else rest[0]
            return answer(request) if callable(answer) else answer

        self.scripts[key] = script

    def metadata(self, request: Any) -> MetadataResponse:
        names = self.partitions if request.topics is None else [t.name for t in request.topics]
        return MetadataResponse(
            brokers=[
                MetadataResponseBroker(b.node_id, b.address.host, b.address.port)
                for b in self.brokers
            ],
            cluster_id="cluster",
            controller_id=self.node_id,
            topics=[self._topic(name) for name in names],
        )

    def _topic(self, name: str) -> MetadataResponseTopic:
        if name not in self.partitions:
            return MetadataResponseTopic(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, name)
        leaders = [b.node_id for b in self.brokers]
        return MetadataResponseTopic(
            name=name,
            topic_id=TOPIC_ID,
            partitions=[
                MetadataResponsePartition(0, index, leaders[index % len(leaders)], 3, [1], [1])
                for index in range(self.partitions[name])
            ],
        )

    def _api_versions(self) -> ApiVersionsResponse:
        offered = {key: self.versions.get(key) for key in self.scripts}
        rows = []
        for key, limits in offered.items():
            known = request_class(key).VERSIONS
            low, high = limits or (known.low, known.high)
            rows.append(ApiVersion(key, low, high))
        rows.append(ApiVersion(ApiKey.API_VERSIONS, 0, self.api_versions_max))
        return ApiVersionsResponse(api_keys=rows)

    def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._writers.add(writer)
        task = asyncio.ensure_future(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    @property
    def open_connections(self) -> int:
        return len(self._writers)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await self._answer(reader, writer):
                pass
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            self._writers.discard(writer)
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        size = int.from_bytes(await reader.readexactly(4), "big")
        frame = await reader.readexactly(size)
        key, version, correlation_id, _, position = decode_request_header(frame)
        assert isinstance(key, ApiKey)
        response_version = version
        if key is ApiKey.API_VERSIONS:
            answer: Any = self._api_versions()
            if version > self.api_versions_max:
                answer.error_code = ErrorCode.UNSUPPORTED_VERSION
                response_version = 0
            self.asked.append((key, version, None))
        else:
            request = decode(request_class(key), frame, version, position)
            self.asked.append((key, version, request))
            answer = self.scripts[key](request)
            if asyncio.iscoroutine(answer):
                answer = await answer
        if answer is HANG_UP:
            return False
        if answer is SILENCE:
            return True
        tags = b"\0" if response_header_version(key, version) else b""
        body = encode(answer, response_version) if isinstance(answer, Message) else answer
        payload = correlation_id.to_bytes(4, "big") + tags + body
        writer.write(len(payload).to_bytes(4, "big") + payload)
        await writer.drain()
        return True

    def hang_up(self) -> None:
        for writer in tuple(self._writers):
            writer.transport.abort()

    async def close(self) -> None:
        """Close all connections, and wait until clients have noticed."""
        self.hang_up()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


@asynccontextmanager
async def running(*brokers: FakeBroker) -> AsyncIterator[FakeBroker]:
    """Start brokers of one cluster, each on a free port; returns the first one."""
    servers = []
    for broker in brokers:
        server = await asyncio.start_server(broker.accept, "127.0.0.1", 0)
        servers.append(server)
        broker.address = Address("127.0.0.1", server.sockets[0].getsockname()[1])
        broker.brokers = list(brokers)
    try:
        yield brokers[0]
    finally:
        await stop_accepting(servers)
        await asyncio.sleep(0)  # the last accepted connection is known by then
        for broker in brokers:
            await broker.close()


def settings(broker: FakeBroker, **changes: Any) -> ClientSettings:
    """Client settings for tests: short retry backoffs."""
    quick = ClientSettings((broker.address,), retry_backoff_ms=1, retry_backoff_ms_max=2)
    return replace(quick, **changes)


@asynccontextmanager
async def cluster_of(broker: FakeBroker, **changes: Any) -> AsyncIterator[Cluster]:
    async with Cluster(settings(broker, **changes)) as cluster:
        yield cluster
