"""Errors as one line that says what to do next. Pure: text in, text out."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from skylog.kernel.errors import ErrorCode, KafkaError, SkylogError

# All that the client knows of a topic that is not there.
_BARE_TOPIC: Final = re.compile(r"topic \S+")
_CREDENTIALS: Final = "log in as somebody else with --client-config, or ask for an ACL"
_ADVICE: Final[Mapping[ErrorCode, str]] = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "`skylog topics list` shows what there is",
    ErrorCode.TOPIC_ALREADY_EXISTS: "--if-not-exists accepts that",
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: _CREDENTIALS,
    ErrorCode.GROUP_AUTHORIZATION_FAILED: _CREDENTIALS,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: _CREDENTIALS,
    ErrorCode.GROUP_ID_NOT_FOUND: "`skylog groups list` shows what there is",
    ErrorCode.NON_EMPTY_GROUP: "stop its members first, `skylog groups describe` names them",
    ErrorCode.UNKNOWN_MEMBER_ID: "stop the group's members first",
    ErrorCode.SASL_AUTHENTICATION_FAILED: "check sasl.jaas.config in the --client-config file",
    ErrorCode.UNSUPPORTED_SASL_MECHANISM: "set sasl.mechanism in the --client-config file",
    ErrorCode.MESSAGE_TOO_LARGE: "max.message.bytes of the topic is the limit",
    ErrorCode.OFFSET_OUT_OF_RANGE: "`skylog topics describe` shows first and last offsets",
}


class CommandError(SkylogError):
    """What a command found wrong; the message is complete."""


def one_line(error: SkylogError) -> str:
    """The error without line breaks, with its code and with advice where we have some."""
    text = explain(error) if isinstance(error, KafkaError) else str(error)
    return " ".join(text.split())


def explain(error: KafkaError) -> str:
    """What a broker or the client says, the code, and what helps."""
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
    """Raise for those results that are errors: one is itself, several become one."""
    failed = {name: error for name, error in results.items() if isinstance(error, KafkaError)}
    if not failed:
        return
    raise CommandError(
        "; ".join(
            f"{name}: {explain(error)}" if name not in (error.message or "") else explain(error)
            for name, error in failed.items()
        )
    )
