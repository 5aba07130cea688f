"""Errors for users of Spark: one sentence, without internals."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from skylog.kernel.errors import ErrorCode, KafkaError, SkylogError

P = ParamSpec("P")
T = TypeVar("T")


class ReadError(SkylogError):
    """A read that failed; the message says what is missing and where."""


class DataLossError(ReadError):
    """Data that should have been read no longer exists, and ``failOnDataLoss`` is set."""

    def __init__(self, losses: list[str]) -> None:
        shown = "; ".join(losses[:5]) + (f"; and {len(losses) - 5} more" if losses[5:] else "")
        super().__init__(
            f"data is lost: {shown}. Set the option failOnDataLoss to false to continue without it"
        )


_UNREACHABLE = (ErrorCode.NETWORK_EXCEPTION, ErrorCode.REQUEST_TIMED_OUT)
_SENTENCES = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "there is no {what}",
    ErrorCode.UNKNOWN_TOPIC_ID: "{what} was deleted and created again",
    ErrorCode.INVALID_TOPIC_EXCEPTION: "{what} is not a valid topic name",
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "the principal may not read {what}",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "the principal may not commit offsets of {what}",
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "the principal may not use the cluster",
}


def told(error: KafkaError, bootstrap: str, what: str = "") -> ReadError:
    """The sentence for an error of the cluster at ``bootstrap``; ``what`` is its subject."""
    detail = error.message or error.code.name
    if error.code is ErrorCode.SASL_AUTHENTICATION_FAILED:
        return ReadError(f"{bootstrap} refuses the login: {detail}")
    if error.code in _UNREACHABLE:
        return ReadError(f"no broker answers at kafka.bootstrap.servers={bootstrap}: {detail}")
    sentence = _SENTENCES.get(error.code)
    if sentence is not None and what:
        return ReadError(f"{sentence.format(what=what)} (cluster at {bootstrap})")
    subject = f"{what}: " if what else ""
    return ReadError(f"{subject}{error.code.name}: {detail} (cluster at {bootstrap})")


def one_sentence(function: Callable[P, T]) -> Callable[P, T]:
    """For entry points called by Spark, which shows whole tracebacks that do not help users."""

    @functools.wraps(function)
    def called(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return function(*args, **kwargs)
        except SkylogError as error:
            raise error.with_traceback(None) from None

    return called
