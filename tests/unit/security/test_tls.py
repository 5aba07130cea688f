"""TLS: settings and their errors, names in certificates, handshakes over real sockets."""

from __future__ import annotations

import asyncio
import os
import ssl
from pathlib import Path

import pytest

from skylog.broker.net.server import stop_accepting
from skylog.kernel import limits
from skylog.kernel.errors import ConfigError, ProtocolError
from skylog.kernel.secret import Secret
from skylog.security.certificate import PrincipalMapper, subject_name
from skylog.security.tls import ListenerTls, TlsSettings, client_context, server_context

PEMS = Path(__file__).parents[2] / "golden" / "tls"
SERVER = {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(PEMS / "server.pem")}
TRUST = {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(PEMS / "ca.pem")}
CLIENT = {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(PEMS / "client.pem")}
STRANGER = {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(PEMS / "stranger.pem")}


def pem(name: str) -> str:
    return (PEMS / name).read_text()


def der(name: str) -> bytes:
    text = pem(name)
    return ssl.PEM_cert_to_DER_cert(text[text.index("-----BEGIN CERTIFICATE") :])


async def handshake(
    listener: ListenerTls, client: dict[str, str], host: str = "localhost"
) -> tuple[str, dict[str, object]]:
    """Connect once; returns the server's principal and the client's certificate."""
    seen: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    opened: list[asyncio.StreamWriter] = []

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        opened.append(writer)
        if not seen.done():
            seen.set_result(listener.principal(writer.get_extra_info("ssl_object")))
        writer.write(b"!")

    server = await asyncio.start_server(accept, "127.0.0.1", 0, ssl=listener.context)
    port = server.sockets[0].getsockname()[1]
    try:
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", port, ssl=client_context(TlsSettings.of(client)), server_hostname=host
        )
        opened.append(writer)
        # With TLS 1.3 the server checks the client's certificate after the client is done.
        if await reader.read(1) != b"!":
            raise ConnectionError("refused")
        certificate = writer.get_extra_info("peercert")
        return await seen, certificate
    finally:
        await stop_accepting([server])
        await cancel_others()
        for writer in opened:
            writer.transport.abort()
        await asyncio.sleep(0)


