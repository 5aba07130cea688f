"""Many consumer groups whose members only send heartbeats: the load of the groups bench.

``python -m bench.group_load consumer|classic …`` plays all members in one process, each at the
pace of Kafka's own clients, and prints what forming, heartbeats and rebalances took. Members of a
group of the consumer protocol share a connection, those of the classic one cannot.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import time
from collections.abc import Awaitable, Callable
from typing import Any, Final, NamedTuple

import uvloop

from bench.group_members import (
    PARTITIONS,
    TOPIC,
    ClassicMember,
    ConsumerMember,
    Group,
    Member,
)
from bench.measure import usage
from skylog.client.connection import ClientConnection, open_connection
from skylog.client.settings import ClientSettings, parse_bootstrap
from skylog.kernel.system import real_system
from skylog.wire.messages.find_coordinator_request import FindCoordinatorRequest
from skylog.wire.messages.metadata_request import MetadataRequest, MetadataRequestTopic

PHASE_SECONDS_MAX: Final = 300
CONNECTIONS_AT_ONCE: Final = 50
LOOK_SECONDS: Final = 0.1
_CHANCE: Final = random.Random(7)
Connect = Callable[[], Awaitable[ClientConnection]]


class Phase(NamedTuple):
    """What a phase took: seconds, the broker's CPU, and the number of heartbeats."""

    seconds: float
    cpu_seconds: float
    heartbeats: int


class Load:
    """All groups; each member has a task that sends its heartbeats."""

    def __init__(self, protocol: str, connect: Connect, pid: int) -> None:
        self._protocol = protocol
        self._connect = connect
        self._pid = pid
        self._limit = asyncio.Semaphore(CONNECTIONS_AT_ONCE)
        self._tasks: dict[Member, asyncio.Task[None]] = {}
        self._heartbeats_of_gone = 0
        self.groups: list[Group] = []

    async def prepare(self, prefix: str, count: int) -> None:
        """Name the groups, and wait until their coordinator is ready."""
        connection = await self._connect()
        topic_id = await _topic_id(connection)
        self.groups = [Group(f"{prefix}-{n}", topic_id=topic_id) for n in range(count)]
        for group in self.groups:
            await _until_found(connection, group.name)
        await connection.close()

    async def add(self, size: int) -> Phase:
        """Add members to each group; they are connected before the first joins."""

        async def connect(group: Group) -> list[Member]:
            return [await self._new(group) for _ in range(size)]

        made = await asyncio.gather(*(connect(group) for group in self.groups))
        new = dict(zip((group.name for group in self.groups), made, strict=True))

        async def grow(group: Group) -> None:
            group.members += new[group.name]
            await asyncio.gather(*(self._enter(member) for member in new[group.name]))

        return await self._until_settled(grow)

    async def remove_one(self) -> Phase:
        async def shrink(group: Group) -> None:
            await self._part(group.members[0])

        return await self._until_settled(shrink)

    async def steady(self, seconds: float) -> Phase:
        return await self._measure(asyncio.sleep(seconds))

    async def close(self) -> None:
        members = [member for group in self.groups for member in group.members]
        await asyncio.gather(*(self._part(member) for member in members))

    async def _new(self, group: Group) -> Member:
        if self._protocol == "classic":
            return ClassicMember(group, await self._connected())
        if group.connection is None:
            group.connection = await self._connected()
        return ConsumerMember(group, group.connection)

    async def _connected(self) -> ClientConnection:
        async with self._limit:
            return await self._connect()

    async def _enter(self, member: Member) -> None:
        await member.join()
        self._tasks[member] = asyncio.create_task(_live(member))

    async def _part(self, member: Member) -> None:
        task = self._tasks.pop(member)
        task.cancel()
        await asyncio.wait([task])
        member.group.members.remove(member)
        self._heartbeats_of_gone += member.heartbeats
        await member.leave()
        if self._protocol == "classic":
            await member.connection.close()

    async def _until_settled(self, change: Callable[[Group], Awaitable[None]]) -> Phase:
        async def settle() -> None:
            for group in self.groups:
                group.epoch_before = max((m.epoch for m in group.members), default=0)
            await asyncio.gather(*(change(group) for group in self.groups))
            left = list(self.groups)
            while left:
                await asyncio.sleep(LOOK_SECONDS)
                for task in self._tasks.values():
                    if task.done():
                        task.result()  # a task that ended has failed
                left = [group for group in left if not group.settled]

        async with asyncio.timeout(PHASE_SECONDS_MAX):
            return await self._measure(settle())

    async def _measure(self, work: Awaitable[None]) -> Phase:
        cpu, began, sent = usage(self._pid).cpu_seconds, time.perf_counter(), self._heartbeats
        await work
        seconds = time.perf_counter() - began
        spent = usage(self._pid).cpu_seconds - cpu
        return Phase(seconds, spent, self._heartbeats - sent)

    @property
    def _heartbeats(self) -> int:
        living = sum(member.heartbeats for member in self._tasks)
        return living + self._heartbeats_of_gone


async def _live(member: Member) -> None:
    # Members of different groups do not send heartbeats at the same time.
    await asyncio.sleep(member.interval_seconds * _CHANCE.random())
    while True:
        await member.beat()
        await asyncio.sleep(member.interval_seconds)


async def _topic_id(connection: ClientConnection) -> Any:
    request = MetadataRequest([MetadataRequestTopic(name=TOPIC)], allow_auto_topic_creation=False)
    while True:
        found = (await connection.request(request)).topics[0]
        if not found.error_code and len(found.partitions) == PARTITIONS:
            return found.topic_id
        await asyncio.sleep(0.1)


async def _until_found(connection: ClientConnection, group: str) -> None:
    request = FindCoordinatorRequest(coordinator_keys=[group])
    while True:
        found = await connection.request(request, version_min=4)
        if not found.coordinators[0].error_code:
            return
        await asyncio.sleep(0.1)


async def run(given: argparse.Namespace) -> dict[str, Phase]:
    address = parse_bootstrap(given.bootstrap)[0]
    settings = ClientSettings(
        (address,),
        client_id="bench",
        connect_timeout_ms=PHASE_SECONDS_MAX * 1000,
        request_timeout_ms=PHASE_SECONDS_MAX * 1000,
    )
    system = real_system()
    load = Load(given.protocol, lambda: open_connection(address, settings, system), given.pid)
    await load.prepare(given.prefix, given.groups)
    phases = {"form": await load.add(given.members)}
    interval = load.groups[0].members[0].interval_seconds
    phases["steady"] = await load.steady(interval * given.intervals)
    phases["join"] = await load.add(1)
    phases["leave"] = await load.remove_one()
    await load.close()
    return phases


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.group_load", description=__doc__)
    parser.add_argument("protocol", choices=["consumer", "classic"])
    parser.add_argument("bootstrap")
    parser.add_argument("pid", type=int, help="process id of the broker, whose CPU is counted")
    parser.add_argument("prefix", help="prefix of the groups' names")
    parser.add_argument("--groups", type=int, default=1_000)
    parser.add_argument("--members", type=int, default=10)
    parser.add_argument("--intervals", type=int, default=3, help="of heartbeats that are counted")
    phases = uvloop.run(run(parser.parse_args()))
    print(json.dumps({name: phase._asdict() for name, phase in phases.items()}))


if __name__ == "__main__":
    main()
