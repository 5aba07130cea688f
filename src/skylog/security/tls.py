"""TLS contexts from Kafka's ``ssl.*`` settings; keys and certificates are PEM.

A listener's context lives as long as the listener. Changed files are loaded into another context to
which every new handshake switches, so that not only the certificate is reloaded but also the
authorities of client certificates.
"""

from __future__ import annotations

import re
import ssl
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from skylog.kernel import limits
from skylog.kernel.errors import ConfigError
from skylog.kernel.secret import Secret
from skylog.security.certificate import DEFAULT_RULES, PrincipalMapper, subject_name
from skylog.security.principal import ANONYMOUS, user_principal

_CLIENT_AUTH: Final = {
    "none": ssl.CERT_NONE,
    "requested": ssl.CERT_OPTIONAL,
    "required": ssl.CERT_REQUIRED,
}
_PROTOCOLS: Final = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
DEFAULT_PROTOCOLS: Final = ("TLSv1.2", "TLSv1.3")
_PEM: Final = re.compile(
    r"-----BEGIN (?P<label>[A-Z0-9 ]+)-----(?P<body>[^-]*)-----END (?P=label)-----"
)
_PEM_LINE: Final = 64
_CONVERSION: Final = (
    "convert it with `keytool -importkeystore -srckeystore FILE -destkeystore store.p12 "
    "-deststoretype PKCS12` (JKS) and `openssl pkcs12 -in store.p12 -out store.pem -nodes`, then "
    "set the type to PEM and the location to store.pem"
)


@dataclass(frozen=True, slots=True)
class TlsSettings:
    """A listener's or client's ``ssl.*`` settings."""

    keystore_location: str | None = None
    certificate_chain: str | None = None
    key: Secret | None = None
    key_password: Secret | None = None
    truststore_location: str | None = None
    trusted_certificates: str | None = None
    client_auth: str = "none"
    protocols: tuple[str, ...] = DEFAULT_PROTOCOLS
    cipher_suites: tuple[str, ...] = ()
    principal_mapping_rules: str = DEFAULT_RULES
    check_host_name: bool = True

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> TlsSettings:
        """From a listener's or client's own settings, typed or text, without prefixes."""

        def get(key: str) -> str | None:
            value = values.get(key)
            return (value.reveal() if isinstance(value, Secret) else value) or None

        for store in ("keystore", "truststore"):
            _check_store(store, get)
        key, password = get("ssl.keystore.key"), get("ssl.key.password")
        chain, location = get("ssl.keystore.certificate.chain"), get("ssl.keystore.location")
        if (key is None) != (chain is None):
            raise ConfigError(
                "ssl.keystore.key and ssl.keystore.certificate.chain go together; set both"
            )
        if key is not None and location is not None:
            raise ConfigError(
                "both ssl.keystore.location and ssl.keystore.key are set; keep one of them"
            )
        trusted, trust_location = (
            get("ssl.truststore.certificates"),
            get("ssl.truststore.location"),
        )
        if trusted is not None and trust_location is not None:
            raise ConfigError(
                "both ssl.truststore.location and ssl.truststore.certificates are set; keep one"
            )
        return cls(
            keystore_location=location,
            certificate_chain=chain,
            key=None if key is None else Secret(key),
            key_password=None if password is None else Secret(password),
            truststore_location=trust_location,
            trusted_certificates=trusted,
            client_auth=(get("ssl.client.auth") or "none").lower(),
            protocols=_list(values.get("ssl.enabled.protocols")) or DEFAULT_PROTOCOLS,
            cipher_suites=_list(values.get("ssl.cipher.suites")),
            principal_mapping_rules=get("ssl.principal.mapping.rules") or DEFAULT_RULES,
            check_host_name=bool(values.get("ssl.endpoint.identification.algorithm", "https")),
        )


