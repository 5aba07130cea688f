"""Converts error codes in responses to named errors."""

from __future__ import annotations

from skylog.kernel.errors import ErrorCode, KafkaError


def error_of(number: int, message: str | None = None) -> KafkaError | None:
    """The error of a code in a response; None for none. Codes of later versions are unknown."""
    if number == 0:
        return None
    if number not in ErrorCode._value2member_map_:
        return KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, message or f"error {number}")
    return KafkaError(ErrorCode(number), message)


def check(number: int, message: str | None = None) -> None:
    """Raise the error of a code, if it is one."""
    error = error_of(number, message)
    if error is not None:
        raise error
