"""SASL/SCRAM-SHA-256 and -512 (RFC 5802, RFC 7677), both sides; no channel binding.

Server::

    waiting for first   client-first   → r=…,s=…,i=…   waiting for final
    waiting for final   client-final   → v=…           complete, or SaslError

An unknown user gets a fake salt, always the same for the same name, and fails at the end like a
user with a wrong password. A login costs the broker three hashes, never the iterations, which are
limited when a credential is created.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Final

from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.rng import Random
from skylog.kernel.secret import Secret
from skylog.security.sasl import SaslError

ITERATIONS_MIN: Final = 4096
ITERATIONS_MAX: Final = 16_384
# A server that asks for more only wants to keep the client busy.
CLIENT_ITERATIONS_MAX: Final = 1_000_000
NONCE_BYTES_MAX: Final = 1024
_NONCE_BYTES: Final = 18
_SALT_BYTES: Final = 24


class ScramMechanism(Enum):
    """The two hashes Kafka offers; ``type`` is the number in records and requests."""

    SHA_256 = "SCRAM-SHA-256"
    SHA_512 = "SCRAM-SHA-512"

    @property
    def type(self) -> int:
        return 1 if self is ScramMechanism.SHA_256 else 2

    @classmethod
    def of_type(cls, number: int) -> ScramMechanism:
        """The mechanism with a number; UNSUPPORTED_SASL_MECHANISM if there is none."""
        for mechanism in cls:
            if mechanism.type == number:
                return mechanism
        raise KafkaError(ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")

    @property
    def hash_name(self) -> str:
        return "sha256" if self is ScramMechanism.SHA_256 else "sha512"

    def salted_password(self, password: str, salt: bytes, iterations: int) -> bytes:
        return hashlib.pbkdf2_hmac(self.hash_name, password.encode(), salt, iterations)

    def hmac(self, key: bytes, message: bytes) -> bytes:
        return hmac.digest(key, message, self.hash_name)

    def client_key(self, salted_password: bytes) -> bytes:
        return self.hmac(salted_password, b"Client Key")

    def server_key(self, salted_password: bytes) -> bytes:
        return self.hmac(salted_password, b"Server Key")

    def stored_key(self, client_key: bytes) -> bytes:
        return hashlib.new(self.hash_name, client_key).digest()


@dataclass(frozen=True, slots=True, repr=False)
class ScramCredential:
    """What the cluster stores for a user: enough to verify a proof, not to create one."""

    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int

    @classmethod
    def from_salted(
        cls, mechanism: ScramMechanism, salt: bytes, salted_password: bytes, iterations: int
    ) -> ScramCredential:
        """The stored form of what AlterUserScramCredentials carries."""
        client_key = mechanism.client_key(salted_password)
        return cls(
            salt,
            mechanism.stored_key(client_key),
            mechanism.server_key(salted_password),
            iterations,
        )

    @classmethod
    def parse(cls, text: str) -> ScramCredential:
        """Parse Kafka's notation, ``salt=…,stored_key=…,server_key=…,iterations=…``."""
        fields = dict(part.partition("=")[::2] for part in text.split(","))
        if set(fields) != {"salt", "stored_key", "server_key", "iterations"}:
            raise ValueError("a credential has salt, stored_key, server_key and iterations")
        salt, stored_key, server_key = (
            base64.b64decode(fields[name], validate=True)
            for name in ("salt", "stored_key", "server_key")
        )
        return cls(salt, stored_key, server_key, int(fields["iterations"]))

    def __repr__(self) -> str:
        return "ScramCredential([hidden])"


def create_credential(
    mechanism: ScramMechanism, password: Secret, rng: Random, iterations: int = ITERATIONS_MIN
) -> ScramCredential:
    """A credential with a new salt. Hashes for milliseconds: not for the event loop."""
    check_new_credential("any", mechanism.type, iterations)
    salt = rng.randbytes(_SALT_BYTES)
    salted = mechanism.salted_password(password.reveal(), salt, iterations)
    return ScramCredential.from_salted(mechanism, salt, salted, iterations)


