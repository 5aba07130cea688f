"""SCRAM: the RFC's examples, both sides against each other, and everything that must fail."""

from __future__ import annotations

import base64
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.secret import Secret
from skylog.security.sasl import SaslError
from skylog.security.scram import (
    ITERATIONS_MAX,
    ITERATIONS_MIN,
    NONCE_BYTES_MAX,
    ScramClient,
    ScramCredential,
    ScramMechanism,
    ScramServer,
    check_new_credential,
    create_credential,
    new_nonce,
)

SHA_256 = ScramMechanism.SHA_256
DECOY = bytes(32)
# RFC 7677, section 3.
CLIENT_NONCE = "rOprNGfwEbeRWgbNEkqO"
SERVER_NONCE = "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
SALT = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
CLIENT_FIRST = b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
SERVER_FIRST = (
    b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
)
CLIENT_FINAL = (
    b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
    b"p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
)
SERVER_FINAL = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def credential(password: str = "pencil", mechanism: ScramMechanism = SHA_256) -> ScramCredential:
    salted = mechanism.salted_password(password, SALT, 4096)
    return ScramCredential.from_salted(mechanism, SALT, salted, 4096)


def server(known: dict[str, ScramCredential], mechanism: ScramMechanism = SHA_256) -> ScramServer:
    return ScramServer(mechanism, lambda _, name: known.get(name), SERVER_NONCE, DECOY)


def test_the_servers_side_of_the_rfc() -> None:
    exchange = server({"user": credential()})
    assert exchange.evaluate(CLIENT_FIRST) == SERVER_FIRST
    assert exchange.user is None
    assert exchange.evaluate(CLIENT_FINAL) == SERVER_FINAL
    assert exchange.user == "user"
    with pytest.raises(SaslError):
        exchange.evaluate(CLIENT_FINAL)


def test_the_clients_side_of_the_rfc() -> None:
    client = ScramClient(SHA_256, "user", Secret("pencil"), CLIENT_NONCE)
    assert client.first() == CLIENT_FIRST
    assert client.evaluate(SERVER_FIRST) == CLIENT_FINAL
    assert not client.complete
    assert client.evaluate(SERVER_FINAL) is None
    assert client.complete


@settings(max_examples=25, deadline=None)
@given(
    st.sampled_from(ScramMechanism),
    st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=20),
    st.text(st.characters(codec="utf-8"), max_size=20),
    st.booleans(),
    st.integers(),
)
def test_both_sides_agree_on_any_name_and_password(
    mechanism: ScramMechanism, name: str, password: str, right: bool, seed: int
) -> None:
    rng = random.Random(seed)
    stored = create_credential(mechanism, Secret(password), rng)
    exchange = ScramServer(mechanism, lambda _, who: {name: stored}.get(who), new_nonce(rng), DECOY)
    given_password = Secret(password if right else password + "x")
    client = ScramClient(mechanism, name, given_password, new_nonce(rng))
    final = client.evaluate(exchange.evaluate(client.first()))
    assert final is not None
    if right:
        client.evaluate(exchange.evaluate(final))
        assert client.complete
        assert exchange.user == name
    else:
        with pytest.raises(SaslError) as refused:
            exchange.evaluate(final)
        assert refused.value.public is None
        assert exchange.user is None


def test_an_unknown_user_looks_like_a_known_one_until_the_end() -> None:
    first = b"n,,n=nobody,r=" + CLIENT_NONCE.encode()
    answers = {server({}).evaluate(first) for _ in range(2)}
    assert len(answers) == 1
    assert b"i=4096" in answers.pop()
    assert server({}).evaluate(first) != server({}).evaluate(first.replace(b"nobody", b"noone"))
    exchange = server({})
    client = ScramClient(SHA_256, "nobody", Secret("pencil"), CLIENT_NONCE)
    final = client.evaluate(exchange.evaluate(client.first()))
    assert final is not None
    with pytest.raises(SaslError, match="Invalid client credentials"):
        exchange.evaluate(final)


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"n",
        b"n,,",
        b"n,,n=user",
        b"n,,r=abc",
        b"n,,n=,r=abc",
        b"p=tls-unique,,n=user,r=abc",
        b"x,,n=user,r=abc",
        b"n,user,n=user,r=abc",
        b"n,,n=us=er,r=abc",
        b"n,,n=user,r=abc,junk",
        b"n,,n=\xff,r=abc",
        b"n,,n=user,r=" + b"a" * (NONCE_BYTES_MAX + 1),
        b"n,a=other,n=user,r=abc",
    ],
)
def test_malformed_first_messages_fail_for_good(message: bytes) -> None:
    exchange = server({"user": credential()})
    with pytest.raises(SaslError):
        exchange.evaluate(message)
    with pytest.raises(SaslError):
        exchange.evaluate(CLIENT_FIRST)


