"""The authentication state of a connection: allowed requests and failures."""

from __future__ import annotations

import random

import pytest

from skylog.kernel.errors import ErrorCode, ProtocolError
from skylog.kernel.secret import Secret
from skylog.security.authentication import (
    Admission,
    Authentication,
    SaslSettings,
    State,
)
from skylog.security.plain import PlainServer, PlainUsers
from skylog.security.scram import (
    ScramClient,
    ScramMechanism,
    ScramServer,
    create_credential,
    new_nonce,
)
from skylog.wire.apis import ApiKey

METADATA = 3
NOW = 1_000_000
GOOD, BAD, BOB = b"\0alice\0secret", b"\0alice\0wrong", b"\0bob\0secret"
SCRAM = ScramMechanism.SHA_256


def sasl(reauth_ms: int = 0) -> SaslSettings:
    rng = random.Random(1)
    passwords = {"alice": Secret("secret"), "bob": Secret("secret")}
    users = PlainUsers(passwords, rng)
    stored = create_credential(SCRAM, Secret("secret"), rng)
    return SaslSettings(
        {
            "PLAIN": lambda: PlainServer(users),
            SCRAM.value: lambda: ScramServer(
                SCRAM, lambda _, name: stored if name == "alice" else None, new_nonce(rng), b"k"
            ),
        },
        {"PLAIN": reauth_ms, SCRAM.value: reauth_ms},
        failed_delay_ms=70,
    )


def authenticated(reauth_ms: int = 0) -> Authentication:
    found = Authentication(sasl(reauth_ms))
    found.handshake("PLAIN", 1, NOW)
    found.authenticate(GOOD, NOW)
    assert found.complete
    return found


def test_without_sasl_everything_is_served_at_once() -> None:
    connection = Authentication(None)
    assert connection.complete
    assert connection.principal == "User:ANONYMOUS"
    assert connection.admit(METADATA, NOW) is Admission.SERVE
    connection.identified("User:CN=alice")
    assert connection.principal == "User:CN=alice"
    assert connection.admit(ApiKey.SASL_HANDSHAKE, NOW) is Admission.SERVE
    assert connection.handshake("PLAIN", 1, NOW).error_code == ErrorCode.ILLEGAL_SASL_STATE
    answer = connection.authenticate(GOOD, NOW)
    assert answer.error_code == ErrorCode.ILLEGAL_SASL_STATE
    assert connection.complete
    assert connection.close_delay_ms == 0


def test_a_user_logs_in() -> None:
    connection = Authentication(sasl())
    connection.identified("User:CN=certificate")
    assert not connection.complete
    assert connection.admit(ApiKey.API_VERSIONS, NOW) is Admission.SERVE
    assert connection.admit(ApiKey.SASL_HANDSHAKE, NOW) is Admission.SERVE
    answer = connection.handshake("PLAIN", 1, NOW)
    assert (answer.error_code, answer.mechanisms) == (0, ["PLAIN", SCRAM.value])
    assert not connection.expects_raw_token
    assert connection.admit(ApiKey.SASL_AUTHENTICATE, NOW) is Admission.SERVE
    token = connection.authenticate(GOOD, NOW)
    assert (token.error_code, token.error_message, token.auth_bytes) == (0, None, b"")
    assert token.session_lifetime_ms == 0
    assert connection.principal == "User:alice"
    assert connection.mechanism == "PLAIN"
    assert connection.admit(METADATA, NOW + 10**9) is Admission.SERVE


def test_scram_takes_two_tokens() -> None:
    connection = Authentication(sasl())
    connection.handshake(SCRAM.value, 1, NOW)
    client = ScramClient(SCRAM, "alice", Secret("secret"), "nonce")
    challenge = connection.authenticate(client.first(), NOW)
    assert challenge.error_code == 0
    assert not connection.complete
    final = client.evaluate(challenge.auth_bytes)
    assert final is not None
    client.evaluate(connection.authenticate(final, NOW).auth_bytes)
    assert client.complete
    assert connection.principal == "User:alice"


def test_an_unknown_mechanism_ends_it() -> None:
    connection = Authentication(sasl())
    answer = connection.handshake("GSSAPI", 1, NOW)
    assert answer.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM
    assert answer.mechanisms == ["PLAIN", SCRAM.value]
    assert connection.failed
    assert connection.close_delay_ms == 70
    assert connection.admit(ApiKey.SASL_HANDSHAKE, NOW) is Admission.CLOSE