def check_user_and_mechanism(name: str, mechanism_type: int) -> ScramMechanism:
    """Kafka's checks on any change of a user's credential; KafkaError says which failed."""
    if not name:
        raise KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty")
    return ScramMechanism.of_type(mechanism_type)


def check_new_credential(name: str, mechanism_type: int, iterations: int) -> ScramMechanism:
    """Kafka's checks on a credential to be stored."""
    mechanism = check_user_and_mechanism(name, mechanism_type)
    if iterations < ITERATIONS_MIN:
        raise KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations")
    if iterations > ITERATIONS_MAX:
        raise KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too many iterations")
    return mechanism


def new_nonce(rng: Random) -> str:
    return base64.b64encode(rng.randbytes(_NONCE_BYTES)).decode()


CredentialLookup = Callable[[ScramMechanism, str], ScramCredential | None]


class ScramServer:
    """One exchange of the broker's side."""

    blocking = False

    def __init__(
        self,
        mechanism: ScramMechanism,
        credentials: CredentialLookup,
        nonce: str,
        decoy_key: bytes,
    ) -> None:
        self.mechanism = mechanism.value
        self._hash = mechanism
        self._credentials = credentials
        self._server_nonce = nonce
        self._decoy_key = decoy_key
        self._first: _ClientFirst | None = None
        self._server_first = b""
        self._credential: ScramCredential | None = None
        self._known = False
        self._over = False
        self.user: str | None = None

    def evaluate(self, token: bytes) -> bytes:
        if self._over:
            raise SaslError("the exchange is over")
        if self._first is None:
            try:
                return self._evaluate_first(_ClientFirst(token))
            except SaslError:
                self._over = True
                raise
        self._over = True
        return self._evaluate_final(self._first, _ClientFinal(token))

    def _evaluate_first(self, first: _ClientFirst) -> bytes:
        if first.authorization_id not in ("", first.user):
            raise SaslError(
                "Authentication failed: Client requested an authorization id that is different "
                "from username",
                public=True,
            )
        # A delegation token's id is not a user name.
        found = None if first.token_auth else self._credentials(self._hash, first.user)
        self._known = found is not None
        self._credential = found or self._decoy(first.user)
        self._first = first
        salt = base64.b64encode(self._credential.salt).decode()
        nonce = first.nonce + self._server_nonce
        self._server_first = f"r={nonce},s={salt},i={self._credential.iterations}".encode()
        return self._server_first

    def _decoy(self, name: str) -> ScramCredential:
        seed = hmac.digest(self._decoy_key, name.encode(), "sha512")
        key = self._hash.hmac(seed, b"decoy")
        return ScramCredential(seed[:_SALT_BYTES], key, key, ITERATIONS_MIN)

    def _evaluate_final(self, first: _ClientFirst, final: _ClientFinal) -> bytes:
        credential = self._credential
        if credential is None or final.nonce != first.nonce + self._server_nonce:
            raise SaslError("Invalid client nonce in the final client message.")
        if final.channel_binding != first.gs2_header:
            raise SaslError("the final message repeats another GS2 header")
        message = b",".join((first.bare, self._server_first, final.without_proof))
        signature = self._hash.hmac(credential.stored_key, message)
        if len(final.proof) != len(signature):
            raise SaslError("Invalid client credentials")
        stored_key = self._hash.stored_key(_xor(final.proof, signature))
        if not hmac.compare_digest(stored_key, credential.stored_key) or not self._known:
            raise SaslError("Invalid client credentials")
        self.user = first.user
        server_signature = self._hash.hmac(credential.server_key, message)
        return b"v=" + base64.b64encode(server_signature)


