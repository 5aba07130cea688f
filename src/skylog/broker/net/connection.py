"""One client connection: frames in, answers out, strictly in order.

A connection handles one request at a time, as Kafka does, so answers cannot overtake each other.
Produce requests whose order is fixed but whose response waits for an object store may *overlap*:
the next one starts, and the responses are still sent in order. Most requests are answered at once,
inside the callback that brought their last byte, without a task or a queue; only an answer that
must wait (a long poll, an off-loop validation) costs a task.

Reading stops while responses cannot be written, while enough requests are queued, or while a quota
mutes the client (back-pressure): the client's socket buffer is the queue.

When a client closes, everything that it has sent is still handled, as in Kafka: a producer with
acks=0 may send its last batch and close. ``connection_state.py`` has the states of a connection,
and the transition for each event.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from skylog.broker.net.answers import Answer, Close, Later, Overlaps
from skylog.broker.net.connection_state import ConnectionState, Event, State
from skylog.kernel import limits
from skylog.kernel.errors import ProtocolError
from skylog.kernel.logging import get_logger
from skylog.security.connection_limits import host_address
from skylog.wire.buffers import Buffer
from skylog.wire.frames import FrameAssembler

if TYPE_CHECKING:
    from skylog.broker.net.server import Listener

log = get_logger("broker.connection")
PRODUCE = b"\0\0"  # the API key with which the frame of a Produce request begins


class Connection(asyncio.BufferedProtocol):
    """The protocol object of one accepted socket."""

    def __init__(self, listener: Listener) -> None:
        self.listener = listener
        self.address = ""
        self.authentication = listener.new_authentication()
        self.opened_at = self.last_active = listener.clock.monotonic()
        # Whether the client has ever been authenticated; re-authentication does not reset this.
        self.introduced = False
        self._transport: asyncio.Transport | None = None
        self._tls = False
        self._frames = FrameAssembler(listener.unauthenticated_bytes_max)
        self.authenticated()
        self._waiting: deque[memoryview] = deque()
        self._waiting_bytes = 0
        self._working_bytes = 0
        # The bytes last reported for requests and for responses.
        self._requests_held = 0
        self._answers_held = 0
        self._turn_is_over = False
        self._task: asyncio.Task[None] | None = None
        self._overlapping = Overlaps()
        # Awaited by a response that must not overtake overlapping ones.
        self._overlapping_sent: asyncio.Future[None] | None = None
        self._muted: asyncio.TimerHandle | None = None
        self._writing_paused = False
        self._reading_paused = False
        self._pumping = False
        self._state = ConnectionState()
        # Called when the client is gone, for a request that waits on its behalf.
        self.when_ended: Callable[[], None] | None = None
        # Bytes passed to the transport, and how many the client had read at the last check.
        self._written = 0
        self._taken = 0
        self._taken_at = self.opened_at

    # asyncio calls these ------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are not asyncio's by class, only by shape.
        self._transport = cast("asyncio.Transport", transport)
        self._state.happened(Event.CONNECTED)
        self._tls = transport.get_extra_info("ssl_object") is not None
        peer = transport.get_extra_info("peername")
        self.address = host_address(peer[0]) if peer else "local"
        try:
            admitted = self.listener.admit(self, self._transport)
        except (ProtocolError, OSError) as error:
            self.close(str(error))
            return
        if not admitted:
            self.close("connection limit")
            return
        delay_ms = self.listener.accept_delay_ms()
        if delay_ms > 0:
            self._mute(delay_ms)

    def connection_lost(self, exc: Exception | None) -> None:
        # With TLS nothing can be sent to a client that has closed, but its requests still count.
        self._state.happened(Event.LEFT if exc is None and self.busy else Event.LOST)
        if self._state.now is State.GONE:
            self._forget()

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._frames.get_buffer(sizehint)

    def buffer_updated(self, nbytes: int) -> None:
        self.last_active = self.listener.clock.monotonic()
        try:
            frames = self._frames.buffer_updated(nbytes)
        except ProtocolError as error:
            self.close(str(error))
            return
        if self._frames.failure is not None and self._transport is not None:
            # What came before is answered as if the invalid data had come later.
            self._transport.pause_reading()
            self._state.happened(Event.INPUT_ENDED)
        if frames:
            self._waiting.extend(frames)
            self._waiting_bytes += sum(map(len, frames))
            self._pump()
        self._report_requests()

    def eof_received(self) -> bool:
        self._state.happened(Event.INPUT_ENDED)
        if self.when_ended is not None:
            self.when_ended()
        return self.busy and not self._tls

    def pause_writing(self) -> None:
        self._writing_paused = True
        self._adjust_reading()

    def resume_writing(self) -> None:
        self._writing_paused = False
        self._report_answers()
        self._pump()

    # Requests -----------------------------------------------------------------------------

    def _pump(self) -> None:
        """Handle requests until one must wait, or it is other connections' turn."""
        if self._pumping or self._turn_is_over:
            return
        self._pumping = True
        left = limits.CONNECTION_REQUESTS_PER_TURN_MAX
        try:
            while self._waiting and not self._blocked():
                if not left:
                    self._turn_is_over = True
                    asyncio.get_running_loop().call_soon(self._next_turn)
                    break
                left -= 1
                frame = self._waiting.popleft()
                self._waiting_bytes -= len(frame)
                self._handle(frame)
        finally:
            self._pumping = False
        if self._state.is_open:
            self._adjust_reading()
        elif not self.busy and self._state.now in (State.HALF_CLOSED, State.DRAINING):
            self._all_answered()

    def _all_answered(self) -> None:
        self._state.happened(Event.FINISHED)
        if self._state.now is State.GONE:
            self._forget()
        else:
            self._close_socket(str(self._frames.failure or "the client closed"))

    def _next_turn(self) -> None:
        self._turn_is_over = False
        self._pump()

    def _blocked(self) -> bool:
        if self._task is not None or self._muted is not None or self._must_not_overlap():
            return True
        transport = self._transport
        if not self._state.answers or transport is None:
            return self._state.now is not State.DRAINING
        # A failed write ends the connection a little later; no request may start until then.
        return self._writing_paused or transport.is_closing()

    def _must_not_overlap(self) -> bool:
        """Whether the next request has to wait for answers that are still outstanding."""
        if not self._overlapping:
            return False
        full = len(self._overlapping) >= limits.CONNECTION_REQUESTS_OVERLAPPING_MAX
        return full or bytes(self._waiting[0][:2]) != PRODUCE

    def _handle(self, frame: memoryview) -> None:
        try:
            answer = self.listener.dispatcher.dispatch(self, frame)
            if isinstance(answer, Later):
                self._overlap(answer, len(frame))
            elif answer is not None and not isinstance(answer, Answer):
                self._working_bytes += len(frame)
                finish = self._finish(answer, len(frame))
                self._task = asyncio.get_running_loop().create_task(finish)
            elif self._overlapping:
                settled = asyncio.get_running_loop().create_future()
                settled.set_result(answer)
                self._overlap(Later(settled, settled.result), 0)
            else:
                self._send(answer)
        except (Close, ProtocolError) as verdict:
            self.close(str(verdict))
        except Exception:
            log.exception("request failed", address=self.address)
            self.close("internal error")

    def _overlap(self, answer: Later, size: int) -> None:
        self._working_bytes += size
        self._overlapping.add(answer, size, self._overlapped)

    def _overlapped(self) -> None:
        """Send the responses that are next in order, all at once."""
        if not self._overlapping.next_is_over:
            return  # already sent with an earlier one, or not next in order
        parts: list[Buffer] = []
        while self._overlapping.next_is_over:
            overlapping, size = self._overlapping.take()
            self._working_bytes -= size
            answer = self._finished(overlapping)
            if answer is None:
                continue
            parts += answer.parts
            if answer.mute_ms > 0 or answer.close:
                self._send(Answer(parts, answer.mute_ms, answer.close))
                parts = []
        self._send(Answer(parts))
        if not self._overlapping and self._overlapping_sent is not None:
            if not self._overlapping_sent.done():  # the waiter may have been cancelled
                self._overlapping_sent.set_result(None)
            self._overlapping_sent = None
        self._pump()
        self._report_requests()

    def _finished(self, overlapping: Later) -> Answer | None:
        try:
            answer: Answer | None = overlapping.finish()
        except asyncio.CancelledError:
            return None
        except (Close, ProtocolError) as verdict:
            self.close(str(verdict))
        except Exception:
            log.exception("request failed", address=self.address)
            self.close("internal error")
        else:
            return answer
        return None

    async def _finish(self, answer: Any, size: int) -> None:
        try:
            result = await answer
            if self._overlapping:
                self._overlapping_sent = asyncio.get_running_loop().create_future()
                await self._overlapping_sent
            self._send(result)
        except (Close, ProtocolError) as verdict:
            self.close(str(verdict))
        except asyncio.CancelledError:
            raise
        except Exception:
            log.exception("request failed", address=self.address)
            self.close("internal error")
        finally:
            self._task = None
            self._working_bytes -= size
        self._pump()
        self._report_requests()

    def _send(self, answer: Answer | None) -> None:
        if answer is None or self._transport is None or not self._state.answers:
            return
        self.last_active = self.listener.clock.monotonic()
        if answer.mute_ms > 0:
            self._mute(answer.mute_ms)
        if answer.parts:
            self._written += sum(map(len, answer.parts))
            self._transport.writelines(answer.parts)
            self._report_answers()
        if answer.close:
            self.close("the response asks for it")

    def _mute(self, delay_ms: int) -> None:
        """Accept no request for a while: the client is over its quota."""
        self._muted = asyncio.get_running_loop().call_later(delay_ms / 1000, self._unmute)
        self._adjust_reading()

    def _unmute(self) -> None:
        self._muted = None
        self._pump()

    # State --------------------------------------------------------------------------------

    def authenticated(self) -> None:
        """After authentication, requests of full size are allowed."""
        if self.authentication.complete:
            self.introduced = True
            self._frames.limit = self.listener.request_bytes_max

    @property
    def ended(self) -> bool:
        """Whether the client expects no more than the responses to what it has sent."""
        return not self._state.is_open

    @property
    def busy(self) -> bool:
        return self._task is not None or bool(self._waiting) or bool(self._overlapping)

    @property
    def task(self) -> asyncio.Task[None] | None:
        """The request that is being handled and must wait for something."""
        return self._task

    def stalled_for(self, now: float) -> float:
        """For how many seconds the client has read nothing although there is something to read."""
        if self._transport is None:
            return 0.0
        unsent = self._transport.get_write_buffer_size()
        taken = self._written - unsent
        if taken != self._taken or not unsent:
            self._taken, self._taken_at = taken, now
        return now - self._taken_at

    def extra(self, name: str) -> Any:
        return self._transport.get_extra_info(name) if self._transport is not None else None

    def close(self, why: str) -> None:
        if self._state.happened(Event.CLOSE):
            self._close_socket(why)

    def _close_socket(self, why: str) -> None:
        log.debug("connection closed", address=self.address, why=why)
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        """Close now, whatever is unsent or unfinished."""
        changed = self._state.happened(Event.ABORT)
        if self._state.now is State.CLOSING and self._transport is not None:
            self._transport.abort()
        elif changed:
            self._forget()

    def _forget(self) -> None:
        if self._task is not None:
            # Deferred, because a task that is cancelled before its first step cleans up nothing.
            asyncio.get_running_loop().call_soon(self._task.cancel)
        if self._muted is not None:
            self._muted.cancel()
        self._waiting.clear()
        self._overlapping.close()
        self._waiting_bytes = 0
        self.listener.memory.requests.hold(self, 0)
        self.listener.memory.answers.hold(self, 0)
        self.listener.forget(self)

    # Memory -------------------------------------------------------------------------------

    @property
    def in_work(self) -> bool:
        return self._task is not None

    def _report_requests(self) -> None:
        held = self._frames.held + self._waiting_bytes + self._working_bytes
        if held < limits.IN_FLIGHT_BYTES_COUNTED_MIN:
            held = 0
        if held != self._requests_held and self._state.answers:
            self._requests_held = held
            self.listener.memory.requests.hold(self, held)

    def _report_answers(self) -> None:
        held = 0 if self._transport is None else self._transport.get_write_buffer_size()
        if held < limits.IN_FLIGHT_BYTES_COUNTED_MIN:
            held = 0
        if held != self._answers_held and self._state.answers:
            self._answers_held = held
            self.listener.memory.answers.hold(self, held)

    def _adjust_reading(self) -> None:
        if self._transport is None or not self._state.is_open or self._transport.is_closing():
            return
        pause = bool(
            len(self._waiting) >= limits.CONNECTION_REQUESTS_WAITING_MAX
            or self._waiting_bytes >= limits.CONNECTION_WAITING_BYTES_MAX
            or (self._waiting and self._writing_paused)
            or self._muted is not None
        )
        if pause and not self._reading_paused:
            self._transport.pause_reading()
        elif self._reading_paused and not pause:
            self._transport.resume_reading()
        self._reading_paused = pause
