"""From the settings to the store of remote segments.

``remote.log.storage.manager.class.name`` chooses: nothing or ``skylog`` is our own setting
``tiered.storage.url``; the classes of Aiven's plugin and of Kafka's LocalTieredStorage are
understood with their own settings (``rsm.config.*``). Anything else stops the node: it would copy
segments to where nobody looks for them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from skylog.kernel.config import ConfigType
from skylog.kernel.errors import ConfigError
from skylog.kernel.settings.storage import StorageSettings
from skylog.kernel.settings.tiered import TieredSettings
from skylog.kernel.system import System
from skylog.objects.claim import BucketClaim
from skylog.objects.metered import StoreStats
from skylog.objects.open import open_store, parse_url
from skylog.tiered.layout.plan import AivenLayout, Layout, LocalTieredLayout
from skylog.tiered.plugin_settings import plugin_storage, typed
from skylog.tiered.storage import ObjectRemoteStorage, UploadRate

OWN: Final = "skylog"
AIVEN: Final = "io.aiven.kafka.tieredstorage.RemoteStorageManager"
LOCAL_TIERED: Final = "org.apache.kafka.server.log.remote.storage.LocalTieredStorage"
# Of the diskless store, and beside the logs.
BELOW_DISKLESS: Final = "tiered"
DIRECTORY: Final = "tiered-objects"
_CLASS: Final = "remote.log.storage.manager.class.name"
_URL: Final = "tiered.storage.url"
_LOCAL_FACTS: Final = (
    ("dir", ConfigType.STRING, None, ""),
    ("delete.on.close", ConfigType.BOOLEAN, "false", ""),
    ("delete.enable", ConfigType.BOOLEAN, "true", ""),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteStorageConfig:
    """Where remote segments are, and how they are stored there."""

    url: str
    # The directory is on the disk of the logs.
    beside_logs: bool
    storage: StorageSettings
    layout: Layout
    upload_bytes_per_second: int | None
    # With what the settings of a plugin say of caches and parts.
    tiered: TieredSettings


def remote_storage_config(
    tiered: TieredSettings, storage: StorageSettings, diskless_url: str, log_dir: str
) -> RemoteStorageConfig:
    """Check all settings of the remote storage; ConfigError with one sentence.

    ``diskless_url`` is empty if the diskless store is a directory beside the logs.
    """
    name, prefix = tiered.storage_class or OWN, tiered.storage_prefix
    if name == OWN:
        typed(tiered.storage_texts, (), prefix)
        config = _own(tiered, storage, diskless_url, log_dir)
    elif tiered.storage_url:
        raise ConfigError(f"{_URL} has no effect with {_CLASS}={name}: set one of the two")
    elif name == AIVEN:
        config = _aiven(tiered, storage)
    elif name == LOCAL_TIERED:
        config = _local_tiered(tiered, storage)
    else:
        raise ConfigError(
            f"Invalid value {name} for configuration {_CLASS}: allowed: {OWN}, {AIVEN},"
            f" {LOCAL_TIERED}; Java classes cannot be loaded"
        )
    parse_url(config.url, setting=_URL if name == OWN else f"{prefix}storage.*")
    return config


def open_remote_storage(
    config: RemoteStorageConfig,
    system: System,
    cluster_id: str | None,
    stats: StoreStats | None = None,
) -> ObjectRemoteStorage:
    """Open the store. Nothing is changed in it unless it is this cluster's; without a cluster id it
    is opened for reading."""
    store = open_store(
        config.url,
        config.storage,
        stats=stats,
        clock=system.clock,
        rng=system.rng,
        beside_logs=config.beside_logs,
        part_bytes=config.tiered.upload_part_bytes,
    )
    limit = config.upload_bytes_per_second
    return ObjectRemoteStorage(
        store,
        config.layout,
        system.executor,
        custom_metadata_bytes_max=config.tiered.custom_metadata_bytes_max,
        rate=UploadRate(limit, system.clock) if limit is not None else None,
        claim=BucketClaim(store, cluster_id, _URL) if cluster_id is not None else None,
    )


def _own(
    tiered: TieredSettings, storage: StorageSettings, diskless_url: str, log_dir: str
) -> RemoteStorageConfig:
    url = tiered.storage_url
    beside_logs = not url and not diskless_url
    if beside_logs:
        url = (Path(log_dir).absolute() / DIRECTORY).as_uri()
    elif not url:
        url = below(diskless_url)
    return RemoteStorageConfig(
        url=url,
        beside_logs=beside_logs,
        storage=storage,
        layout=AivenLayout(),
        upload_bytes_per_second=None,
        tiered=tiered,
    )


def below(diskless_url: str) -> str:
    """The address of remote segments in a bucket that has diskless topics too."""
    if parse_url(diskless_url).scheme == "memory":
        return diskless_url
    return f"{diskless_url.rstrip('/')}/{BELOW_DISKLESS}"


def _aiven(tiered: TieredSettings, storage: StorageSettings) -> RemoteStorageConfig:
    found = plugin_storage(tiered.storage_texts, storage, tiered.storage_prefix)
    changed = replace(
        tiered,
        upload_part_bytes=_given(found.part_bytes, tiered.upload_part_bytes),
        cache_bytes_max=_given(found.cache_bytes, tiered.cache_bytes_max),
        prefetch_bytes_max=_given(found.prefetch_bytes, tiered.prefetch_bytes_max),
    )
    return RemoteStorageConfig(
        url=found.url,
        beside_logs=False,
        storage=found.storage,
        layout=found.layout,
        upload_bytes_per_second=found.upload_bytes_per_second,
        tiered=changed,
    )


def _given(value: int | None, otherwise: int) -> int:
    return otherwise if value is None else value


def _local_tiered(tiered: TieredSettings, storage: StorageSettings) -> RemoteStorageConfig:
    prefix = tiered.storage_prefix
    given = typed(tiered.storage_texts, _LOCAL_FACTS, prefix)
    directory = given["dir"]
    if not directory or not Path(directory).is_absolute():
        raise ConfigError(f"{prefix}dir must be the absolute path of a directory with {_CLASS}")
    if given["delete.on.close"] or not given["delete.enable"]:
        raise ConfigError(f"{prefix}delete.on.close=true and delete.enable=false are not supported")
    return RemoteStorageConfig(
        url=Path(directory).as_uri(),
        beside_logs=False,
        storage=storage,
        layout=LocalTieredLayout(),
        upload_bytes_per_second=None,
        tiered=tiered,
    )