def _check_store(store: str, get: Callable[[str], str | None]) -> None:
    kind = (get(f"ssl.{store}.type") or "JKS").upper()
    inline = "ssl.keystore.key" if store == "keystore" else "ssl.truststore.certificates"
    if kind != "PEM" and get(inline):
        raise ConfigError(f"ssl.{store}.type is {kind}; {inline} is allowed with PEM only")
    if kind != "PEM" and get(f"ssl.{store}.location"):
        raise ConfigError(f"ssl.{store}.type is {kind}; allowed is PEM: {_CONVERSION}")
    if get(f"ssl.{store}.password"):
        raise ConfigError(
            f"ssl.{store}.password is not allowed with PEM; a key's password is ssl.key.password"
        )


def _list(value: str | Iterable[str] | None) -> tuple[str, ...]:
    parts = value.split(",") if isinstance(value, str) else value or ()
    return tuple(filter(None, map(str.strip, parts)))


def server_context(settings: TlsSettings) -> ssl.SSLContext:
    """The context of a listener; ConfigError if the settings are not sufficient."""
    context = _context(ssl.PROTOCOL_TLS_SERVER, settings)
    if settings.keystore_location is None and settings.key is None:
        raise ConfigError(
            "a listener with TLS needs a key: set ssl.keystore.type=PEM and ssl.keystore.location, "
            "or ssl.keystore.key and ssl.keystore.certificate.chain"
        )
    mode = _CLIENT_AUTH.get(settings.client_auth)
    if mode is None:
        raise ConfigError(
            f"ssl.client.auth is {settings.client_auth!r}; allowed are {', '.join(_CLIENT_AUTH)}"
        )
    context.verify_mode = mode
    return context


def client_context(settings: TlsSettings) -> ssl.SSLContext:
    """The context for outgoing connections."""
    context = _context(ssl.PROTOCOL_TLS_CLIENT, settings)
    context.check_hostname = settings.check_host_name
    return context


def _context(side: int, settings: TlsSettings) -> ssl.SSLContext:
    context = ssl.SSLContext(side)
    _set_protocols(context, settings)
    _load_key(context, settings)
    trusted = settings.trusted_certificates
    if settings.truststore_location is not None:
        trusted = _read(settings.truststore_location, "ssl.truststore.location")
    if trusted is None:
        context.load_default_certs()
        return context
    blocks = _blocks(trusted, "CERTIFICATE", "the truststore")
    try:
        context.load_verify_locations(cadata=blocks)
    except ssl.SSLError as error:
        raise ConfigError(f"the truststore's certificates cannot be read: {error}") from error
    return context


def _set_protocols(context: ssl.SSLContext, settings: TlsSettings) -> None:
    unknown = set(settings.protocols) - _PROTOCOLS.keys()
    if unknown or not settings.protocols:
        raise ConfigError(
            f"ssl.enabled.protocols has {', '.join(sorted(unknown))}; allowed are "
            f"{', '.join(_PROTOCOLS)}"
        )
    versions = sorted(_PROTOCOLS[name] for name in settings.protocols)
    context.minimum_version, context.maximum_version = versions[0], versions[-1]
    if not settings.cipher_suites:
        return
    # OpenSSL keeps its three TLS 1.3 suites enabled; only those of 1.2 can be selected.
    chosen = [_openssl_name(suite) for suite in settings.cipher_suites]
    older = [name for name in chosen if not name.startswith("TLS_")]
    if not older:
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        return
    try:
        context.set_ciphers(":".join(older))
    except ssl.SSLError as error:
        raise ConfigError(f"ssl.cipher.suites has no usable suite: {error}") from error


def _openssl_name(suite: str) -> str:
    """OpenSSL's name of a suite that Java would call TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256."""
    exchange, separator, cipher = suite.removeprefix("TLS_").partition("_WITH_")
    if not separator:
        return suite
    cipher = re.sub(r"(AES|CAMELLIA|ARIA)_(\d+)", r"\1\2", cipher).replace("_CBC", "")
    cipher = cipher.replace("CHACHA20_POLY1305_SHA256", "CHACHA20_POLY1305")
    prefix = "" if exchange == "RSA" else exchange + "_"
    return (prefix + cipher).replace("_", "-")


