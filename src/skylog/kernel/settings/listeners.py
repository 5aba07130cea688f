"""The node's listeners, built from the settings that together describe them.

``listeners`` defines the sockets, ``advertised.listeners`` the addresses for clients,
``listener.security.protocol.map`` the security protocol of each, ``controller.listener.names`` the
controller's listeners, and ``listener.name.<name>.<setting>`` overrides a security setting for one
of them.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from skylog.kernel.errors import ConfigError
from skylog.kernel.secret import Secret
from skylog.kernel.settings.sections import ListenerTexts

PREFIX: Final = "listener.name."
PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_ENDPOINT: Final = re.compile(r"(.*)://\[?([0-9a-zA-Z\-%._:]*)\]?:(-?[0-9]{1,5})")

LISTENER_DOCS: Final[Mapping[str, str]] = {
    "sasl.enabled.mechanisms": "SASL mechanisms that clients may use: PLAIN, SCRAM-SHA-256,"
    " SCRAM-SHA-512.",
    "sasl.jaas.config": "Users of PLAIN and the broker's own login, in JAAS form; only as"
    " listener.name.<listener>.<mechanism>.sasl.jaas.config.",
    "connections.max.reauth.ms": "A SASL session ends after this long unless renewed; 0 is never.",
    "ssl.client.auth": "Whether clients must present a certificate: required, requested or none.",
    "ssl.keystore.type": "Only PEM is supported.",
    "ssl.keystore.location": "PEM file with the server's private key and certificate chain.",
    "ssl.keystore.key": "Private key as PEM text, instead of a file.",
    "ssl.keystore.certificate.chain": "Certificate chain as PEM text, instead of a file.",
    "ssl.key.password": "Password of the private key.",
    "ssl.truststore.type": "Only PEM is supported.",
    "ssl.truststore.location": "PEM file with the authorities that sign client certificates.",
    "ssl.truststore.certificates": "Those authorities as PEM text, instead of a file.",
    "ssl.enabled.protocols": "TLS versions that are allowed: TLSv1.2, TLSv1.3.",
    "ssl.cipher.suites": "Cipher suites that are allowed; empty leaves them to the TLS library.",
    "ssl.principal.mapping.rules": "Rules that map a certificate's name to a principal.",
}


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A name and an address; an empty host means all addresses of the machine."""

    name: str
    host: str
    port: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenerSettings:
    """One listener. Port 0 binds a free port, which is then advertised."""

    name: str
    protocol: str
    host: str
    port: int
    advertised_host: str  # empty: the machine's own name
    advertised_port: int  # 0: the port that was bound
    advertised: bool  # whether clients see it at all
    controller: bool
    # Security settings of this listener, overrides applied.
    values: Mapping[str, Any] = field(default_factory=dict, repr=False)
    # The text of listener.name.<name>.* settings, by the rest of the name.
    texts: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def tls(self) -> bool:
        return self.protocol in ("SSL", "SASL_SSL")

    @property
    def sasl(self) -> bool:
        return self.protocol in ("SASL_PLAINTEXT", "SASL_SSL")

    @property
    def sasl_mechanisms(self) -> tuple[str, ...]:
        """The mechanisms that clients may use here; empty without SASL."""
        return tuple(self.values["sasl.enabled.mechanisms"]) if self.sasl else ()

    def jaas(self, mechanism: str) -> Secret | None:
        """The JAAS entry of a mechanism on this listener."""
        text = self.texts.get(f"{mechanism.lower()}.sasl.jaas.config")
        return None if text is None else Secret(text.strip())

    def reauth_ms_max(self, mechanism: str) -> int:
        """How long a SASL session lasts; 0 is unlimited."""
        text = self.texts.get(f"{mechanism.lower()}.connections.max.reauth.ms")
        return int(self.values["connections.max.reauth.ms"] if text is None else text)


def is_listener_value(name: str) -> bool:
    """Whether the setting may have the prefix ``listener.name.<name>.``."""
    return name.startswith(("ssl.", "sasl.")) or name in (
        "connections.max.reauth.ms",
        "max.connections",
        "max.connection.creation.rate",
    )


def parse_endpoints(key: str, entries: tuple[str, ...]) -> tuple[Endpoint, ...]:
    """Parse ``NAME://host:port`` entries; names must differ."""
    found: list[Endpoint] = []
    for entry in entries:
        match = _ENDPOINT.fullmatch(entry)
        if match is None or not 0 <= int(match[3]) <= 65_535 or not match[1]:
            raise ConfigError(
                f"{key}={','.join(entries)}: unable to parse {entry} to a broker endpoint; "
                "allowed is NAME://host:port with a port from 0 to 65535"
            )
        found.append(Endpoint(match[1].upper(), match[2], int(match[3])))
    if len({endpoint.name for endpoint in found}) != len(found):
        raise ConfigError(f"{key}={','.join(entries)}: each listener must have a different name")
    return tuple(found)


