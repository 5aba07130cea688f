"""Topic names: which are internal, and which Kafka refuses."""

from __future__ import annotations

import re
from typing import Final

from skylog.kernel.limits import TOPIC_NAME_CHARACTERS_MAX

CONSUMER_OFFSETS: Final = "__consumer_offsets"
TRANSACTION_STATE: Final = "__transaction_state"
CLUSTER_METADATA: Final = "__cluster_metadata"
DISKLESS_METADATA: Final = "__diskless_metadata"
INTERNAL_TOPICS: Final = frozenset(
    {CONSUMER_OFFSETS, TRANSACTION_STATE, "__share_group_state", DISKLESS_METADATA}
)
_LEGAL: Final = re.compile(r"[a-zA-Z0-9._-]+")


def is_internal(name: str) -> bool:
    return name in INTERNAL_TOPICS


def topic_name_fault(name: str) -> str | None:
    """Why a name is not a valid topic name; None for a valid one."""
    if not name:
        return "Topic name is invalid: the empty string is not allowed"
    if name in (".", ".."):
        return "Topic name is invalid: '.' or '..' is not allowed"
    if len(name) > TOPIC_NAME_CHARACTERS_MAX:
        return (
            "Topic name is invalid: the length of "
            f"'{name[:TOPIC_NAME_CHARACTERS_MAX]}…' is longer than "
            f"the max allowed length {TOPIC_NAME_CHARACTERS_MAX}"
        )
    if _LEGAL.fullmatch(name) is None:
        return (
            f"Topic name is invalid: '{name}' contains one or more characters other than "
            "ASCII alphanumerics, '.', '_' and '-'"
        )
    return None
