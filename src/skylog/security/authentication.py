"""A connection's authentication: which requests are allowed next, and the principal.

On a listener without SASL the connection is authenticated from its first byte.

==============  ========================  ================================================
state           input                     next state, answer
==============  ========================  ================================================
HANDSHAKE       ApiVersions               HANDSHAKE, the usual answer
HANDSHAKE       SaslHandshake, enabled    EXCHANGE (raw tokens after version 0)
HANDSHAKE       SaslHandshake, other      FAILED, UNSUPPORTED_SASL_MECHANISM and the list
HANDSHAKE       any other request         FAILED, no answer
EXCHANGE        token, accepted           EXCHANGE or AUTHENTICATED, the mechanism's token
EXCHANGE        token, refused            FAILED, SASL_AUTHENTICATION_FAILED (raw: no answer)
EXCHANGE        any other request         FAILED, ILLEGAL_SASL_STATE
AUTHENTICATED   SaslHandshake             EXCHANGE again when sessions end (KIP-368) and the
                                          last one began a second ago; else ILLEGAL_SASL_STATE
AUTHENTICATED   SaslAuthenticate          AUTHENTICATED, ILLEGAL_SASL_STATE
AUTHENTICATED   any other request         AUTHENTICATED; FAILED once the session has ended
FAILED          anything                  FAILED, no answer
==============  ========================  ================================================

Re-authentication keeps mechanism and principal, or fails. A failed connection is closed after its
response; both are delayed by ``connection.failed.authentication.delay.ms``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from skylog.kernel.errors import ErrorCode, ProtocolError, invariant
from skylog.security.principal import ANONYMOUS, user_principal
from skylog.security.sasl import Mechanisms, SaslError, SaslServer
from skylog.wire.apis import ApiKey
from skylog.wire.messages.sasl_authenticate_response import SaslAuthenticateResponse
from skylog.wire.messages.sasl_handshake_response import SaslHandshakeResponse

_UNAUTHENTICATED: Final = (ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE)
# Kafka refuses to restart sooner: a client could keep the broker hashing.
REAUTHENTICATION_INTERVAL_MS_MIN: Final = 1000


class State(Enum):
    HANDSHAKE = "handshake"
    EXCHANGE = "exchange"
    AUTHENTICATED = "authenticated"
    FAILED = "failed"


class Admission(Enum):
    """What to do with a request."""

    SERVE = "serve"
    ILLEGAL_STATE = "respond with ILLEGAL_SASL_STATE, then close"
    CLOSE = "close without a response"


@dataclass(frozen=True, slots=True)
class SaslSettings:
    """A listener's SASL settings; a mechanism is enabled only with its verifier."""

    mechanisms: Mechanisms
    max_reauth_ms: Mapping[str, int] = field(default_factory=dict)
    failed_delay_ms: int = 100

    def __repr__(self) -> str:
        return f"SaslSettings({', '.join(self.mechanisms)})"


