"""SASL/PLAIN (RFC 4616), both sides, and the users listed in a JAAS entry."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from typing import Final

from skylog.kernel.errors import ConfigError
from skylog.kernel.rng import Random
from skylog.kernel.secret import Secret
from skylog.security.sasl import SaslError
from skylog.security.scram import ScramCredential, ScramMechanism, create_credential

MECHANISM: Final = "PLAIN"
_DIGEST_KEY_BYTES: Final = 32


class PlainUsers:
    """Users and verifiers of their passwords; the passwords themselves are not kept.

    A stored secret is either the password or ``{SCRAM-SHA-256}salt=…,stored_key=…,server_key=…,
    iterations=…``. If one user is hashed, all are, and an unknown user is checked against a decoy
    of the same kind, so that the time taken does not reveal which users exist.
    """

    def __init__(self, users: Mapping[str, Secret], rng: Random) -> None:
        secrets = {name: secret.reveal() for name, secret in users.items()}
        self._key = rng.randbytes(_DIGEST_KEY_BYTES)
        self._hashed: dict[str, tuple[ScramMechanism, ScramCredential]] = {}
        self._digests: dict[str, bytes] = {}
        decoy = rng.randbytes(_DIGEST_KEY_BYTES).hex()
        self.blocking = any(_is_hashed(secret) for secret in secrets.values())
        if self.blocking:
            self._hashed = {name: _stored(name, text, rng) for name, text in secrets.items()}
            self._decoy_hash = _stored("", decoy, rng)
        else:
            self._digests = {name: self._digest(text) for name, text in secrets.items()}
            self._decoy_digest = self._digest(decoy)

    def verify(self, name: str, password: str) -> bool:
        """Whether the password is the user's."""
        if self.blocking:
            mechanism, credential = self._hashed.get(name, self._decoy_hash)
            salted = mechanism.salted_password(password, credential.salt, credential.iterations)
            stored_key = mechanism.stored_key(mechanism.client_key(salted))
            return hmac.compare_digest(stored_key, credential.stored_key)
        expected = self._digests.get(name, self._decoy_digest)
        return hmac.compare_digest(self._digest(password), expected)

    def _digest(self, password: str) -> bytes:
        return hashlib.blake2b(password.encode(), key=self._key).digest()

    def __len__(self) -> int:
        return len(self._hashed) or len(self._digests)


def _is_hashed(secret: str) -> bool:
    return secret.startswith(tuple(f"{{{mechanism.value}}}" for mechanism in ScramMechanism))


def _stored(name: str, secret: str, rng: Random) -> tuple[ScramMechanism, ScramCredential]:
    if not _is_hashed(secret):
        mechanism = ScramMechanism.SHA_256
        return mechanism, create_credential(mechanism, Secret(secret), rng)
    label, _, text = secret[1:].partition("}")
    try:
        return ScramMechanism(label), ScramCredential.parse(text)
    except ValueError as error:
        raise ConfigError(f"the stored hash of PLAIN user {name} is malformed") from error


class PlainServer:
    """One exchange: its only token has the authorization id, user and password."""

    mechanism = MECHANISM

    def __init__(self, users: PlainUsers) -> None:
        self._users = users
        self._done = False
        self.user: str | None = None

    @property
    def blocking(self) -> bool:
        return self._users.blocking

    def evaluate(self, token: bytes) -> bytes:
        if self._done:
            raise SaslError("the exchange is over")
        self._done = True
        tokens = token.decode(errors="replace").split("\0", 3)
        if len(tokens) != 3:
            raise SaslError(
                f"Invalid SASL/PLAIN response: expected 3 tokens, got {len(tokens)}", public=True
            )
        authorization_id, name, password = tokens
        if not name:
            raise _refused("username not specified")
        if not password:
            raise _refused("password not specified")
        if not self._users.verify(name, password):
            raise _refused("Invalid username or password")
        if authorization_id not in ("", name):
            raise _refused("Client requested an authorization id that is different from username")
        self.user = name
        return b""


def _refused(why: str) -> SaslError:
    return SaslError(f"Authentication failed: {why}", public=True)


class PlainClient:
    """The client's side: everything is in the first token."""

    mechanism = MECHANISM

    def __init__(self, name: str, password: Secret) -> None:
        self._name = name
        self._password = password
        self.complete = False

    def first(self) -> bytes:
        return f"\0{self._name}\0{self._password.reveal()}".encode()

    def evaluate(self, challenge: bytes) -> bytes | None:
        if challenge:
            raise SaslError("PLAIN expects an empty response from the server")
        self.complete = True
        return None
