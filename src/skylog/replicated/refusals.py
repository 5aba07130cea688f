"""Error codes with which a runtime ends requests that it cannot complete."""

from __future__ import annotations

from dataclasses import dataclass

from skylog.kernel.errors import ErrorCode


@dataclass(frozen=True, slots=True)
class Refusals:
    """The codes with which a runtime ends requests that it cannot complete."""

    not_leader: ErrorCode
    loading: ErrorCode
    overloaded: ErrorCode
    # A request that has appended may yet take effect: this code must be retriable.
    unknown: ErrorCode


COORDINATOR_REFUSALS = Refusals(
    not_leader=ErrorCode.NOT_COORDINATOR,
    loading=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    overloaded=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    unknown=ErrorCode.COORDINATOR_NOT_AVAILABLE,
)
CONTROLLER_REFUSALS = Refusals(
    not_leader=ErrorCode.NOT_CONTROLLER,
    loading=ErrorCode.NOT_CONTROLLER,
    overloaded=ErrorCode.REQUEST_TIMED_OUT,
    unknown=ErrorCode.REQUEST_TIMED_OUT,
)