def _load_key(context: ssl.SSLContext, settings: TlsSettings) -> None:
    if settings.keystore_location is not None:
        chain = key = _read(settings.keystore_location, "ssl.keystore.location")
    elif settings.certificate_chain is not None and settings.key is not None:
        chain, key = settings.certificate_chain, settings.key.reveal()
    else:
        return
    blocks = _blocks(key, "PRIVATE KEY", "the keystore")
    blocks += _blocks(chain, "CERTIFICATE", "the keystore")
    password = settings.key_password.reveal() if settings.key_password is not None else ""
    # OpenSSL reads keys from files only; without the callback it would prompt on the terminal.
    with tempfile.TemporaryDirectory(prefix="skylog-tls-") as directory:
        path = Path(directory, "store.pem")
        path.touch(mode=0o600)
        path.write_text(blocks)
        try:
            context.load_cert_chain(path, password=lambda: password)
        except (ssl.SSLError, ValueError) as error:
            raise ConfigError(
                "the keystore's key and certificates cannot be used: wrong ssl.key.password, or "
                f"the key is not the first certificate's ({error})"
            ) from error


def _read(location: str, key: str) -> str:
    try:
        with Path(location).open("rb") as file:
            data = file.read(limits.PEM_BYTES_MAX + 1)
    except OSError as error:
        raise ConfigError(f"{key}: cannot read {location}: {error.strerror}") from error
    if len(data) > limits.PEM_BYTES_MAX:
        raise ConfigError(f"{key}: {location} is larger than {limits.PEM_BYTES_MAX} bytes")
    return data.decode("latin-1")


def _blocks(text: str, label: str, where: str) -> str:
    """The blocks of a kind, with the line breaks that a one-line setting has lost."""
    found = []
    for match in _PEM.finditer(text):
        if match["label"].endswith(label):
            body = match["body"]
            if ":" in body:  # an old encrypted key's headers end with an empty line
                lines = body.strip("\r\n")
            else:
                joined = "".join(body.split())
                starts = range(0, len(joined), _PEM_LINE)
                lines = "\n".join(joined[at : at + _PEM_LINE] for at in starts)
            name = match["label"]
            found.append(f"-----BEGIN {name}-----\n{lines}\n-----END {name}-----\n")
    if not found:
        raise ConfigError(f"{where} has no PEM block of the kind {label}")
    return "".join(found)


class ListenerTls:
    """A listener's TLS: pass ``context`` to the server and call ``reload_if_changed``
    periodically."""

    def __init__(self, settings: TlsSettings) -> None:
        self._settings = settings
        self._mapper = PrincipalMapper(settings.principal_mapping_rules)
        self._stamp = self._file_stamp()
        self.context = self._current = server_context(settings)
        self.context.sni_callback = self._switch

    def reload_if_changed(self) -> bool:
        """Load changed files; on ConfigError the old ones stay in use until the next change."""
        stamp = self._file_stamp()
        if stamp == self._stamp:
            return False
        self._stamp = stamp
        self._current = server_context(self._settings)
        return True

    def update(self, settings: TlsSettings) -> None:
        """Use changed settings for new handshakes; ConfigError changes nothing."""
        mapper, context = (
            PrincipalMapper(settings.principal_mapping_rules),
            server_context(settings),
        )
        self._settings, self._mapper, self._current = settings, mapper, context
        self._stamp = self._file_stamp()

    def principal(self, ssl_object: ssl.SSLObject | ssl.SSLSocket | None) -> str:
        """The principal of a connection's certificate; ProtocolError if no rule maps its name."""
        certificate = None if ssl_object is None else ssl_object.getpeercert(binary_form=True)
        if not certificate:
            return ANONYMOUS
        return user_principal(self._mapper.name(subject_name(certificate)))

    def _switch(self, ssl_object: ssl.SSLObject, _name: str | None, _context: Any) -> None:
        if self._current is not self.context:
            ssl_object.context = self._current

    def _file_stamp(self) -> tuple[tuple[int, int, int] | None, ...]:
        locations = (self._settings.keystore_location, self._settings.truststore_location)
        return tuple(None if path is None else _stamp(path) for path in locations)


def _stamp(location: str) -> tuple[int, int, int] | None:
    try:
        status = Path(location).stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_ino, status.st_size
