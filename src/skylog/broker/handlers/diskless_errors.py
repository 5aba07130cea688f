"""What clients are told of a diskless partition whose control plane does not answer.

They know coordinators of groups and transactions only. A Java consumer that is told of one by a
partition gives up; told that the leader has changed, it asks again.
"""

from __future__ import annotations

from typing import Final

from skylog.kernel.errors import ErrorCode

_AWAY: Final = frozenset(
    {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    }
)


def change_error(error: ErrorCode) -> ErrorCode:
    """Of a change; that its end is not known is told as it is."""
    return ErrorCode.NOT_LEADER_OR_FOLLOWER if error in _AWAY else error


def read_error(error: ErrorCode) -> ErrorCode:
    """Of a question, which may be asked again whatever became of it."""
    timed_out = error is ErrorCode.REQUEST_TIMED_OUT
    return ErrorCode.NOT_LEADER_OR_FOLLOWER if timed_out else change_error(error)
