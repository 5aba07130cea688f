"""One client connection: frames in, answers out, strictly in order.

A connection handles one request at a time, as Kafka does, so answers cannot overtake each other.
Most requests are answered at once, inside the callback that brought their last byte, without a
task or a queue; only an answer that must wait (a long poll, an off-loop validation) costs a task.

Reading stops while answers cannot be written, while enough requests wait, or while a quota mutes
the client: the client's own socket buffer is the queue.
"""

from __future__ import annotations

import asyncio
import inspect
from collections import deque
from typing import TYPE_CHECKING, Any, cast

from skylog.kernel import limits
from skylog.kernel.errors import ProtocolError
from skylog.kernel.logging import get_logger
from skylog.wire.buffers import Buffer
from skylog.wire.frames import FrameAssembler

if TYPE_CHECKING:
    from skylog.broker.server import Listener

log = get_logger("broker.connection")


class Close(Exception):  # noqa: N818 - a verdict, not an error
    """The connection ends here, without an answer."""


class Connection(asyncio.BufferedProtocol):
    """The protocol object of one accepted socket."""

    def __init__(self, listener: Listener) -> None:
        self.listener = listener
        self.address = ""
        self.authentication = listener.new_authentication()
        self.last_active = 0.0
        self._transport: asyncio.Transport | None = None
        self._frames = FrameAssembler(listener.unauthenticated_bytes_max)
        self.authenticated()
        self._waiting: deque[memoryview] = deque()
        self._task: asyncio.Task[None] | None = None
        self._muted: asyncio.TimerHandle | None = None
        self._writing_paused_at = 0.0
        self._reading_paused = False
        self._pumping = False
        self._closing = False

    # asyncio calls these ------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are not asyncio's by class, only by shape.
        self._transport = cast("asyncio.Transport", transport)
        peer = transport.get_extra_info("peername")
        self.address = peer[0] if peer else "local"
        self.last_active = self.listener.clock.monotonic()
        try:
            admitted = self.listener.admit(self, self._transport)
        except ProtocolError as error:
            self.close(str(error))
            return
        if not admitted:
            self.close("connection limit")
            return
        delay_ms = self.listener.accept_delay_ms()
        if delay_ms > 0:
            self._mute(delay_ms)

    def connection_lost(self, exc: Exception | None) -> None:
        self._closing = True
        if self._task is not None:
            self._task.cancel()
        if self._muted is not None:
            self._muted.cancel()
        self._waiting.clear()
        self.listener.forget(self)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._frames.get_buffer(sizehint)

    def buffer_updated(self, nbytes: int) -> None:
        self.last_active = self.listener.clock.monotonic()
        try:
            frames = self._frames.buffer_updated(nbytes)
        except ProtocolError as error:
            self.close(str(error))
            return
        if frames:
            self._waiting.extend(frames)
            self._pump()

    def eof_received(self) -> bool:
        return False

    def pause_writing(self) -> None:
        self._writing_paused_at = self.listener.clock.monotonic()
        self._adjust_reading()

    def resume_writing(self) -> None:
        self._writing_paused_at = 0.0
        self._pump()

    # Requests -----------------------------------------------------------------------------

    def _pump(self) -> None:
        """Handle requests until one must wait."""
        if self._pumping:
            return
        self._pumping = True
        try:
            while self._waiting and not self._blocked():
                self._handle(self._waiting.popleft())
        finally:
            self._pumping = False
        self._adjust_reading()

    def _blocked(self) -> bool:
        return bool(
            self._task is not None
            or self._muted is not None
            or self._writing_paused_at
            or self._closing
        )

    def _handle(self, frame: memoryview) -> None:
        try:
            answer = self.listener.dispatcher.dispatch(self, frame)
            if inspect.isawaitable(answer):
                self._task = asyncio.ensure_future(self._finish(answer))
                return
            self._send(answer)
        except (Close, ProtocolError) as verdict:
            self.close(str(verdict))
        except Exception:
            log.exception("request failed", address=self.address)
            self.close("internal error")

    async def _finish(self, answer: Any) -> None:
        try:
            self._send(await answer)
        except (Close, ProtocolError) as verdict:
            self.close(str(verdict))
        except asyncio.CancelledError:
            raise
        except Exception:
            log.exception("request failed", address=self.address)
            self.close("internal error")
        finally:
            self._task = None
        self._pump()

    def _send(self, answer: Answer | None) -> None:
        if answer is None or self._transport is None or self._closing:
            return
        self.last_active = self.listener.clock.monotonic()
        if answer.parts:
            self._transport.writelines(answer.parts)
        if answer.mute_ms > 0:
            self._mute(answer.mute_ms)
        if answer.close:
            self.close("as answered")

    def _mute(self, delay_ms: int) -> None:
        """Take no request for a while: the client is beyond its quota."""
        self._muted = asyncio.get_running_loop().call_later(delay_ms / 1000, self._unmute)
        self._adjust_reading()

    def _unmute(self) -> None:
        self._muted = None
        self._pump()

    # State --------------------------------------------------------------------------------

    def authenticated(self) -> None:
        """Once it is known who speaks, requests of full size may come."""
        if self.authentication.complete:
            self._frames.limit = self.listener.request_bytes_max

    @property
    def busy(self) -> bool:
        return self._task is not None or bool(self._waiting)

    @property
    def stalled_since(self) -> float:
        """When the client stopped reading its answers; 0 while it reads."""
        return self._writing_paused_at

    def extra(self, name: str) -> Any:
        return self._transport.get_extra_info(name) if self._transport is not None else None

    def close(self, why: str) -> None:
        if self._closing or self._transport is None:
            return
        self._closing = True
        log.debug("connection closed", address=self.address, why=why)
        self._transport.close()

    def abort(self) -> None:
        self._closing = True
        if self._transport is not None:
            self._transport.abort()

    def _adjust_reading(self) -> None:
        if self._transport is None or self._transport.is_closing():
            return
        pause = bool(
            len(self._waiting) >= limits.CONNECTION_REQUESTS_WAITING_MAX
            or (self._waiting and self._writing_paused_at)
            or self._muted is not None
        )
        if pause and not self._reading_paused:
            self._transport.pause_reading()
        elif self._reading_paused and not pause:
            self._transport.resume_reading()
        self._reading_paused = pause


class Answer:
    """What goes back: the frame's parts, how long the client is muted, whether it is the last."""

    __slots__ = ("close", "mute_ms", "parts")

    def __init__(self, parts: list[Buffer], mute_ms: int = 0, close: bool = False) -> None:
        self.parts = parts
        self.mute_ms = mute_ms
        self.close = close