@pytest.mark.parametrize("key", [METADATA, ApiKey.SASL_AUTHENTICATE, 0, 1])
def test_nothing_else_is_served_before_the_handshake(key: int) -> None:
    connection = Authentication(sasl())
    assert connection.admit(key, NOW) is Admission.CLOSE
    assert connection.failed


@pytest.mark.parametrize("key", [METADATA, ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE])
def test_nothing_else_is_served_during_the_exchange(key: int) -> None:
    connection = Authentication(sasl())
    connection.handshake("PLAIN", 1, NOW)
    assert connection.admit(key, NOW) is Admission.ILLEGAL_STATE
    assert connection.failed


def test_a_refused_token_says_why_and_ends_it() -> None:
    connection = Authentication(sasl())
    connection.handshake("PLAIN", 1, NOW)
    answer = connection.authenticate(BAD, NOW)
    assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert answer.error_message == "Authentication failed: Invalid username or password"
    assert connection.failed
    assert connection.close_delay_ms == 70
    assert connection.principal == "User:ANONYMOUS"


def test_what_scram_refuses_is_not_told() -> None:
    connection = Authentication(sasl())
    connection.handshake(SCRAM.value, 1, NOW)
    answer = connection.authenticate(b"garbage", NOW)
    assert answer.error_message == (
        "Authentication failed during authentication due to invalid credentials "
        "with SASL mechanism SCRAM-SHA-256"
    )


def test_raw_tokens_follow_a_handshake_of_version_0() -> None:
    connection = Authentication(sasl())
    connection.handshake("PLAIN", 0, NOW)
    assert connection.expects_raw_token
    assert connection.raw_token(GOOD, NOW) == b""
    assert connection.complete
    assert not connection.expects_raw_token
    refused = Authentication(sasl())
    refused.handshake("PLAIN", 0, NOW)
    with pytest.raises(ProtocolError):
        refused.raw_token(BAD, NOW)
    assert refused.failed


def test_a_session_that_ends_must_be_renewed() -> None:
    connection = authenticated(reauth_ms=5000)
    assert connection.expires_ms == NOW + 5000
    assert connection.admit(METADATA, NOW + 5000) is Admission.SERVE
    assert connection.admit(ApiKey.SASL_HANDSHAKE, NOW + 5001) is Admission.SERVE
    assert connection.handshake("PLAIN", 1, NOW + 5001).error_code == 0
    assert connection.state is State.EXCHANGE
    assert connection.authenticate(GOOD, NOW + 5001).session_lifetime_ms == 5000
    assert connection.complete
    assert connection.admit(METADATA, NOW + 10_002) is Admission.CLOSE
    assert connection.failed


def test_renewing_too_soon_or_without_need_is_refused() -> None:
    connection = authenticated(reauth_ms=5000)
    assert connection.handshake("PLAIN", 1, NOW + 1).error_code == 0
    connection.authenticate(GOOD, NOW + 1)
    too_soon = connection.handshake("PLAIN", 1, NOW + 1000)
    assert too_soon.error_code == ErrorCode.ILLEGAL_SASL_STATE
    assert connection.complete
    assert connection.handshake("PLAIN", 1, NOW + 1001).error_code == 0
    endless = authenticated()
    assert endless.handshake("PLAIN", 1, NOW).error_code == ErrorCode.ILLEGAL_SASL_STATE


def test_renewing_keeps_user_and_mechanism() -> None:
    other_user = authenticated(reauth_ms=5000)
    other_user.handshake("PLAIN", 1, NOW + 2000)
    answer = other_user.authenticate(BOB, NOW + 2000)
    assert answer.error_message == (
        "Cannot change principals during re-authentication from User.alice: User.bob"
    )
    assert other_user.failed
    other_mechanism = authenticated(reauth_ms=5000)
    other_mechanism.handshake(SCRAM.value, 1, NOW + 2000)
    answer = other_mechanism.authenticate(b"n,,n=alice,r=abc", NOW + 2000)
    assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert answer.error_message is not None
    assert "not supported for re-authentication of mechanism 'PLAIN'" in answer.error_message
