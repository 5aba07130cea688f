"""The states of a client connection, and the transition for each event. Pure.

============  =============  ===========  ==================================================
state         event          then         what the connection does
============  =============  ===========  ==================================================
NEW           CONNECTED      OPEN         asks the listener for admission
OPEN          INPUT_ENDED    HALF_CLOSED  answers what it has, accepts no further request
OPEN          CLOSE, ABORT   CLOSING      closes the socket
OPEN          LOST, LEFT     GONE         drops its requests, and is deregistered
HALF_CLOSED   INPUT_ENDED    HALF_CLOSED  nothing: garbage came first, then the end
HALF_CLOSED   FINISHED       CLOSING      closes the socket
HALF_CLOSED   CLOSE, ABORT   CLOSING      closes the socket
HALF_CLOSED   LEFT           DRAINING     handles its requests, sends no response
HALF_CLOSED   LOST           GONE         drops its requests, and is deregistered
CLOSING       INPUT_ENDED    CLOSING      nothing
CLOSING       CLOSE, ABORT   CLOSING      nothing, or aborts the socket
CLOSING       LOST, LEFT     GONE         drops its requests, and is deregistered
DRAINING      CLOSE          DRAINING     nothing: a failed request ends no other
DRAINING      FINISHED       GONE         is deregistered
DRAINING      ABORT          GONE         drops its requests, and is deregistered
GONE          CLOSE, ABORT   GONE         nothing
============  =============  ===========  ==================================================

Every other combination is impossible and raises. Two rules, as in h11: whatever changes the state
is in this file, and nothing here knows sockets.

Conditions that come and go within a state are not states: a muted client, a full write buffer and a
request that waits for its response only hold back the next request. TLS is complete before a
connection is CONNECTED; authentication is the business of ``security.authentication``.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto
from typing import Final


class State(Enum):
    NEW = auto()
    OPEN = auto()
    HALF_CLOSED = auto()
    CLOSING = auto()
    DRAINING = auto()
    GONE = auto()


class Event(Enum):
    CONNECTED = auto()
    # The client has closed its side, or sends invalid data.
    INPUT_ENDED = auto()
    # The last request was answered, and there will be no other.
    FINISHED = auto()
    # The broker closes the connection: written responses are still sent.
    CLOSE = auto()
    # The same, and unsent or unfinished work is dropped.
    ABORT = auto()
    # The socket is gone: after an error, or with nothing left to do ...
    LOST = auto()
    # ... or closed cleanly, with requests left to handle.
    LEFT = auto()


class ImpossibleEventError(RuntimeError):
    """An event that cannot occur in this state: a bug."""


TRANSITIONS: Final[Mapping[State, Mapping[Event, State]]] = {
    State.NEW: {Event.CONNECTED: State.OPEN},
    State.OPEN: {
        Event.INPUT_ENDED: State.HALF_CLOSED,
        Event.CLOSE: State.CLOSING,
        Event.ABORT: State.CLOSING,
        Event.LOST: State.GONE,
        Event.LEFT: State.GONE,
    },
    State.HALF_CLOSED: {
        Event.INPUT_ENDED: State.HALF_CLOSED,
        Event.FINISHED: State.CLOSING,
        Event.CLOSE: State.CLOSING,
        Event.ABORT: State.CLOSING,
        Event.LOST: State.GONE,
        Event.LEFT: State.DRAINING,
    },
    State.CLOSING: {
        Event.INPUT_ENDED: State.CLOSING,
        Event.CLOSE: State.CLOSING,
        Event.ABORT: State.CLOSING,
        Event.LOST: State.GONE,
        Event.LEFT: State.GONE,
    },
    State.DRAINING: {
        Event.CLOSE: State.DRAINING,
        Event.FINISHED: State.GONE,
        Event.ABORT: State.GONE,
    },
    State.GONE: {Event.CLOSE: State.GONE, Event.ABORT: State.GONE},
}


class ConnectionState:
    """The state of one connection. Its attributes are for reading."""

    __slots__ = ("answers", "is_open", "now")

    def __init__(self) -> None:
        self.now = State.NEW
        self.is_open = False
        # Whether answers can be sent.
        self.answers = False

    def happened(self, event: Event) -> bool:
        """Change the state; False if it stays the same."""
        before = self.now
        following = TRANSITIONS[before].get(event)
        if following is None:
            raise ImpossibleEventError(f"{event.name} cannot occur in state {before.name}")
        self.now = following
        self.is_open = following is State.OPEN
        self.answers = self.is_open or following is State.HALF_CLOSED
        return following is not before