class ScramClient:
    """The client's side; it also verifies that the server knows the user's keys."""

    def __init__(self, mechanism: ScramMechanism, name: str, password: Secret, nonce: str) -> None:
        self.mechanism = mechanism.value
        self.complete = False
        self._hash = mechanism
        self._password = password
        self._nonce = nonce
        self._bare = f"n={_sasl_name(name)},r={nonce}"
        self._expected_signature: bytes | None = None

    def first(self) -> bytes:
        return f"n,,{self._bare}".encode()

    def evaluate(self, challenge: bytes) -> bytes | None:
        """Answer the server. Hashes for milliseconds on the first call."""
        if self._expected_signature is None:
            return self._final(challenge)
        fields = _attributes(challenge)
        if "e" in fields:
            raise SaslError(f"the server refuses: {fields['e']}", public=True)
        if not hmac.compare_digest(_unbase64(fields.get("v", "")), self._expected_signature):
            raise SaslError("the server does not know the user's keys", public=True)
        self.complete = True
        return None

    def _final(self, server_first: bytes) -> bytes:
        fields = _attributes(server_first)
        nonce, salt = fields.get("r", ""), _unbase64(fields.get("s", ""))
        iterations = fields.get("i", "")
        if not nonce.startswith(self._nonce) or nonce == self._nonce:
            raise SaslError("the server's nonce does not extend ours", public=True)
        if not (iterations.isascii() and iterations.isdigit() and len(iterations) < 10):
            raise SaslError("the server names no iteration count", public=True)
        if not ITERATIONS_MIN <= int(iterations) <= CLIENT_ITERATIONS_MAX:
            raise SaslError(f"the server asks for {iterations} iterations", public=True)
        salted = self._hash.salted_password(self._password.reveal(), salt, int(iterations))
        without_proof = f"c=biws,r={nonce}".encode()
        message = b",".join((self._bare.encode(), server_first, without_proof))
        client_key = self._hash.client_key(salted)
        signature = self._hash.hmac(self._hash.stored_key(client_key), message)
        self._expected_signature = self._hash.hmac(self._hash.server_key(salted), message)
        return without_proof + b",p=" + base64.b64encode(_xor(client_key, signature))


class _ClientFirst:
    """``gs2-flag , [a=authzid] , [m=…,] n=user , r=nonce [, extensions]``"""

    def __init__(self, token: bytes) -> None:
        flag, _, rest = token.partition(b",")
        authorization, _, self.bare = rest.partition(b",")
        if flag not in (b"n", b"y"):
            raise SaslError("channel binding is not supported")
        if authorization and not authorization.startswith(b"a="):
            raise SaslError("malformed client first message")
        self.gs2_header = flag + b"," + authorization + b","
        fields = _attributes(self.bare)
        if not fields.get("n") or not fields.get("r") or len(fields["r"]) > NONCE_BYTES_MAX:
            raise SaslError("malformed client first message")
        self.user = _user_name(fields["n"])
        self.nonce = fields["r"]
        self.token_auth = fields.get("tokenauth", "").lower() == "true"
        self.authorization_id = _user_name(_text(authorization[2:]))


class _ClientFinal:
    """``c=channel-binding , r=nonce [, extensions] , p=proof``"""

    def __init__(self, token: bytes) -> None:
        self.without_proof, _, proof = token.rpartition(b",p=")
        fields = _attributes(self.without_proof)
        self.channel_binding = _unbase64(fields.get("c", ""))
        self.nonce = fields.get("r", "")
        self.proof = _unbase64(_text(proof))


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise SaslError("a SCRAM message is UTF-8") from error


def _attributes(data: bytes) -> dict[str, str]:
    """Comma-separated ``name=value``; the first of a name counts, unknown names are ignored."""
    fields: dict[str, str] = {}
    for part in _text(data).split(","):
        name, equals, value = part.partition("=")
        if not equals:
            raise SaslError("malformed SCRAM attribute")
        fields.setdefault(name, value)
    return fields


def _unbase64(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise SaslError("malformed base64") from error


def _sasl_name(name: str) -> str:
    return name.replace("=", "=3D").replace(",", "=2C")


def _user_name(sasl_name: str) -> str:
    if "=" in sasl_name.replace("=2C", "").replace("=3D", ""):
        raise SaslError("malformed user name")
    return sasl_name.replace("=2C", ",").replace("=3D", "=")


def _xor(left: bytes, right: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(left, right, strict=True))
