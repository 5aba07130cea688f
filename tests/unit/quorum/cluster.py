"""Quorum nodes of one process that talk over real sockets."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

from skylog.broker.net.dispatch import framed
from skylog.broker.net.server import stop_accepting
from skylog.kernel.clock import SystemClock
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.executor import ThreadExecutor
from skylog.kernel.ids import ZERO_UUID
from skylog.kernel.rng import random_uuid
from skylog.log.files import Files
from skylog.quorum.bootstrap import bootstrap_records
from skylog.quorum.config import QuorumConfig
from skylog.quorum.log import MetadataLogConfig
from skylog.quorum.node import QuorumNode
from skylog.quorum.replica import Timeouts
from skylog.quorum.storage import FormatPlan, NodeStorage, format_directory
from skylog.quorum.voters import NO_VOTERS, Endpoint, ReplicaKey, Voter, VoterSet
from skylog.replicated.log import KeyValue, LoadedBatch
from skylog.wire.apis import ApiKey, decode_request_header, request_class, response_class
from skylog.wire.codec import decode_at, encode_parts
from skylog.wire.messages.api_versions_response import (
    ApiVersion,
    ApiVersionsResponse,
    SupportedFeatureKey,
)

SERVED = (52, 53, 54, 1, 59, 80, 81, 82, 18)
# Generous for a busy machine; tests wait for events, not for time to pass.
PATIENCE_SECONDS = 60.0
TIMEOUTS = Timeouts(election_ms=500, fetch_ms=1500, request_ms=1500, retry_ms=20)


class Member:
    """One node, its server and its committed records."""

    def __init__(self, cluster: Cluster, node_id: int, port: int) -> None:
        self.cluster = cluster
        self.node_id = node_id
        self.endpoint = Endpoint("CONTROLLER", "127.0.0.1", port)
        self.directory = cluster.root / str(node_id)
        self.storage: NodeStorage | None = None
        self.node: QuorumNode | None = None
        self.seen: list[KeyValue] = []
        self.failures: list[Exception] = []
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._serving: set[asyncio.Task[None]] = set()

    def format(self, voters: VoterSet | None) -> None:
        plan = FormatPlan(
            self.node_id,
            self.cluster.cluster_id,
            self.endpoint,
            bootstrap_records(),
            voters,
            joins=voters is None,
        )
        rng = random.Random(self.node_id)
        self.storage = format_directory([self.directory], plan, rng, 1_000)
        self.cluster.keys[self.node_id] = self.storage.replica

    async def start(self, config: MetadataLogConfig | None = None) -> None:
        assert self.storage is not None
        cluster = self.cluster
        self.seen = []
        self.node = QuorumNode(
            self.storage,
            QuorumConfig(
                (self.endpoint,),
                config or MetadataLogConfig(),
                TIMEOUTS,
                cluster.static,
                cluster.bootstrap,
            ),
            files=Files(64),
            clock=SystemClock(),
            executor=cluster.executor,
            rng=random.Random(),
            on_failure=self.failures.append,
        )
        self._server = await asyncio.start_server(
            self._accept, self.endpoint.host, self.endpoint.port
        )
        await self.node.start()
        await self.node.subscribe(self._publish)

    def _publish(self, batch: LoadedBatch) -> None:
        if batch.from_snapshot:
            self.seen.clear()
        self.seen += batch.records

    async def stop(self, *, kill: bool = False) -> None:
        node, self.node = self.node, None
        if node is None:
            return
        if kill:
            node.driver._closed = True
            node.driver._stop_timer()
            for task in node.driver._tasks:
                task.cancel()
            await asyncio.gather(*node.driver._tasks, return_exceptions=True)
            await node._peers.close()
            node._unlock()
        else:
            await node.close()
        assert self._server is not None
        await stop_accepting([self._server])
        await asyncio.sleep(0)  # the last accepted connection is known by then
        for writer in tuple(self._writers):
            writer.transport.abort()
        for task in self._serving:
            task.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        task = asyncio.ensure_future(self._serve(reader, writer))
        self._serving.add(task)
        task.add_done_callback(self._serving.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                size = int.from_bytes(await reader.readexactly(4), "big")
                frame = await reader.readexactly(size)
                writer.writelines(await self._answer(memoryview(frame)))
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            self._writers.discard(writer)
            writer.transport.abort()

    async def _answer(self, frame: memoryview) -> list[Any]:
        key, version, correlation_id, _, position = decode_request_header(frame)
        api = ApiKey(key)
        if api is ApiKey.API_VERSIONS:
            apis = [
                ApiVersion(
                    each, request_class(each).VERSIONS.low, request_class(each).VERSIONS.high
                )
                for each in map(ApiKey, SERVED)
            ]
            features = [SupportedFeatureKey("kraft.version", 0, 1)]
            answer: Any = ApiVersionsResponse(0, apis, supported_features=features)
        else:
            request, _ = decode_at(request_class(api), frame, version, position)
            try:
                assert self.node is not None
                answer = await self.node.serve(request, version)
            except KafkaError as error:
                answer = response_class(api)()
                answer.error_code = error.code
        return framed(api, version, correlation_id, encode_parts(answer, version))


class Cluster:
    """Controllers 1 to n, with voters in the log or (``static``) in the settings."""

    def __init__(self, root: Path, ports: list[int], *, static: bool = False) -> None:
        self.root = root
        self.executor = ThreadExecutor(4, "test")
        rng = random.Random(5)
        self.cluster_id = str(random_uuid(rng))
        self.members = {
            number: Member(self, number, port) for number, port in enumerate(ports, start=1)
        }
        self.bootstrap = tuple(member.endpoint for member in self.members.values())
        self.keys = {number: ReplicaKey(number, random_uuid(rng)) for number in self.members}
        self.static = NO_VOTERS
        if static:
            self.static = VoterSet(
                tuple(
                    Voter(ReplicaKey(number, ZERO_UUID), (m.endpoint,))
                    for number, m in self.members.items()
                )
            )

    def voter(self, number: int) -> Voter:
        return Voter(self.keys[number], (self.members[number].endpoint,))

    def format(self, initial: int) -> None:
        """The first ``initial`` members vote from the beginning."""
        voters = VoterSet(tuple(self.voter(number) for number in range(1, initial + 1)))
        for number, member in self.members.items():
            known = None if self.static.voters or number > initial else voters
            member.format(known)

    async def until(self, what: Callable[[], Any]) -> Any:
        """Wait until the condition holds, and return its value."""
        loop = asyncio.get_running_loop()
        end = loop.time() + PATIENCE_SECONDS
        while not (found := what()):
            assert loop.time() < end, self.describe()
            await asyncio.sleep(0.01)
        return found

    def leader(self) -> Member | None:
        up = [member for member in self.members.values() if member.node is not None]
        leading = [member for member in up if member.node and member.node.is_leader]
        return max(leading, key=lambda member: member.node.epoch, default=None)  # type: ignore[union-attr]

    async def commit(self, *values: KeyValue) -> None:
        """Append through the leader; retry if it loses leadership meanwhile."""
        for value in values:
            while True:
                leader = await self.until(self.leader)
                try:
                    leader.node.append([value])
                except KafkaError as error:
                    assert error.code is ErrorCode.NOT_CONTROLLER
                    continue
                break
            await self.until(lambda: leader.node is None or value in leader.seen)  # noqa: B023

    async def agree(self, values: list[KeyValue]) -> None:
        """Wait until all running nodes have exactly these records."""
        up = [member for member in self.members.values() if member.node is not None]
        await self.until(lambda: all(member.seen == values for member in up))

    def describe(self) -> str:
        return "; ".join(
            f"{number}: "
            + (
                f"{member.node._machine.state} end {member.node.end_offset} "
                f"hw {member.node.high_watermark} seen {len(member.seen)} {member.failures}"
                if member.node
                else "down"
            )
            for number, member in self.members.items()
        )

    async def close(self) -> None:
        for member in self.members.values():
            await member.stop()
        self.executor.close()