class Authentication:
    """The state of one connection; ``sasl`` is None on a listener without SASL.

    The caller does, in this order:

    1. Once, after a TLS handshake: ``identified(ListenerTls.principal(ssl_object))``.
    2. For each frame: while ``expects_raw_token``, ``raw_token(frame)`` is the whole answer,
       framed without a header. Else read the request header and ask ``admit(api_key, now_ms)``:

       - ``CLOSE``: no answer; close.
       - ``ILLEGAL_STATE``: answer with the API's own response class and ILLEGAL_SASL_STATE, then
         close after ``close_delay_ms``.
       - ``SERVE``: answer SaslHandshake with ``handshake`` and SaslAuthenticate with
         ``authenticate``; hand any other request to its handler.

    3. After each answer: if ``failed``, hold the answer back for ``close_delay_ms``, then send it
       and close; if ``complete``, lift the limit on the size of requests.

    While ``blocking``, ``authenticate`` and ``raw_token`` take milliseconds and belong in an
    executor, one call at a time, because the state is not thread-safe.
    """

    def __init__(self, sasl: SaslSettings | None, principal: str = ANONYMOUS) -> None:
        self._sasl = sasl
        self.state = State.AUTHENTICATED if sasl is None else State.HANDSHAKE
        self.principal = principal
        self.mechanism: str | None = None
        # The end of the session, on the clock of ``now_ms``, once it has one.
        self.expires_ms: int | None = None
        self._server: SaslServer | None = None
        self._raw = False
        self._previous: tuple[str, str] | None = None
        self._began_ms: int | None = None

    @property
    def complete(self) -> bool:
        return self.state is State.AUTHENTICATED

    @property
    def failed(self) -> bool:
        return self.state is State.FAILED

    @property
    def expects_raw_token(self) -> bool:
        """Whether the next frame is a bare token: after a handshake of version 0."""
        return self.state is State.EXCHANGE and self._raw

    @property
    def blocking(self) -> bool:
        """Whether checking the next token takes long and belongs in an executor."""
        return self._server is not None and self._server.blocking

    @property
    def close_delay_ms(self) -> int:
        """How long to delay the response and the closing of a failed connection."""
        return self._sasl.failed_delay_ms if self._sasl is not None and self.failed else 0

    def identified(self, principal: str) -> None:
        """Set the principal of the TLS certificate; a following SASL exchange overrides it."""
        if self._sasl is None:
            self.principal = principal

    def admit(self, api_key: int, now_ms: int) -> Admission:
        """Whether a request of this API may be served now; anything but SERVE ends in FAILED."""
        if self.state is State.AUTHENTICATED:
            renews = api_key == ApiKey.SASL_HANDSHAKE and self._may_begin_again(now_ms)
            if self.expires_ms is None or now_ms <= self.expires_ms or renews:
                return Admission.SERVE
        elif self.state is State.HANDSHAKE and api_key in _UNAUTHENTICATED:
            return Admission.SERVE
        elif self.state is State.EXCHANGE:
            if api_key == ApiKey.SASL_AUTHENTICATE:
                return Admission.SERVE
            self._fail()
            return Admission.ILLEGAL_STATE
        self._fail()
        return Admission.CLOSE

    def handshake(self, mechanism: str, version: int, now_ms: int) -> SaslHandshakeResponse:
        """Answer SaslHandshake, which was admitted."""
        again = self.state is State.AUTHENTICATED
        if self._sasl is None or (again and not self._may_begin_again(now_ms)):
            return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)
        enabled = list(self._sasl.mechanisms)
        if mechanism not in self._sasl.mechanisms:
            self._fail()
            return SaslHandshakeResponse(ErrorCode.UNSUPPORTED_SASL_MECHANISM, enabled)
        if again:
            invariant(self.mechanism is not None, "an authenticated session has its mechanism")
            self._previous = (self.mechanism or "", self.principal)
            self._began_ms = now_ms
        self.state = State.EXCHANGE
        self.mechanism = mechanism
        self._raw = version == 0
        self._server = self._sasl.mechanisms[mechanism]()
        return SaslHandshakeResponse(ErrorCode.NONE, enabled)

    def authenticate(self, token: bytes, now_ms: int) -> SaslAuthenticateResponse:
        """Answer SaslAuthenticate, which was admitted."""
        if self.state is State.AUTHENTICATED:
            return SaslAuthenticateResponse(
                ErrorCode.ILLEGAL_SASL_STATE,
                "SaslAuthenticate request received after successful authentication",
            )
        try:
            answer = self._evaluate(token, now_ms)
        except SaslError as error:
            return SaslAuthenticateResponse(
                ErrorCode.SASL_AUTHENTICATION_FAILED, error.public or self._invalid_credentials()
            )
        lifetime_ms = 0
        if self.complete and self.expires_ms is not None:
            lifetime_ms = self.expires_ms - now_ms
        return SaslAuthenticateResponse(
            error_message=None, auth_bytes=answer, session_lifetime_ms=lifetime_ms
        )

    def raw_token(self, token: bytes, now_ms: int) -> bytes:
        """Answer a bare token; a refusal has no response, so it is a ProtocolError."""
        try:
            return self._evaluate(token, now_ms)
        except SaslError as error:
            raise ProtocolError(error.public or self._invalid_credentials()) from error

    def _evaluate(self, token: bytes, now_ms: int) -> bytes:
        server = self._server
        invariant(server is not None, "a token comes after a handshake")
        if server is None or self._sasl is None:
            raise SaslError("no exchange is in progress")
        try:
            self._keeps_mechanism(server.mechanism)
            answer = server.evaluate(token)
            if server.user is not None:
                self._complete(user_principal(server.user), self._sasl, now_ms)
        except SaslError:
            self._fail()
            raise
        return answer

    def _complete(self, principal: str, sasl: SaslSettings, now_ms: int) -> None:
        if self._previous is not None and self._previous[1] != principal:
            before, after = (who.replace(":", ".", 1) for who in (self._previous[1], principal))
            raise SaslError(
                f"Cannot change principals during re-authentication from {before}: {after}",
                public=True,
            )
        self.principal = principal
        self.state = State.AUTHENTICATED
        lifetime_ms = sasl.max_reauth_ms.get(self.mechanism or "", 0)
        self.expires_ms = now_ms + lifetime_ms if lifetime_ms > 0 else None
        self._server = None

    def _keeps_mechanism(self, mechanism: str) -> None:
        if self._previous is not None and self._previous[0] != mechanism:
            raise SaslError(
                f"SASL mechanism '{mechanism}' requested by client is not supported for "
                f"re-authentication of mechanism '{self._previous[0]}'",
                public=True,
            )

    def _may_begin_again(self, now_ms: int) -> bool:
        if self.expires_ms is None:
            return False
        return self._began_ms is None or now_ms - self._began_ms >= REAUTHENTICATION_INTERVAL_MS_MIN

    def _invalid_credentials(self) -> str:
        attempt = "authentication" if self._previous is None else "re-authentication"
        return (
            f"Authentication failed during {attempt} due to invalid credentials "
            f"with SASL mechanism {self.mechanism}"
        )

    def _fail(self) -> None:
        self.state = State.FAILED
        self._server = None
