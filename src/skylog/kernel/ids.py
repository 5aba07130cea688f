"""Kafka's 128-bit ids, in Kafka's own notation (URL-safe base64 without padding)."""

from __future__ import annotations

import base64
import re
from typing import Final


class Uuid(bytes):
    """A topic, cluster, directory or incarnation id: sixteen bytes, printed as Kafka does."""

    __slots__ = ()

    @classmethod
    def parse(cls, text: str) -> Uuid:
        """Parse Kafka's 22-character notation; raises ValueError for anything else."""
        try:
            raw = base64.urlsafe_b64decode(text + "==")
        except ValueError as error:
            raise ValueError(f"not a Kafka uuid: {text!r}") from error
        if len(text) != 22 or len(raw) != 16:
            raise ValueError(f"not a Kafka uuid: {text!r}")
        return cls(raw)

    def __str__(self) -> str:
        return base64.urlsafe_b64encode(self).rstrip(b"=").decode()

    def __repr__(self) -> str:
        return f"Uuid({self!s})"


def parse_node_id(text: str) -> int | None:
    """A node id as Java would parse it; Python's ``int`` accepts more."""
    return int(text) if _NODE_ID.fullmatch(text) else None


_NODE_ID: Final = re.compile(r"[+-]?[0-9]{1,10}", re.ASCII)
ZERO_UUID: Final = Uuid(16)
# Kafka reserves the first ids; this one marks the metadata topic.
METADATA_TOPIC_ID: Final = Uuid((1).to_bytes(16, "big"))
