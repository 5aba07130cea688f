"""What a topic may be called."""

from __future__ import annotations

import re
from typing import Final

from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.limits import TOPIC_NAME_CHARACTERS_MAX

CLUSTER_METADATA_TOPIC: Final = "__cluster_metadata"
_LEGAL = re.compile(r"[a-zA-Z0-9._-]+")


def check_topic_name(name: str) -> None:
    """INVALID_TOPIC_EXCEPTION where Kafka allows no topic of this name."""
    why = _reason_invalid(name)
    if why is not None:
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic name is invalid: {why}")


def _reason_invalid(name: str) -> str | None:
    if not name:
        return "it may not be empty"
    if name in (".", ".."):
        return f"{name!r} is not allowed"
    if len(name) > TOPIC_NAME_CHARACTERS_MAX:
        return f"{name!r} is longer than {TOPIC_NAME_CHARACTERS_MAX} characters"
    if _LEGAL.fullmatch(name) is None:
        return f"{name!r} has characters other than ASCII letters, digits, '.', '_' and '-'"
    return None