def test_first_messages_at_the_limits_are_taken() -> None:
    known = {"user": credential()}
    longest = b"n,,n=user,r=" + b"a" * NONCE_BYTES_MAX
    assert server(known).evaluate(longest).startswith(b"r=aaa")
    assert server(known).evaluate(b"y,a=user,n=user,r=abc,x=1").startswith(b"r=abc")


@pytest.mark.parametrize(
    "message",
    [
        b"",
        CLIENT_FINAL.replace(b"dHzb", b"dHzc"),
        CLIENT_FINAL.replace(b"k0,p", b"k1,p"),
        CLIENT_FINAL.replace(b"biws", b"eSws"),
        CLIENT_FINAL.replace(b"biws", b"not base64"),
        CLIENT_FINAL[: CLIENT_FINAL.index(b",p=")],
        CLIENT_FINAL[: CLIENT_FINAL.index(b",p=")] + b",p=",
        CLIENT_FINAL[: CLIENT_FINAL.index(b",p=")] + b",p=AAAA",
        b"\xff\xfe",
    ],
)
def test_wrong_final_messages_are_refused(message: bytes) -> None:
    exchange = server({"user": credential()})
    exchange.evaluate(CLIENT_FIRST)
    with pytest.raises(SaslError):
        exchange.evaluate(message)
    assert exchange.user is None


def test_a_delegation_token_is_no_user() -> None:
    exchange = server({"user": credential()})
    token_first = CLIENT_FIRST + b",tokenauth=true"
    assert exchange.evaluate(token_first).split(b"s=")[1] != SERVER_FIRST.split(b"s=")[1]


@pytest.mark.parametrize(
    "challenge",
    [
        SERVER_FIRST.replace(b"r=rOp", b"r=xOp"),
        b"r=rOprNGfwEbeRWgbNEkqO,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096",
        SERVER_FIRST.replace(b"4096", b"4095"),
        SERVER_FIRST.replace(b"4096", b"1000001"),
        SERVER_FIRST.replace(b"4096", b"-1"),
        SERVER_FIRST.replace(b"4096", b"9" * 5000),
        SERVER_FIRST.replace(b"s=W22", b"s=*22"),
        b"garbage",
        b"",
    ],
)
def test_the_client_refuses_an_invalid_challenge(challenge: bytes) -> None:
    client = ScramClient(SHA_256, "user", Secret("pencil"), CLIENT_NONCE)
    with pytest.raises(SaslError):
        client.evaluate(challenge)


@pytest.mark.parametrize("final", [b"v=AAAA", b"v=", b"e=other-error", b"x=1"])
def test_the_client_refuses_a_server_that_does_not_know_the_keys(final: bytes) -> None:
    client = ScramClient(SHA_256, "user", Secret("pencil"), CLIENT_NONCE)
    client.evaluate(SERVER_FIRST)
    with pytest.raises(SaslError):
        client.evaluate(final)
    assert not client.complete


@pytest.mark.parametrize(
    ("name", "mechanism", "iterations", "code"),
    [
        ("", 1, 4096, ErrorCode.UNACCEPTABLE_CREDENTIAL),
        ("u", 1, ITERATIONS_MIN - 1, ErrorCode.UNACCEPTABLE_CREDENTIAL),
        ("u", 1, ITERATIONS_MAX + 1, ErrorCode.UNACCEPTABLE_CREDENTIAL),
        ("u", 0, 4096, ErrorCode.UNSUPPORTED_SASL_MECHANISM),
        ("u", 3, 4096, ErrorCode.UNSUPPORTED_SASL_MECHANISM),
    ],
)
def test_credentials_that_are_not_stored(
    name: str, mechanism: int, iterations: int, code: ErrorCode
) -> None:
    with pytest.raises(KafkaError) as refused:
        check_new_credential(name, mechanism, iterations)
    assert refused.value.code is code


def test_credentials_at_the_limits_are_stored() -> None:
    assert check_new_credential("u", 1, ITERATIONS_MIN) is SHA_256
    assert check_new_credential("u", 2, ITERATIONS_MAX) is ScramMechanism.SHA_512


def test_a_credential_is_read_and_never_shown() -> None:
    stored = credential()
    parts = (
        f"{name}={base64.b64encode(value).decode()}"
        for name, value in (
            ("salt", stored.salt),
            ("stored_key", stored.stored_key),
            ("server_key", stored.server_key),
        )
    )
    assert ScramCredential.parse(",".join((*parts, "iterations=4096"))) == stored
    assert base64.b64encode(stored.stored_key).decode() not in repr(stored)
    for wrong in ("", "salt=AA==", "salt=*,stored_key=,server_key=,iterations=1"):
        with pytest.raises(ValueError):
            ScramCredential.parse(wrong)
