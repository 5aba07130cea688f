"""From a URL and settings to a store."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from skylog.kernel.errors import ConfigError, StorageError
from skylog.kernel.limits import OBJECT_INLINE_BYTES_MAX
from skylog.kernel.settings import load_settings
from skylog.kernel.settings.storage import StorageSettings
from skylog.objects.files import Files
from skylog.objects.keys import ObjectKey
from skylog.objects.metered import StoreStats
from skylog.objects.open import StorageUrl, open_store, parse_url, retry_policy

KEY = ObjectKey.named("backup", "key")


def storage(**texts: str) -> StorageSettings:
    overrides = [
        f"diskless.storage.{name.replace('_', '.')}={text}" for name, text in texts.items()
    ]
    return load_settings(None, {}, overrides).storage


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("memory://", StorageUrl("memory", "", "", "")),
        ("file:///var/lib/my%20objects", StorageUrl("file", "", "", "/var/lib/my objects")),
        ("s3://bucket", StorageUrl("s3", "bucket", "", "")),
        ("s3://my.bucket-1/a/B_c/", StorageUrl("s3", "my.bucket-1", "a/B_c", "")),
        ("gs://bucket/prefix", StorageUrl("gs", "bucket", "prefix", "")),
        ("az://container", StorageUrl("az", "container", "", "")),
    ],
)
def test_urls(text: str, expected: StorageUrl) -> None:
    assert parse_url(text) == expected
    assert expected.is_remote == (expected.bucket != "")


@pytest.mark.parametrize(
    "text",
    [
        "", "bucket", "/var/lib", "file://", "file://host/path", "file:relative", "s3://", "s3:///x",
        "s3://b/../c", "s3://bucket/a//b", "s3://bucket/.hidden", "s3://bucket?x=1", "http://x/y",
        "s3://bucket/a#b", "s3://key:secret@bucket/x", "s3://BUCKET", "s3://bucket/a b",
        "memory://name/x", "file:///a%00b", "s3://[", "ftp://bucket",
    ],
)  # fmt: skip
def test_invalid_urls(text: str) -> None:
    with pytest.raises(ConfigError, match=r"diskless\.storage\.url.*s3://bucket/prefix"):
        parse_url(text)


def test_a_url_with_a_secret_is_not_repeated() -> None:
    with pytest.raises(ConfigError, match="without credentials") as raised:
        parse_url("s3://key:secret@bucket/x")
    assert "secret" not in str(raised.value)


async def test_local_stores_cost_nothing_and_are_counted(tmp_path: Path) -> None:
    stats = StoreStats()
    store = open_store(f"file://{tmp_path}/deep/objects", storage(), stats=stats)
    await store.put(KEY, b"data")
    await store.close()
    assert stats.bytes_written == 4
    assert stats.operations["put"].requests == 1
    assert stats.cost == 0


def test_retries_as_configured() -> None:
    policy = retry_policy(storage(retries="2", request_timeout_ms="1000", retry_backoff_ms="10"))
    assert policy.attempts_max == 3
    assert policy.attempt_seconds_max == 2.0
    assert policy.pause_seconds == 0.01
    assert policy.pause_seconds_max == 5.0


def test_secrets_do_not_show() -> None:
    settings = storage(
        s3_access_key_id="id", s3_secret_access_key="canary-1", azure_account_key="canary-2",
        s3_session_token="canary-3",
    )  # fmt: skip
    assert settings.s3_secret_access_key is not None
    assert settings.s3_secret_access_key.reveal() == "canary-1"
    assert "canary" not in f"{settings!r} {settings}"


def test_settings_that_do_not_fit_are_refused_at_start(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="secret"):
        open_store("s3://bucket", storage(s3_access_key_id="id"))
    with pytest.raises(StorageError, match="nowhere"):
        open_store("s3://bucket", storage(s3_credentials_file=str(tmp_path / "nowhere")))
    with pytest.raises(ConfigError, match=r"ca\.file"):
        open_store("s3://bucket", storage(s3_region="eu", ca_file=str(tmp_path / "no.pem")))
    with pytest.raises(ConfigError, match=r"max\.concurrent\.requests"):
        storage(max_concurrent_requests="0")


@pytest.mark.parametrize(
    ("url", "texts", "named"),
    [
        ("az://container", {}, "Account must be specified"),
        ("gs://bucket", {"gcs_credentials_file": "/nowhere/key.json"}, "/nowhere/key.json"),
        ("s3://bucket", {"s3_endpoint": "127.0.0.1:9000"}, r"s3\.endpoint.*https://host"),
        ("s3://bucket", {"ca_file": __file__}, "root_certificate"),
    ],
)
def test_what_the_library_refuses_is_a_config_error(
    url: str, texts: dict[str, str], named: str
) -> None:
    with pytest.raises(ConfigError, match=named):
        open_store(url, storage(**texts))


def test_all_kinds_of_buckets_open_without_a_network() -> None:
    open_store("s3://bucket/prefix", storage(s3_region="eu-central-1"))
    open_store("gs://bucket", storage(gcs_endpoint="http://127.0.0.1:1"))
    open_store("az://container", storage(azure_account_name="account"))


async def test_a_directory_is_synced_unless_told_otherwise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[int] = []
    monkeypatch.setattr("skylog.objects.files.os.fsync", synced.append)
    for sync in (True, False):
        synced.clear()
        given = storage(file_sync=str(sync).lower())
        store = open_store((tmp_path / str(sync)).as_uri(), given)
        await store.put(KEY, b"x")
        assert await store.get(KEY) == b"x"
        await store.close()
        assert bool(synced) is sync


@pytest.mark.parametrize("sync", [True, False])
@pytest.mark.parametrize("beside_logs", [True, False])
async def test_the_loop_waits_for_small_puts_beside_the_logs_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sync: bool, beside_logs: bool
) -> None:
    written_by: list[int] = []
    write = Files.write

    def noted(self: Files, file: int, parts: list[memoryview]) -> None:
        written_by.append(threading.get_ident())
        write(self, file, parts)

    monkeypatch.setattr(Files, "write", noted)
    given = storage(file_sync=str(sync).lower())
    store = open_store(tmp_path.as_uri(), given, beside_logs=beside_logs)
    for data in (b"x", bytes(OBJECT_INLINE_BYTES_MAX)):
        if not store.at_hand or not store.at_hand.put_now(KEY, data):
            await store.put(KEY, data)
    await store.close()
    in_loop = [thread == threading.get_ident() for thread in written_by]
    assert in_loop == [beside_logs and not sync, False]