async def cancel_others() -> None:
    """Cancel handshakes in progress."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)


def common_name(certificate: dict[str, object]) -> object:
    return dict(pair[0] for pair in certificate["subject"])["commonName"]  # type: ignore[attr-defined]


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture) -> None:
    """asyncio logs refused handshakes, which are expected here."""
    caplog.set_level("CRITICAL", logger="asyncio")


async def test_a_client_without_certificate_is_anonymous() -> None:
    principal, certificate = await handshake(ListenerTls(TlsSettings.of(SERVER)), TRUST)
    assert principal == "User:ANONYMOUS"
    assert common_name(certificate) == "localhost"


@pytest.mark.parametrize("protocol", ["TLSv1.2", "TLSv1.3"])
async def test_the_certificate_names_the_principal(protocol: str) -> None:
    settings = {**SERVER, **TRUST, "ssl.client.auth": "required", "ssl.enabled.protocols": protocol}
    principal, _ = await handshake(ListenerTls(TlsSettings.of(settings)), {**CLIENT, **TRUST})
    assert principal == r"User:CN=alice,OU=dev,O=Acme\, Inc,C=DE"


async def test_rules_map_the_name() -> None:
    settings = {
        **SERVER,
        **TRUST,
        "ssl.client.auth": "requested",
        "ssl.principal.mapping.rules": "RULE:^CN=(.*?),OU=(.*?),.*$/$1@$2/U, DEFAULT",
    }
    listener = ListenerTls(TlsSettings.of(settings))
    assert (await handshake(listener, {**CLIENT, **TRUST}))[0] == "User:ALICE@DEV"
    assert (await handshake(listener, TRUST))[0] == "User:ANONYMOUS"


@pytest.mark.parametrize(
    ("auth", "client"),
    [
        ("required", TRUST),
        ("required", {**STRANGER, **TRUST}),
        ("requested", {**STRANGER, **TRUST}),
    ],
)
async def test_a_missing_or_untrusted_client_certificate_is_refused(
    auth: str, client: dict[str, str]
) -> None:
    listener = ListenerTls(TlsSettings.of({**SERVER, **TRUST, "ssl.client.auth": auth}))
    with pytest.raises((ssl.SSLError, ConnectionError)):
        await handshake(listener, client)


async def test_the_client_checks_authority_and_host() -> None:
    listener = ListenerTls(TlsSettings.of(SERVER))
    wrong = {**TRUST, "ssl.truststore.location": str(PEMS / "other-ca.pem")}
    with pytest.raises(ssl.SSLCertVerificationError):
        await handshake(listener, wrong)
    with pytest.raises(ssl.SSLCertVerificationError):
        await handshake(listener, TRUST, host="example.org")
    unchecked = {**TRUST, "ssl.endpoint.identification.algorithm": ""}
    assert (await handshake(listener, unchecked, host="example.org"))[0] == "User:ANONYMOUS"


async def test_changed_files_are_used_by_new_handshakes(tmp_path: Path) -> None:
    key, trust = tmp_path / "server.pem", tmp_path / "trust.pem"
    key.write_text(pem("server.pem"))
    trust.write_text(pem("ca.pem"))
    listener = ListenerTls(
        TlsSettings.of(
            {
                **SERVER,
                **TRUST,
                "ssl.keystore.location": str(key),
                "ssl.truststore.location": str(trust),
                "ssl.client.auth": "required",
            }
        )
    )
    assert not listener.reload_if_changed()
    with pytest.raises((ssl.SSLError, ConnectionError)):
        await handshake(listener, {**STRANGER, **TRUST})
    key.write_text(pem("renewed.pem"))
    trust.write_text(pem("other-ca.pem"))
    os.utime(key, ns=(1, 1))
    assert listener.reload_if_changed()
    assert not listener.reload_if_changed()
    principal, certificate = await handshake(listener, {**STRANGER, **TRUST})
    assert principal == "User:CN=stranger"
    assert common_name(certificate) == "renewed"
    with pytest.raises((ssl.SSLError, ConnectionError)):
        await handshake(listener, {**CLIENT, **TRUST})
    key.write_text("half a file")
    with pytest.raises(ConfigError):
        listener.reload_if_changed()
    assert common_name((await handshake(listener, {**STRANGER, **TRUST}))[1]) == "renewed"


async def test_settings_may_change_while_running() -> None:
    listener = ListenerTls(TlsSettings.of(SERVER))
    renewed = {**SERVER, "ssl.keystore.location": str(PEMS / "renewed.pem")}
    listener.update(TlsSettings.of(renewed))
    assert common_name((await handshake(listener, TRUST))[1]) == "renewed"
    with pytest.raises(ConfigError):
        listener.update(TlsSettings())
    assert common_name((await handshake(listener, TRUST))[1]) == "renewed"


def inline(name: str, squeeze: bool) -> dict[str, str | Secret]:
    text = pem(name)
    at = text.index("-----BEGIN CERTIFICATE")
    key, chain = text[:at], text[at:]
    if squeeze:  # as a setting on one line
        key, chain = key.replace("\n", " "), chain.replace("\n", " ")
    return {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.key": Secret(key),
        "ssl.keystore.certificate.chain": chain,
    }


@pytest.mark.parametrize("squeeze", [False, True])
async def test_keys_and_certificates_may_stand_in_the_settings(squeeze: bool) -> None:
    client = {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": pem("ca.pem")}
    listener = ListenerTls(TlsSettings.of(inline("server.pem", squeeze)))
    assert (await handshake(listener, client))[0] == "User:ANONYMOUS"


async def test_an_encrypted_key_needs_its_password() -> None:
    settings = inline("encrypted.pem", squeeze=True)
    opened = TlsSettings.of({**settings, "ssl.key.password": "sesame"})
    assert (await handshake(ListenerTls(opened), TRUST))[0] == "User:ANONYMOUS"
    for values in (settings, {**settings, "ssl.key.password": "wrong"}):
        with pytest.raises(ConfigError, match=r"ssl\.key\.password"):
            server_context(TlsSettings.of(values))


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({}, "needs a key"),
        ({"ssl.keystore.location": "x.jks"}, "JKS; allowed is PEM: convert it"),
        ({"ssl.keystore.location": "x.p12", "ssl.keystore.type": "PKCS12"}, "openssl pkcs12"),
        ({**SERVER, "ssl.truststore.location": "t.jks"}, r"ssl\.truststore\.type is JKS"),
        ({**SERVER, "ssl.keystore.password": "x"}, r"ssl\.keystore\.password is not allowed"),
        ({**SERVER, "ssl.keystore.location": "/no/such/file"}, "cannot read /no/such/file"),
        ({**SERVER, "ssl.keystore.location": str(PEMS / "ca.pem")}, "no PEM block"),
        ({**inline("server.pem", False), "ssl.keystore.location": "x"}, "keep one"),
        ({**inline("server.pem", False), "ssl.keystore.type": "JKS"}, "with PEM only"),
        ({"ssl.keystore.type": "PEM", "ssl.keystore.key": "k"}, "go together"),
        (
            {
                **inline("server.pem", False),
                "ssl.keystore.certificate.chain": pem("client.pem"),
            },
            "not the first certificate's",
        ),
        ({**SERVER, **TRUST, "ssl.truststore.certificates": "x"}, "keep one"),
        ({**SERVER, "ssl.client.auth": "maybe"}, "allowed are none, requested, required"),
        ({**SERVER, "ssl.enabled.protocols": "SSLv3"}, r"allowed are TLSv1\.2, TLSv1\.3"),
        ({**SERVER, "ssl.cipher.suites": "NONSENSE"}, r"ssl\.cipher\.suites"),
    ],
)
def test_settings_that_cannot_work_say_why(values: dict[str, str | Secret], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        server_context(TlsSettings.of(values))


def test_a_file_that_is_too_large_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "server.pem"
    path.write_text(pem("server.pem"))
    settings = TlsSettings.of({**SERVER, "ssl.keystore.location": str(path)})
    monkeypatch.setattr(limits, "PEM_BYTES_MAX", path.stat().st_size)
    server_context(settings)
    monkeypatch.setattr(limits, "PEM_BYTES_MAX", path.stat().st_size - 1)
    with pytest.raises(ConfigError, match="larger than"):
        server_context(settings)


def test_cipher_suites_go_by_java_or_openssl_names() -> None:
    suites = (
        "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,TLS_AES_256_GCM_SHA384,"
        "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,TLS_RSA_WITH_AES_256_CBC_SHA256,"
        "ECDHE-RSA-AES256-GCM-SHA384"
    )
    context = server_context(TlsSettings.of({**SERVER, "ssl.cipher.suites": suites}))
    names = {cipher["name"] for cipher in context.get_ciphers()}
    assert {name for name in names if not name.startswith("TLS_")} == {
        "ECDHE-ECDSA-AES128-GCM-SHA256",
        "ECDHE-RSA-CHACHA20-POLY1305",
        "AES256-SHA256",
        "ECDHE-RSA-AES256-GCM-SHA384",
    }
    newest = TlsSettings.of({**SERVER, "ssl.cipher.suites": ["TLS_AES_128_GCM_SHA256"]})
    assert server_context(newest).minimum_version is ssl.TLSVersion.TLSv1_3


def test_names_are_written_as_java_does() -> None:
    assert subject_name(der("names.pem")) == (
        "DC=ex,1.2.840.113549.1.9.1=#16056140622e63,CN=\\ cliént \\#1\\=x\\ ,2.5.4.5=#130135,"
        '2.5.4.12=#0c0154,UID=u1,STREET=s,O=a\\"b\\;\\<c\\>,C=DE'
    )


def test_a_broken_certificate_is_refused() -> None:
    whole = der("names.pem")
    for end in range(0, len(whole) - 1, 7):
        with pytest.raises(ProtocolError):
            subject_name(whole[:end])


@pytest.mark.parametrize(
    ("rules", "name", "mapped"),
    [
        ("DEFAULT", "CN=kafka,C=US", "CN=kafka,C=US"),
        ("", "CN=kafka", None),
        ("RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/", "CN=kafka,OU=ServiceUsers,O=x", "kafka"),
        ("RULE:^CN=(.*?), OU=(.*?)$/$1@$2/L", "CN=ADAM, OU=AB", "adam@ab"),
        ("RULE:^cn=(.*?)$/$1/U", "cn=x", "X"),
        ("RULE:^CN=(.*)$/$1$2/", "CN=x", "x$2"),
        ("RULE:^CN=(.*)$/$12/", "CN=x", "x2"),
        ("RULE:CN=nobody/x/,RULE:CN=(.*)/y$1/", "CN=z", "yz"),
        (r"RULE:^CN=(.*)$/a\/$1\$/", "CN=x", "a/x$"),
        ("RULE:.*/all/", "CN=x", "allall"),  # Java's replaceAll too finds the empty end
        ("RULE:CN=a/x/", "CN=b", None),
    ],
)
def test_mapping_rules(rules: str, name: str, mapped: str | None) -> None:
    mapper = PrincipalMapper(rules)
    if mapped is None:
        with pytest.raises(ProtocolError, match="No rules apply"):
            mapper.name(name)
    else:
        assert mapper.name(name) == mapped


@pytest.mark.parametrize("rules", ["default", "DEFAUL", "RULE:CN=(.*)/$1", "RULE:(/x/"])
def test_wrong_mapping_rules_are_refused(rules: str) -> None:
    with pytest.raises(ConfigError, match=r"ssl\.principal\.mapping\.rules"):
        PrincipalMapper(rules)
