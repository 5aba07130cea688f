"""Secrets that are never printed."""

from __future__ import annotations

import hmac
from typing import Final

HIDDEN: Final = "[hidden]"


class Secret:
    """A password or key. Only ``reveal`` returns it; logs, errors and reprs show ``[hidden]``."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        return self._text

    def matches(self, other: str) -> bool:
        """Compare in constant time, so that the response time reveals nothing."""
        return hmac.compare_digest(self._text.encode(), other.encode())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and self.matches(other._text)

    def __hash__(self) -> int:
        return hash(self._text)

    def __repr__(self) -> str:
        return HIDDEN

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return HIDDEN

    def __reduce__(self) -> tuple[object, ...]:
        raise TypeError("a secret must not be serialized")
