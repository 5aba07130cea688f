"""The life of a machine on the leader of its log, whichever runtime runs it.

=========  =====================================================================================
state      goes to
=========  =====================================================================================
unloaded   loading: this broker leads the log
loading    active: the machine has the log up to its end · unloaded: leadership lost, a bad log
active     unloaded: leadership lost, a failed append, a state that can no longer be trusted
=========  =====================================================================================

Only an active machine takes requests. What waits when it is unloaded gets an error, which says
whether the request may still take effect.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from skylog.kernel.errors import ErrorCode, KafkaError


class State(Enum):
    UNLOADED = "unloaded"
    LOADING = "loading"
    ACTIVE = "active"


@dataclass(frozen=True, slots=True)
class Refusals:
    """The codes with which a runtime ends requests that it cannot complete."""

    not_leader: ErrorCode
    loading: ErrorCode
    overloaded: ErrorCode
    # A request that has appended may yet take effect: this code must be retriable.
    unknown: ErrorCode

    def not_active(self, state: State) -> KafkaError:
        return KafkaError(self.loading if state is State.LOADING else self.not_leader)

    def unloaded(self, *, appended: bool) -> KafkaError:
        """For a request that waited; ``appended``: it may take effect under the next leader."""
        return KafkaError(self.unknown, ambiguous=True) if appended else KafkaError(self.not_leader)


COORDINATOR_REFUSALS = Refusals(
    not_leader=ErrorCode.NOT_COORDINATOR,
    loading=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    overloaded=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    unknown=ErrorCode.COORDINATOR_NOT_AVAILABLE,
)
DISKLESS_REFUSALS = Refusals(
    not_leader=ErrorCode.NOT_COORDINATOR,
    loading=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    overloaded=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    unknown=ErrorCode.REQUEST_TIMED_OUT,
)
CONTROLLER_REFUSALS = Refusals(
    not_leader=ErrorCode.NOT_CONTROLLER,
    loading=ErrorCode.NOT_CONTROLLER,
    overloaded=ErrorCode.REQUEST_TIMED_OUT,
    unknown=ErrorCode.REQUEST_TIMED_OUT,
)
