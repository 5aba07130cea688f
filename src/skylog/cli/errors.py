"""Errors as one line that says what to do next. Pure: text in, text out."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from skylog.kernel.errors import ErrorCode, KafkaError, SkylogError

# The client's message for a topic that does not exist.
_BARE_TOPIC: Final = re.compile(r"topic \S+")
_CREDENTIALS: Final = "log in as another user with --client-config, or ask for an ACL"
_ADVICE: Final[Mapping[ErrorCode, str]] = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "`skylog topics list` shows the existing ones",
    ErrorCode.TOPIC_ALREADY_EXISTS: "--if-not-exists accepts that",
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: _CREDENTIALS,
    ErrorCode.GROUP_AUTHORIZATION_FAILED: _CREDENTIALS,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: _CREDENTIALS,
    ErrorCode.GROUP_ID_NOT_FOUND: "`skylog groups list` shows the existing ones",
    ErrorCode.NON_EMPTY_GROUP: "stop its members first, `skylog groups describe` names them",
    ErrorCode.UNKNOWN_MEMBER_ID: "stop the group's members first",
    ErrorCode.SASL_AUTHENTICATION_FAILED: "check sasl.jaas.config in the --client-config file",
    ErrorCode.UNSUPPORTED_SASL_MECHANISM: "set sasl.mechanism in the --client-config file",
    ErrorCode.MESSAGE_TOO_LARGE: "max.message.bytes of the topic is the limit",
    ErrorCode.OFFSET_OUT_OF_RANGE: "`skylog topics describe` shows first and last offsets",
}


class CommandError(SkylogError):
    """An error found by a command; the message is complete."""


def one_line(error: SkylogError) -> str:
    """The error on one line, with its code and advice if there is any."""
    text = explain(error) if isinstance(error, KafkaError) else str(error)
    return " ".join(text.split())


def explain(error: KafkaError) -> str:
    """The message of the broker or client, the code, and the advice."""
    message = (error.message or "").rstrip(".")
    if error.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION and _BARE_TOPIC.fullmatch(message):
        message += " does not exist"
    text = f"{message} ({error.code.name})" if message else error.code.name
    advice = _ADVICE.get(error.code)
    return f"{text}; {advice}" if advice else text


def counted(count: int, noun: str) -> str:
    """``1 partition``, ``2 partitions``."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def raise_failures(results: Mapping[str, object]) -> None:
    """Raise the results that are errors: one as itself, several as one."""
    failed = {name: error for name, error in results.items() if isinstance(error, KafkaError)}
    if not failed:
        return
    raise CommandError(
        "; ".join(
            f"{name}: {explain(error)}" if name not in (error.message or "") else explain(error)
            for name, error in failed.items()
        )
    )
