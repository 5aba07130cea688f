"""Which store the settings name, and the sentence for each that is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from skylog.kernel.clock import ManualClock
from skylog.kernel.errors import ConfigError
from skylog.kernel.executor import InlineExecutor
from skylog.kernel.rng import system_random
from skylog.kernel.settings import load_settings
from skylog.kernel.system import System
from skylog.objects.store import ObjectError, Outcome
from skylog.tiered.configuration import (
    AIVEN,
    LOCAL_TIERED,
    RemoteStorageConfig,
    open_remote_storage,
    remote_storage_config,
)
from skylog.tiered.layout.aiven import CustomField
from skylog.tiered.layout.plan import AivenLayout, LocalTieredLayout
from tests.unit.tiered.remote_segments import remote_segment
from tests.unit.tiered.test_storage import files  # noqa: F401 - a fixture

CLASS = "remote.log.storage.manager.class.name"
STORAGE = "io.aiven.kafka.tieredstorage.storage"


def config(*texts: str, log_dir: str = "/logs", diskless_url: str = "") -> RemoteStorageConfig:
    settings = load_settings(None, {}, ["remote.log.storage.system.enable=true", *texts])
    return remote_storage_config(settings.tiered, settings.storage, diskless_url, log_dir)


def aiven(backend: str, *texts: str) -> RemoteStorageConfig:
    named = [f"rsm.config.{text}" for text in texts]
    return config(
        f"{CLASS}={AIVEN}", f"rsm.config.storage.backend.class={STORAGE}.{backend}", *named
    )


def test_by_default_it_is_below_the_diskless_store_or_beside_the_logs() -> None:
    beside = config()
    assert (beside.url, beside.beside_logs) == ("file:///logs/tiered-objects", True)
    for diskless, expected in (
        ("s3://bucket", "s3://bucket/tiered"),
        ("s3://bucket/a/prefix/", "s3://bucket/a/prefix/tiered"),
        ("file:///objects", "file:///objects/tiered"),
        ("memory://", "memory://"),
    ):
        found = config(diskless_url=diskless)
        assert (found.url, found.beside_logs) == (expected, False)
        assert found.layout == AivenLayout(chunk_size=4 * 1024 * 1024)
    assert config(f"{CLASS}=skylog").url == beside.url
    named = config("tiered.storage.url=gs://other/place", diskless_url="s3://bucket")
    assert (named.url, named.beside_logs) == ("gs://other/place", False)


def test_kafkas_local_storage() -> None:
    found = config(f"{CLASS}={LOCAL_TIERED}", "rsm.config.dir=/remote")
    assert (found.url, found.layout) == ("file:///remote", LocalTieredLayout())


def test_the_plugin_with_s3() -> None:
    found = aiven(
        "s3.S3Storage",
        "chunk.size=1048576",
        "key.prefix=some/prefix/",
        "custom.metadata.fields.include=OBJECT_KEY,REMOTE_SIZE",
        "upload.rate.limit.bytes.per.second=2097152",
        "fetch.chunk.cache.class=io.aiven.kafka.tieredstorage.fetch.cache.MemoryChunkCache",
        "fetch.chunk.cache.size=1000000",
        "fetch.chunk.cache.prefetch.max.size=0",
        "fetch.chunk.cache.retention.ms=600000",
        "storage.s3.bucket.name=segments",
        "storage.s3.region=eu-central-1",
        "storage.s3.endpoint.url=http://minio:9000",
        "storage.s3.path.style.access.enabled=true",
        "storage.s3.multipart.upload.part.size=5242880",
        "storage.s3.api.call.attempt.timeout=1234",
        "storage.aws.access.key.id=id",
        "storage.aws.secret.access.key=secret",
    )
    assert found.url == "s3://segments/some/prefix"
    assert found.layout == AivenLayout(
        1048576, (CustomField.REMOTE_SIZE, CustomField.OBJECT_KEY), "some/prefix/"
    )
    assert found.upload_bytes_per_second == 2097152
    assert (found.tiered.cache_bytes_max, found.tiered.prefetch_bytes_max) == (1_000_000, 0)
    assert found.tiered.upload_part_bytes == 5242880
    storage = found.storage
    assert (storage.s3_region, storage.s3_endpoint) == ("eu-central-1", "http://minio:9000")
    assert (storage.s3_path_style, storage.request_timeout_ms) == (True, 1234)
    assert storage.s3_access_key_id == "id"
    assert storage.s3_secret_access_key
    assert storage.s3_secret_access_key.reveal() == "secret"


def test_the_plugin_with_other_stores() -> None:
    found = aiven(
        "gcs.GcsStorage", "storage.gcs.bucket.name=segments", "storage.gcs.credentials.path=/key"
    )
    assert (found.url, found.storage.gcs_credentials_file) == ("gs://segments", "/key")
    assert found.tiered.cache_bytes_max == 67108864
    found = aiven(
        "azure.AzureBlobStorage",
        "storage.azure.container.name=segments",
        "storage.azure.account.name=account",
        "storage.azure.account.key=key",
        "storage.azure.upload.block.size=102400",
    )
    assert (found.url, found.storage.azure_account_name) == ("az://segments", "account")
    assert found.tiered.upload_part_bytes == 5242880  # S3's least; Azure takes it too
    found = aiven(
        "filesystem.FileSystemStorage", "storage.root=/segments", "key.prefix=a/",
        "storage.overwrite.enabled=true",
    )  # fmt: skip
    assert found.url == "file:///segments/a"


def test_without_an_address_of_its_own_amazons_bucket_is_in_the_host_name() -> None:
    found = aiven("s3.S3Storage", "storage.s3.bucket.name=bucket", "storage.s3.region=eu")
    assert not found.storage.s3_path_style


S3 = (f"{CLASS}={AIVEN}", f"rsm.config.storage.backend.class={STORAGE}.s3.S3Storage")
BUCKET = "rsm.config.storage.s3.bucket.name=bucket"
WRONG = {
    "another class": ([f"{CLASS}=com.example.Storage"], "Invalid value com.example.Storage"),
    "a name without a class": (
        ["rsm.config.chunk.size=5"],
        "Unknown setting rsm.config.chunk.size",
    ),
    "no backend": ([f"{CLASS}={AIVEN}"], "storage.backend.class: allowed: io.aiven"),
    "another backend": (
        [f"{CLASS}={AIVEN}", "rsm.config.storage.backend.class=com.example.Backend"],
        "Invalid value com.example.Backend",
    ),
    "no bucket": ([*S3], "rsm.config.storage.s3.bucket.name is missing"),
    "encryption": ([*S3, BUCKET, "rsm.config.encryption.enabled=true"], "not encrypted"),
    "compression": ([*S3, BUCKET, "rsm.config.compression.enabled=true"], "not supported"),
    "a typo": (
        [*S3, BUCKET, "rsm.config.chunk.sise=5"],
        "Unknown setting rsm.config.chunk.sise: similar known names: rsm.config.chunk.size",
    ),
    "another backend's name": (
        [*S3, BUCKET, "rsm.config.storage.gcs.bucket.name=b"],
        "Unknown setting rsm.config.storage.gcs.bucket.name",
    ),
    "a number": ([*S3, BUCKET, "rsm.config.chunk.size=many"], "Invalid value many"),
    "a number out of range": ([*S3, BUCKET, "rsm.config.chunk.size=0"], "at least 1"),
    "a rate out of range": (
        [*S3, BUCKET, "rsm.config.upload.rate.limit.bytes.per.second=5"],
        "at least 1048576",
    ),
    "a prefix without a slash": ([*S3, BUCKET, "rsm.config.key.prefix=a"], "end at a slash"),
    "a prefix that leads out": ([*S3, BUCKET, "rsm.config.key.prefix=../a/"], "Invalid value"),
    "a hostile bucket": (
        [*S3, "rsm.config.storage.s3.bucket.name=a/b?c=d"],
        "rsm.config.storage.*",
    ),
    "custom metadata": (
        [*S3, BUCKET, "rsm.config.custom.metadata.fields.include=OTHER"],
        "Invalid value OTHER",
    ),
    "a cache on disk": (
        [
            *S3,
            BUCKET,
            "rsm.config.fetch.chunk.cache.class=io.aiven.kafka.tieredstorage.fetch.cache.DiskChunkCache",
        ],
        "cached in memory",
    ),
    "an unbounded cache": ([*S3, BUCKET, "rsm.config.fetch.chunk.cache.size=-1"], "of bytes"),
    "iceberg": ([*S3, BUCKET, "rsm.config.segment.format=iceberg"], "can only be kafka"),
    "a storage class": (
        [*S3, BUCKET, "rsm.config.storage.s3.storage.class=GLACIER"],
        "can only be STANDARD",
    ),
    "no certificate check": (
        [*S3, BUCKET, "rsm.config.storage.aws.certificate.check.enabled=false"],
        "not supported",
    ),
    "a url as well": ([*S3, BUCKET, "tiered.storage.url=s3://other"], "has no effect"),
    "an invalid url": (["tiered.storage.url=ftp://x"], "configuration tiered.storage.url"),
    "local without a directory": ([f"{CLASS}={LOCAL_TIERED}"], "rsm.config.dir must be"),
    "local, relative": ([f"{CLASS}={LOCAL_TIERED}", "rsm.config.dir=x"], "absolute"),
    "local that deletes itself": (
        [f"{CLASS}={LOCAL_TIERED}", "rsm.config.dir=/x", "rsm.config.delete.on.close=true"],
        "not supported",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_said_in_one_sentence(name: str) -> None:
    texts, expected = WRONG[name]
    with pytest.raises(ConfigError) as raised:
        config(*texts)
    assert expected in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_secret_under_a_mistyped_name_is_not_shown() -> None:
    with pytest.raises(ConfigError) as raised:
        config(*S3, BUCKET, "rsm.config.storage.aws.secret.acces.key=hunter2")
    assert "hunter2" not in str(raised.value)
    assert "storage.aws.secret.access.key" in str(raised.value)


def test_another_prefix_of_settings() -> None:
    found = config(
        f"{CLASS}={LOCAL_TIERED}",
        "remote.log.storage.manager.impl.prefix=mine.",
        "mine.dir=/remote",
    )
    assert found.url == "file:///remote"


async def test_a_store_of_another_cluster_is_not_changed(
    tmp_path: Path,
    files: object,  # noqa: F811
) -> None:
    """# T14"""
    system = System(ManualClock(), system_random(), InlineExecutor())
    found = config(f"tiered.storage.url={tmp_path.as_uri()}")
    segment = remote_segment(size=10_000)
    first = open_remote_storage(found, system, "cluster-a")
    await first.copy(segment, files)  # type: ignore[arg-type]
    second = open_remote_storage(found, system, "cluster-b")
    for work in (second.copy(segment, files), second.delete(segment)):  # type: ignore[arg-type]
        with pytest.raises(ObjectError, match="belongs to cluster 'cluster-a'") as raised:
            await work
        assert raised.value.kind is Outcome.REFUSED
        assert "tiered.storage.url" in str(raised.value)
    reader = open_remote_storage(found, system, None)
    assert len(await reader.fetch(segment, 0, 10)) == 10
    for storage in (first, second, reader):
        await storage.close()
