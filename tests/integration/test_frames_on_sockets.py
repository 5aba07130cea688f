"""Frames from real sockets on both event loops: connections that share a scratch buffer."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable

import pytest
import uvloop

from skylog.wire.frames import FrameAssembler

CONNECTIONS = 12
SIZES = (0, 1, 100, 4_000, 5_000, 70_000, 300_000)


class Collector(asyncio.BufferedProtocol):
    def __init__(self, expected: int, done: asyncio.Future[list[bytes]]) -> None:
        self._frames = FrameAssembler(1 << 20)
        self._collected: list[memoryview] = []
        self._expected = expected
        self._done = done

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._frames.get_buffer(sizehint)

    def buffer_updated(self, nbytes: int) -> None:
        self._collected += self._frames.buffer_updated(nbytes)
        if len(self._collected) == self._expected and not self._done.done():
            self._done.set_result([bytes(f) for f in self._collected])


def bodies(seed: int) -> list[bytes]:
    rng = random.Random(seed)
    return [rng.randbytes(rng.choice(SIZES)) for _ in range(40)]


async def send(port: int, frames: list[bytes], rng: random.Random) -> None:
    _, writer = await asyncio.open_connection("127.0.0.1", port)
    stream = b"".join(len(f).to_bytes(4, "big") + f for f in frames)
    while stream:
        count = rng.choice((3, 1_000, 65_536, 200_000))
        writer.write(stream[:count])
        stream = stream[count:]
        await writer.drain()
        await asyncio.sleep(0)  # let the other connections write in between
    writer.close()
    await writer.wait_closed()


async def exchange() -> None:
    loop = asyncio.get_running_loop()
    done: list[asyncio.Future[list[bytes]]] = [loop.create_future() for _ in range(CONNECTIONS)]
    waiting = iter(done)
    server = await loop.create_server(lambda: Collector(40, next(waiting)), "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    sent = [bodies(seed) for seed in range(CONNECTIONS)]
    senders = [send(port, frames, random.Random(n)) for n, frames in enumerate(sent)]
    await asyncio.gather(*senders)
    received = await asyncio.gather(*done)
    server.close()
    await server.wait_closed()
    assert sorted(received) == sorted(sent)


@pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_connections_do_not_mix_their_frames(
    new_loop: Callable[[], asyncio.AbstractEventLoop],
) -> None:
    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(exchange())
