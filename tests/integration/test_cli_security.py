"""``--client-config``: logging in, being refused, and files that cannot be used."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from skylog.kernel.logging import Level, hub
from skylog.testing import Broker
from tests.integration.cli_support import invoke

PEMS = Path(__file__).parents[1] / "golden" / "tls"
LISTENERS = {"SASL": "SASL_PLAINTEXT", "TLS": "SSL", "CONTROLLER": "PLAINTEXT"}
JAAS = (
    "org.apache.kafka.common.security.plain.PlainLoginModule required "
    'username="admin" password="secret" user_admin="secret" user_alice="wonder";'
)
SETTINGS = {
    "listeners": ",".join(f"{name}://127.0.0.1:0" for name in LISTENERS),
    "listener.security.protocol.map": ",".join(f"{k}:{v}" for k, v in LISTENERS.items()),
    "inter.broker.listener.name": "SASL",
    "sasl.enabled.mechanisms": "PLAIN",
    "sasl.mechanism.inter.broker.protocol": "PLAIN",
    "listener.name.sasl.plain.sasl.jaas.config": JAAS,
    "ssl.keystore.type": "PEM",
    "ssl.keystore.location": str(PEMS / "server.pem"),
    "connection.failed.authentication.delay.ms": "1",
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:admin;User:ANONYMOUS",
}


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    # The broker's log lines would mix with the output of commands.
    hub().set_level("security.audit", Level.ERROR)
    with Broker(SETTINGS) as running:
        yield running


def config(tmp_path: Path, broker: Broker, user: str, password: str, **more: str) -> str:
    properties = {
        "bootstrap.servers": broker.address("SASL"),
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": "org.apache.kafka.common.security.plain.PlainLoginModule required "
        f'username="{user}" password="{password}";',
    } | {name.replace("_", "."): value for name, value in more.items()}
    path = tmp_path / "client.properties"
    path.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
    return str(path)


def test_a_login_and_the_address_from_the_file(broker: Broker, tmp_path: Path) -> None:
    options = ("--client-config", config(tmp_path, broker, "admin", "secret"))
    assert invoke("topics", "create", "mine", *options).exit_code == 0
    assert "mine" in invoke("topics", "list", *options).stdout


@pytest.mark.parametrize(
    ("user", "password", "more", "said"),
    [
        ("admin", "wrong", {}, "SASL_AUTHENTICATION_FAILED"),
        ("admin", "secret", {"sasl_mechanism": "SCRAM-SHA-256"}, "it offers PLAIN"),
        ("admin", "secret", {"sasl_mechanism": "GSSAPI"}, "allowed are PLAIN"),
        ("admin", "secret", {"security_protocol": "SASL"}, "security.protocol is 'SASL'"),
        ("alice", "wonder", {}, "TOPIC_AUTHORIZATION_FAILED"),
    ],
)
def test_refusals_have_a_reason(
    broker: Broker, tmp_path: Path, user: str, password: str, more: dict[str, str], said: str
) -> None:
    path = config(tmp_path, broker, user, password, **more)
    result = invoke("topics", "create", "theirs", "--client-config", path)
    assert result.exit_code == 1
    assert said in result.stderr
    assert result.stderr.count("\n") == 1
    assert password not in result.stderr
    admin = ("--client-config", config(tmp_path, broker, "admin", "secret"))
    assert "theirs" not in invoke("topics", "list", *admin).stdout


def test_tls(broker: Broker, tmp_path: Path) -> None:
    path = tmp_path / "tls.properties"
    options = ("--client-config", str(path), "--bootstrap", broker.address("TLS"))
    path.write_text(
        "security.protocol=SSL\nssl.truststore.type=PEM\n"
        f"ssl.truststore.location={PEMS / 'ca.pem'}\n"
    )
    assert invoke("cluster", *options).exit_code == 0
    path.write_text("security.protocol=SSL\n")
    untrusted = invoke("cluster", *options)
    assert untrusted.exit_code == 1
    assert "no TLS connection" in untrusted.stderr


def test_files_that_cannot_be_used(tmp_path: Path) -> None:
    (tmp_path / "bytes").write_bytes(b"\xff\xfe")
    (tmp_path / "large").write_bytes(b"#" * (1024 * 1024 + 1))
    for name, said in (
        ("none", "No such file or directory"),
        ("bytes", "is not text"),
        ("large", "is too large"),
    ):
        result = invoke("topics", "list", "--client-config", str(tmp_path / name))
        assert result.exit_code == 1
        assert said in result.stderr
