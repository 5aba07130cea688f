"""A listener's security, built from its settings: TLS, SASL mechanisms, principals."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from typing import Final, Protocol

from skylog.kernel.errors import ConfigError
from skylog.kernel.rng import Random
from skylog.kernel.settings.listeners import ListenerSettings
from skylog.security.authentication import Authentication, SaslSettings
from skylog.security.jaas import JaasEntry, parse_jaas
from skylog.security.plain import MECHANISM as PLAIN
from skylog.security.plain import PlainServer, PlainUsers
from skylog.security.sasl import SaslServer
from skylog.security.scram import ScramCredential, ScramMechanism, ScramServer, new_nonce
from skylog.security.tls import ListenerTls, TlsSettings

_DECOY_KEY_BYTES: Final = 32
SUPPORTED_MECHANISMS: Final = (PLAIN, *(mechanism.value for mechanism in ScramMechanism))


class ScramCredentials(Protocol):
    """The lookup of a user's SCRAM credentials, which the cluster image provides."""

    def scram_credential(self, user: str, mechanism: int) -> ScramCredential | None: ...


class ListenerSecurity:
    """The security state shared by all connections of a listener."""

    def __init__(
        self,
        settings: ListenerSettings,
        credentials: ScramCredentials,
        rng: Random,
        *,
        failed_delay_ms: int = 100,
    ) -> None:
        self.tls = ListenerTls(TlsSettings.of(settings.values)) if settings.tls else None
        self._sasl: SaslSettings | None = None
        if settings.sasl:
            mechanisms = {
                name: _server_factory(settings, name, credentials, rng)
                for name in settings.sasl_mechanisms
            }
            reauth = {name: settings.reauth_ms_max(name) for name in mechanisms}
            self._sasl = SaslSettings(mechanisms, reauth, failed_delay_ms)

    @property
    def context(self) -> ssl.SSLContext | None:
        """The TLS context of the server; None without TLS."""
        return None if self.tls is None else self.tls.context

    def new_authentication(self) -> Authentication:
        """The state of a newly accepted connection."""
        return Authentication(self._sasl)

    def identify(self, authentication: Authentication, ssl_object: ssl.SSLObject | None) -> None:
        """Set the principal of a new connection from its certificate.

        ProtocolError if no rule maps the name; such a connection is closed.
        """
        if self.tls is not None:
            authentication.identified(self.tls.principal(ssl_object))


def listener_jaas(settings: ListenerSettings, mechanism: str) -> JaasEntry:
    """The JAAS entry of a mechanism: the users of PLAIN, and the broker's own login."""
    key = f"listener.name.{settings.name.lower()}.{mechanism.lower()}.sasl.jaas.config"
    text = settings.jaas(mechanism)
    if text is None:
        raise ConfigError(
            f"{key} is not set; {mechanism} is enabled on listener {settings.name} and needs it, "
            "as in: org.apache.kafka.common.security.plain.PlainLoginModule required "
            'user_alice="password";'
        )
    return parse_jaas(text.reveal(), key)


def _server_factory(
    settings: ListenerSettings, name: str, credentials: ScramCredentials, rng: Random
) -> Callable[[], SaslServer]:
    if name == PLAIN:
        users = PlainUsers(listener_jaas(settings, PLAIN).users(), rng)
        return lambda: PlainServer(users)
    if name not in SUPPORTED_MECHANISMS:
        raise ConfigError(
            f"sasl.enabled.mechanisms has {name} on listener {settings.name}; allowed are "
            f"{', '.join(SUPPORTED_MECHANISMS)}"
        )
    mechanism, decoy_key = ScramMechanism(name), rng.randbytes(_DECOY_KEY_BYTES)

    def stored(which: ScramMechanism, user: str) -> ScramCredential | None:
        return credentials.scram_credential(user, which.type)

    return lambda: ScramServer(mechanism, stored, new_nonce(rng), decoy_key)
