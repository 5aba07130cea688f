"""Client settings: addresses, authentication, time-outs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from skylog.kernel.errors import ConfigError
from skylog.kernel.rng import Random
from skylog.kernel.secret import Secret
from skylog.security.jaas import parse_jaas
from skylog.security.plain import MECHANISM as PLAIN
from skylog.security.plain import PlainClient
from skylog.security.sasl import SaslClient
from skylog.security.scram import ScramClient, ScramMechanism, new_nonce
from skylog.security.tls import TlsSettings

_PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_MECHANISMS: Final = (PLAIN, *(mechanism.value for mechanism in ScramMechanism))

_INT_MAX: Final = 2**31 - 1
_MILLISECONDS: Final = {
    "socket.connection.setup.timeout.ms": "connect_timeout_ms",
    "request.timeout.ms": "request_timeout_ms",
    "default.api.timeout.ms": "api_timeout_ms",
    "retry.backoff.ms": "retry_backoff_ms",
    "retry.backoff.max.ms": "retry_backoff_ms_max",
    "metadata.max.age.ms": "metadata_age_ms_max",
    "connections.max.idle.ms": "idle_ms_max",
}


class Address(NamedTuple):
    """The address of a broker."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class SaslLogin:
    """A user's name and password, and the SASL mechanism."""

    mechanism: str
    username: str
    password: Secret

    def __post_init__(self) -> None:
        if self.mechanism not in _MECHANISMS:
            raise ConfigError(
                f"sasl.mechanism is {self.mechanism!r}; allowed are {', '.join(_MECHANISMS)}"
            )

    def client(self, rng: Random) -> SaslClient:
        """A new exchange."""
        if self.mechanism == PLAIN:
            return PlainClient(self.username, self.password)
        mechanism = ScramMechanism(self.mechanism)
        return ScramClient(mechanism, self.username, self.password, new_nonce(rng))


@dataclass(frozen=True, slots=True)
class ClientSettings:
    """Settings that producer, consumer and admin share, with Kafka's defaults."""

    bootstrap: tuple[Address, ...]
    client_id: str = "skylog"
    tls: TlsSettings | None = None
    sasl: SaslLogin | None = None
    connect_timeout_ms: int = 10_000
    request_timeout_ms: int = 30_000
    api_timeout_ms: int = 60_000
    retry_backoff_ms: int = 100
    retry_backoff_ms_max: int = 1000
    metadata_age_ms_max: int = 300_000
    idle_ms_max: int = 540_000

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> ClientSettings:
        """From a Kafka client's properties; unknown ones are left to others."""
        protocol = properties.get("security.protocol", "PLAINTEXT")
        if protocol not in _PROTOCOLS:
            raise ConfigError(
                f"security.protocol is {protocol!r}; allowed are {', '.join(_PROTOCOLS)}"
            )
        return cls(
            bootstrap=parse_bootstrap(properties.get("bootstrap.servers", "")),
            client_id=properties.get("client.id", "skylog"),
            tls=TlsSettings.of(properties) if protocol.endswith("SSL") else None,
            sasl=_login(properties) if protocol.startswith("SASL") else None,
            **_milliseconds(properties),
        )


def _milliseconds(properties: Mapping[str, str]) -> dict[str, int]:
    """Time-outs, if the properties have them."""
    found = {}
    for key, field in _MILLISECONDS.items():
        text = properties.get(key)
        if text is None:
            continue
        number = text.strip()
        if not (number.isascii() and number.isdigit()) or int(number) > _INT_MAX:
            raise ConfigError(f"{key} is {text!r}; allowed are 0 to {_INT_MAX} milliseconds")
        found[field] = int(number)
    return found


def _login(properties: Mapping[str, str]) -> SaslLogin:
    text = properties.get("sasl.jaas.config")
    if text is None:
        raise ConfigError("sasl.jaas.config is not set; security.protocol requires a login")
    entry = parse_jaas(text)
    if entry.username is None or entry.password is None:
        raise ConfigError("sasl.jaas.config needs username and password")
    return SaslLogin(properties.get("sasl.mechanism", "GSSAPI"), entry.username, entry.password)


def parse_bootstrap(text: str) -> tuple[Address, ...]:
    """``host:port`` separated by commas; IPv6 addresses are in brackets."""
    found = []
    for part in filter(None, map(str.strip, text.split(","))):
        host, _, port = part.rpartition(":")
        if not host or not (port.isascii() and port.isdigit()) or int(port) > 65_535:
            raise ConfigError(f"bootstrap.servers has {part!r}; allowed is host:port")
        found.append(Address(host.strip("[]"), int(port)))
    if not found:
        raise ConfigError("bootstrap.servers is empty; allowed is host:port,host:port")
    return tuple(found)
