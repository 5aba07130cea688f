"""SASL mechanisms as state machines without I/O: token in, token out, until a user is known.

=========  =====================  ==========================================
state      token                  then
=========  =====================  ==========================================
waiting    acceptable, not last   answer, waiting
waiting    acceptable, last       answer (perhaps empty), complete: ``user``
waiting    anything else          ``SaslError``, failed
complete   any                    ``SaslError`` (the caller asks no further)
failed     any                    ``SaslError``
=========  =====================  ==========================================

A failure's ``public`` text may be sent to the client; without one the client learns only that its
credentials are invalid.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from skylog.kernel.errors import SkylogError


class SaslError(SkylogError):
    """The exchange has failed; ``public`` is what the client may read about it."""

    def __init__(self, why: str, *, public: bool = False) -> None:
        super().__init__(why)
        self.public = why if public else None


class SaslServer(Protocol):
    """The broker's side of one exchange."""

    @property
    def mechanism(self) -> str: ...

    @property
    def blocking(self) -> bool:
        """Whether ``evaluate`` takes long enough to belong in an executor."""
        ...

    @property
    def user(self) -> str | None:
        """The authenticated user, once the exchange is complete."""
        ...

    def evaluate(self, token: bytes) -> bytes: ...


class SaslClient(Protocol):
    """The client's side: it sends the first token, the others answer the server's."""

    @property
    def mechanism(self) -> str: ...

    @property
    def complete(self) -> bool: ...

    def first(self) -> bytes: ...

    def evaluate(self, challenge: bytes) -> bytes | None:
        """The next token, or None if there is nothing more to send."""
        ...


Mechanisms = Mapping[str, Callable[[], SaslServer]]
