"""A proxy that delays the responses of a server by some milliseconds.

python -m bench.slow_link HOST:PORT MILLISECONDS

It prints its port, and for each line of input the number of bytes received from the server so far.
Only latency is added: any number of responses may be in flight at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import uvloop

from bench.clusters import ROOT

CHUNK_BYTES = 1 << 18
# Chunks of one connection in flight; more wait in the server.
CHUNKS_MAX = 64


class SlowLink:
    """The proxy as the bench sees it."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.port = int(self._line())

    def _line(self) -> str:
        return self._process.stdout.readline() if self._process.stdout else ""

    def bytes(self) -> int:
        """Bytes that the server has sent so far."""
        if self._process.stdin is not None:
            self._process.stdin.write("\n")
            self._process.stdin.flush()
        return int(self._line())


@contextlib.contextmanager
def slow_link(address: str, milliseconds: int) -> Iterator[SlowLink]:
    process = subprocess.Popen(
        [sys.executable, "-m", "bench.slow_link", address, str(milliseconds)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    try:
        yield SlowLink(process)
    finally:
        process.terminate()
        process.wait()


class _Proxy:
    def __init__(self, address: str, seconds: float) -> None:
        self._host, _, self._port = address.partition(":")
        self._seconds = seconds
        self.bytes = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        answers, server = await asyncio.open_connection(self._host, int(self._port))
        ways = [asyncio.ensure_future(self._ask(reader, server))]
        ways.append(asyncio.ensure_future(self._answer(answers, writer)))
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        for way in ways:
            way.cancel()
        for end in (server, writer):
            end.close()

    async def _ask(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(CHUNK_BYTES):
            writer.write(data)
            await writer.drain()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        under_way: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(CHUNKS_MAX)
        receiving = asyncio.ensure_future(self._receive(reader, under_way))
        try:
            while True:
                due, data = await under_way.get()
                if not data:
                    return
                await asyncio.sleep(max(due - time.monotonic(), 0))
                writer.write(data)
                await writer.drain()
        finally:
            receiving.cancel()

    async def _receive(
        self, reader: asyncio.StreamReader, to: asyncio.Queue[tuple[float, bytes]]
    ) -> None:
        while True:
            data = await reader.read(CHUNK_BYTES)
            self.bytes += len(data)
            await to.put((time.monotonic() + self._seconds, data))
            if not data:
                return


async def _main(address: str, milliseconds: int) -> None:
    proxy = _Proxy(address, milliseconds / 1000)
    server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0, limit=CHUNK_BYTES)
    print(server.sockets[0].getsockname()[1], flush=True)

    def tell() -> None:
        for _ in sys.stdin:
            print(proxy.bytes, flush=True)

    threading.Thread(target=tell, daemon=True).start()
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(_main(sys.argv[1], int(sys.argv[2])))
