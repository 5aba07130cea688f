"""The states of a connection: every state with every event, including invalid ones."""

from __future__ import annotations

import pytest

from skylog.broker.net.connection_state import (
    TRANSITIONS,
    ConnectionState,
    Event,
    ImpossibleEventError,
    State,
)

# One path to each state.
WAYS: dict[State, tuple[Event, ...]] = {
    State.NEW: (),
    State.OPEN: (Event.CONNECTED,),
    State.HALF_CLOSED: (Event.CONNECTED, Event.INPUT_ENDED),
    State.CLOSING: (Event.CONNECTED, Event.CLOSE),
    State.DRAINING: (Event.CONNECTED, Event.INPUT_ENDED, Event.LEFT),
    State.GONE: (Event.CONNECTED, Event.LOST),
}
# The transitions a second time, in another order: by event.
EXPECTED: dict[Event, dict[State, State]] = {
    Event.CONNECTED: {State.NEW: State.OPEN},
    Event.INPUT_ENDED: {
        State.OPEN: State.HALF_CLOSED,
        State.HALF_CLOSED: State.HALF_CLOSED,
        State.CLOSING: State.CLOSING,
    },
    Event.FINISHED: {State.HALF_CLOSED: State.CLOSING, State.DRAINING: State.GONE},
    Event.CLOSE: {
        State.OPEN: State.CLOSING,
        State.HALF_CLOSED: State.CLOSING,
        State.CLOSING: State.CLOSING,
        State.DRAINING: State.DRAINING,
        State.GONE: State.GONE,
    },
    Event.ABORT: {
        State.OPEN: State.CLOSING,
        State.HALF_CLOSED: State.CLOSING,
        State.CLOSING: State.CLOSING,
        State.DRAINING: State.GONE,
        State.GONE: State.GONE,
    },
    Event.LOST: {
        State.OPEN: State.GONE,
        State.HALF_CLOSED: State.GONE,
        State.CLOSING: State.GONE,
    },
    Event.LEFT: {
        State.OPEN: State.GONE,
        State.HALF_CLOSED: State.DRAINING,
        State.CLOSING: State.GONE,
    },
}


def brought_to(state: State) -> ConnectionState:
    connection = ConnectionState()
    for event in WAYS[state]:
        connection.happened(event)
    assert connection.now is state
    return connection


@pytest.mark.parametrize("event", Event)
@pytest.mark.parametrize("state", State)
def test_each_event_in_each_state(state: State, event: Event) -> None:
    connection = brought_to(state)
    expected = EXPECTED[event].get(state)
    if expected is None:
        with pytest.raises(ImpossibleEventError, match=f"{event.name} cannot occur in state"):
            connection.happened(event)
        assert connection.now is state
    else:
        assert connection.happened(event) is (expected is not state)
        assert connection.now is expected
    assert connection.is_open is (connection.now is State.OPEN)
    assert connection.answers is (connection.now in (State.OPEN, State.HALF_CLOSED))


def test_every_connection_can_be_ended() -> None:
    """Every state has a path to GONE, and none leads out of it."""
    assert set(TRANSITIONS) == set(State)
    for state in State:
        seen = {state}
        for _ in State:
            seen |= {after for one in seen for after in TRANSITIONS[one].values()}
        assert State.GONE in seen
    assert set(TRANSITIONS[State.GONE].values()) == {State.GONE}