def check_ports(entries: tuple[str, ...], endpoints: tuple[Endpoint, ...]) -> None:
    """Two listeners share a port only when one is IPv4 and the other IPv6."""
    by_port: dict[int, list[Endpoint]] = {}
    for endpoint in endpoints:
        if endpoint.port:
            by_port.setdefault(endpoint.port, []).append(endpoint)
    for port, sharing in by_port.items():
        families = sorted(_family(endpoint.host) for endpoint in sharing)
        if len(sharing) > 1 and families != [4, 6]:
            raise ConfigError(
                f"listeners={','.join(entries)}: each listener must have a different port, but "
                f"{port} is used by {', '.join(endpoint.name for endpoint in sharing)}"
            )


def _family(host: str) -> int:
    try:
        return ipaddress.ip_address(host).version
    except ValueError:
        return 0


def parse_map(key: str, text: str) -> dict[str, str]:
    """Parse ``a:b,c:d``; the last colon of a pair divides it."""
    found: dict[str, str] = {}
    for pair in filter(None, (pair.strip() for pair in text.split(","))):
        name, colon, value = pair.rpartition(":")
        if not colon or not name.strip():
            raise ConfigError(f"{key}={text}: {pair} is not of the form name:value")
        found[name.strip()] = value.strip()
    return found


def protocol_map(texts: ListenerTexts, explicit: bool) -> dict[str, str]:
    """Listener name to protocol. Controllers use PLAINTEXT by default."""
    key = "listener.security.protocol.map"
    found: dict[str, str] = {}
    for name, protocol in parse_map(key, texts.protocol_map).items():
        if protocol not in PROTOCOLS:
            raise ConfigError(
                f"{key}={texts.protocol_map}: invalid security protocol {protocol} of listener "
                f"{name}; allowed are {', '.join(PROTOCOLS)}"
            )
        found[name.upper()] = protocol
    names = {entry.partition(":")[0].upper() for entry in texts.listeners}
    if not explicit and not (names | set(texts.controller_names)) & set(PROTOCOLS[1:]):
        found.update(dict.fromkeys(texts.controller_names, "PLAINTEXT"))
    return found


def build_listeners(
    texts: ListenerTexts,
    explicit_map: bool,
    values: Mapping[str, Any],
    overrides: Mapping[str, tuple[Mapping[str, Any], Mapping[str, str]]],
) -> tuple[ListenerSettings, ...]:
    """Build the listeners. ``overrides``: lower-case name to (typed values, texts)."""
    protocols = protocol_map(texts, explicit_map)
    endpoints = parse_endpoints("listeners", texts.listeners)
    check_ports(texts.listeners, endpoints)
    advertised = {
        endpoint.name: endpoint
        for endpoint in parse_endpoints("advertised.listeners", texts.advertised or ())
    }
    for name in (*(endpoint.name for endpoint in endpoints), *advertised):
        if name not in protocols:
            raise ConfigError(
                f"listeners={','.join(texts.listeners)}: no security protocol is defined for "
                f"listener {name}; add {name}:<protocol> to listener.security.protocol.map, with "
                f"one of {', '.join(PROTOCOLS)}"
            )
    built: list[ListenerSettings] = []
    for endpoint in endpoints:
        told = advertised.get(endpoint.name, endpoint)
        built.append(
            ListenerSettings(
                name=endpoint.name,
                protocol=protocols[endpoint.name],
                host=endpoint.host,
                port=endpoint.port,
                advertised_host=told.host,
                advertised_port=told.port,
                advertised=texts.advertised is None or endpoint.name in advertised,
                controller=endpoint.name in texts.controller_names,
                **_own_settings(endpoint.name, values, overrides),
            )
        )
    return tuple(built)


def controller_listener(
    texts: ListenerTexts,
    explicit_map: bool,
    values: Mapping[str, Any],
    overrides: Mapping[str, tuple[Mapping[str, Any], Mapping[str, str]]],
) -> ListenerSettings | None:
    """The controllers' first listener name, as other nodes use it to connect."""
    if not texts.controller_names:
        return None
    name = texts.controller_names[0]
    protocols = protocol_map(texts, explicit_map)
    if name not in protocols:
        raise ConfigError(
            f"controller.listener.names={','.join(texts.controller_names)}: no security protocol "
            f"is defined for listener {name}; add {name}:<protocol> to "
            f"listener.security.protocol.map, with one of {', '.join(PROTOCOLS)}"
        )
    return ListenerSettings(
        name=name,
        protocol=protocols[name],
        host="",
        port=0,
        advertised_host="",
        advertised_port=0,
        advertised=False,
        controller=True,
        **_own_settings(name, values, overrides),
    )


def _own_settings(
    name: str,
    values: Mapping[str, Any],
    overrides: Mapping[str, tuple[Mapping[str, Any], Mapping[str, str]]],
) -> dict[str, Any]:
    base = {key: value for key, value in values.items() if is_listener_value(key)}
    typed, raw = overrides.get(name.lower(), ({}, {}))
    return {"values": {**base, **typed}, "texts": raw}
