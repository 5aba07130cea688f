"""A listener's security, made from its settings."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from skylog.kernel.errors import ConfigError
from skylog.kernel.secret import Secret
from skylog.kernel.settings.listeners import ListenerSettings
from skylog.security.listener import ListenerSecurity
from skylog.security.scram import ScramClient, ScramCredential, ScramMechanism, create_credential

PEMS = Path(__file__).parents[2] / "golden" / "tls"
JAAS = 'org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="secret";'
KEY = {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(PEMS / "server.pem")}


class Credentials:
    def scram_credential(self, user: str, mechanism: int) -> ScramCredential | None:
        if (user, mechanism) != ("alice", 2):
            return None
        return create_credential(ScramMechanism.SHA_512, Secret("secret"), random.Random(1))


def security(protocol: str, mechanisms: tuple[str, ...] = (), **texts: str) -> ListenerSecurity:
    values: dict[str, Any] = {
        "sasl.enabled.mechanisms": mechanisms,
        "connections.max.reauth.ms": 0,
        **KEY,
    }
    settings = ListenerSettings(
        name="CLIENT",
        protocol=protocol,
        host="",
        port=0,
        advertised_host="",
        advertised_port=0,
        advertised=True,
        controller=False,
        values=values,
        texts={name.replace("_", "."): text for name, text in texts.items()},
    )
    return ListenerSecurity(settings, Credentials(), random.Random(2))


def test_plaintext_needs_nothing() -> None:
    listener = security("PLAINTEXT")
    assert listener.context is None
    authentication = listener.new_authentication()
    listener.identify(authentication, None)
    assert authentication.complete
    assert authentication.principal == "User:ANONYMOUS"


@pytest.mark.parametrize("protocol", ["SASL_PLAINTEXT", "SASL_SSL"])
def test_users_of_the_jaas_entry_log_in(protocol: str) -> None:
    listener = security(
        protocol,
        ("PLAIN",),
        plain_sasl_jaas_config=JAAS,
        plain_connections_max_reauth_ms="5000",
    )
    assert (listener.context is not None) is (protocol == "SASL_SSL")
    authentication = listener.new_authentication()
    listener.identify(authentication, None)
    authentication.handshake("PLAIN", 1, 0)
    answer = authentication.authenticate(b"\0alice\0secret", 0)
    assert answer.session_lifetime_ms == 5000
    assert authentication.principal == "User:alice"


def test_scram_users_are_those_of_the_cluster() -> None:
    authentication = security("SASL_PLAINTEXT", ("SCRAM-SHA-512",)).new_authentication()
    authentication.handshake("SCRAM-SHA-512", 1, 0)
    client = ScramClient(ScramMechanism.SHA_512, "alice", Secret("secret"), "nonce")
    final = client.evaluate(authentication.authenticate(client.first(), 0).auth_bytes)
    assert final is not None
    client.evaluate(authentication.authenticate(final, 0).auth_bytes)
    assert client.complete
    assert authentication.principal == "User:alice"


def test_what_is_missing_is_named() -> None:
    with pytest.raises(ConfigError, match=r"listener\.name\.client\.plain\.sasl\.jaas\.config"):
        security("SASL_PLAINTEXT", ("PLAIN",))
    with pytest.raises(ConfigError, match=r"GSSAPI.*allowed are PLAIN, SCRAM-SHA-256"):
        security("SASL_SSL", ("GSSAPI",))
