"""PLAIN and the JAAS entries that list its users."""

from __future__ import annotations

import base64
import random

import pytest

from skylog.kernel import limits
from skylog.kernel.errors import ConfigError
from skylog.kernel.secret import Secret
from skylog.security.jaas import parse_jaas
from skylog.security.plain import PlainClient, PlainServer, PlainUsers
from skylog.security.sasl import SaslError
from skylog.security.scram import ScramMechanism, create_credential


def users(**passwords: str) -> PlainUsers:
    secrets = {name: Secret(password) for name, password in passwords.items()}
    return PlainUsers(secrets, random.Random(1))


def test_client_and_server_agree() -> None:
    exchange = PlainServer(users(alice="secret", bob="other"))
    client = PlainClient("alice", Secret("secret"))
    assert client.evaluate(exchange.evaluate(client.first())) is None
    assert client.complete
    assert exchange.user == "alice"
    with pytest.raises(SaslError):
        exchange.evaluate(client.first())


@pytest.mark.parametrize(
    ("token", "said"),
    [
        (b"", "expected 3 tokens, got 1"),
        (b"alice\0secret", "expected 3 tokens, got 2"),
        (b"\0alice\0secret\0more", "expected 3 tokens, got 4"),
        (b"\0\0secret", "Authentication failed: username not specified"),
        (b"\0alice\0", "Authentication failed: password not specified"),
        (b"\0alice\0wrong", "Authentication failed: Invalid username or password"),
        (b"\0nobody\0secret", "Authentication failed: Invalid username or password"),
        (b"\0alice\0secret\xff", "Authentication failed: Invalid username or password"),
        (b"bob\0alice\0secret", "an authorization id that is different from username"),
    ],
)
def test_refusals_say_what_kafka_says(token: bytes, said: str) -> None:
    exchange = PlainServer(users(alice="secret"))
    with pytest.raises(SaslError, match=said) as refused:
        exchange.evaluate(token)
    assert refused.value.public
    assert exchange.user is None


def test_the_own_authorization_id_is_allowed() -> None:
    exchange = PlainServer(users(alice="secret"))
    assert exchange.evaluate(b"alice\0alice\0secret") == b""
    assert exchange.user == "alice"


def test_stored_hashes_are_checked_off_the_loop() -> None:
    rng = random.Random(2)
    stored = create_credential(ScramMechanism.SHA_512, Secret("secret"), rng)
    encoded = [
        base64.b64encode(part).decode()
        for part in (stored.salt, stored.stored_key, stored.server_key)
    ]
    text = "{{SCRAM-SHA-512}}salt={},stored_key={},server_key={},iterations=4096".format(*encoded)
    mixed = users(alice=text, bob="open")
    assert mixed.blocking
    assert not users(alice="secret").blocking
    assert mixed.verify("alice", "secret")
    assert mixed.verify("bob", "open")
    for name, password in (("alice", "wrong"), ("bob", "secret"), ("nobody", "secret")):
        assert not mixed.verify(name, password)
    with pytest.raises(ConfigError, match="alice"):
        users(alice="{SCRAM-SHA-256}nonsense")


JAAS = """org.apache.kafka.common.security.plain.PlainLoginModule required
  username="admin"  // the broker's own login
  password="admin-\\"secret\\";" /* quoted */
  user_admin='single'
  user_alice=simple user_b-o.b$="\\u";"""


def test_jaas_entries_are_read() -> None:
    entry = parse_jaas(JAAS)
    assert entry.module.endswith("PlainLoginModule")
    assert entry.username == "admin"
    assert entry.password == Secret('admin-"secret";')
    found = {name: secret.reveal() for name, secret in entry.users().items()}
    assert found == {"admin": "single", "alice": "simple", "b-o.b$": "u"}
    assert "single" not in repr(entry)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "come first"),
        ("Module", "come first"),
        ("Module maybe;", "control flag is one of"),
        ("Module required", "semicolon"),
        ("Module required; Module required;", "one entry"),
        ("Module required user_a;", "value not specified for key 'user_a'"),
        ("Module required user_a=;", "value not specified for key 'user_a'"),
        ("Module required user_a==b;", "value not specified"),
        ('Module required user_a="b;', "out of place"),
        ("Module required user_a=b!c;", "out of place"),
    ],
)
def test_malformed_jaas_is_refused_without_showing_it(text: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said) as refused:
        parse_jaas(text, "the.key")
    assert str(refused.value).startswith("the.key")


def test_jaas_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "Module required a=b;"
    monkeypatch.setattr(limits, "JAAS_CHARACTERS_MAX", len(text))
    parse_jaas(text)
    with pytest.raises(ConfigError, match="longer"):
        parse_jaas(text + " ")
