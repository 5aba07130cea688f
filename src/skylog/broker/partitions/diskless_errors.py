"""Errors of the diskless engine as clients see them."""

from __future__ import annotations

from typing import Final

from skylog.kernel.errors import ErrorCode, KafkaError

# Clients know only coordinators of groups and transactions. A Java consumer that gets one of these
# errors for a partition gives up; if told that the leader has changed, it asks again.
_AWAY: Final = frozenset(
    {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    }
)
# What a consumer would give up at, or report to its user, and what makes it ask again instead.
_AGAIN: Final = {
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.NOT_LEADER_OR_FOLLOWER,
    # This broker does not know yet where the records are.
    ErrorCode.OFFSET_MOVED_TO_TIERED_STORAGE: ErrorCode.REPLICA_NOT_AVAILABLE,
}


def change_error(error: ErrorCode) -> ErrorCode:
    """The error of a write; one that says that the outcome is unknown is kept."""
    return ErrorCode.NOT_LEADER_OR_FOLLOWER if error in _AWAY else error


def read_error(error: ErrorCode) -> KafkaError:
    """The error of a read, which can always be repeated."""
    return KafkaError(_AGAIN.get(error, change_error(error)))


def tiered_error(error: ErrorCode) -> KafkaError:
    """The error of a read of tiered segments: of a store that fails, the same as of the WAL's."""
    if error is ErrorCode.UNKNOWN_SERVER_ERROR:
        return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)
    return read_error(error)
