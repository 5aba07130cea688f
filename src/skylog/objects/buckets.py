"""Opens buckets: from ``diskless.storage.*`` to the library's stores."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final

from obstore.exceptions import BaseError
from obstore.store import AzureStore, GCSStore, S3Store

from skylog.kernel.errors import ConfigError
from skylog.kernel.executor import ThreadExecutor
from skylog.kernel.limits import PEM_BYTES_MAX
from skylog.kernel.settings.storage import StorageSettings
from skylog.objects.credentials import s3_credentials
from skylog.objects.remote import Bucket, RemoteStore

if TYPE_CHECKING:
    from obstore.store import (
        AzureConfig,
        ClientConfig,
        GCSConfig,
        GCSCredential,
        RetryConfig,
        S3Config,
    )

# Retries are ours (``retrying``), which has a budget and knows which failures are ambiguous.
# They read the files that are put; a disk is faster than a bucket.
_THREADS: Final = 4
NO_RETRIES: Final[RetryConfig] = {"max_retries": 0}


def open_bucket(
    scheme: str, bucket: str, prefix: str, settings: StorageSettings, part_bytes: int
) -> RemoteStore:
    """A bucket of ``scheme``; raises ConfigError for invalid settings."""
    opened: dict[str, Callable[[str, str, StorageSettings], Bucket]]
    opened = {"s3": open_s3, "gs": open_gcs, "az": open_azure}
    for name in ("s3", "gcs", "azure"):
        endpoint: str = getattr(settings, f"{name}_endpoint")
        if endpoint and not endpoint.startswith(("http://", "https://")):
            raise ConfigError(
                f"Invalid value {endpoint} for configuration diskless.storage.{name}.endpoint:"
                " allowed: http://host:port or https://host:port"
            )
    try:
        connected = opened[scheme](bucket, prefix, settings)
    except (BaseError, ValueError) as error:
        why = str(error).partition("\n")[0]
        raise ConfigError(f"diskless.storage.url={scheme}://{bucket}: {why}") from None
    threads = ThreadExecutor(_THREADS, "uploads")
    return RemoteStore(connected, threads, part_bytes=part_bytes, on_close=threads.close)


def open_s3(bucket: str, prefix: str, settings: StorageSettings) -> S3Store:
    config: S3Config = {"virtual_hosted_style_request": not settings.s3_path_style}
    if settings.s3_endpoint:
        config["endpoint"] = settings.s3_endpoint
    if settings.s3_region:
        config["region"] = settings.s3_region
    return S3Store(
        bucket,
        prefix=prefix or None,
        config=config,
        client_options=_client(settings, settings.s3_endpoint),
        retry_config=NO_RETRIES,
        credential_provider=s3_credentials(settings),
    )


def open_gcs(bucket: str, prefix: str, settings: StorageSettings) -> GCSStore:
    config: GCSConfig = {}
    credentials = None
    if settings.gcs_endpoint:
        config["base_url"] = settings.gcs_endpoint
    if settings.gcs_credentials_file:
        config["service_account"] = settings.gcs_credentials_file
    elif settings.gcs_endpoint:
        # The library's own option to skip signatures still requests a token from the machine.
        credentials = _no_credentials
    return GCSStore(
        bucket,
        prefix=prefix or None,
        config=config,
        client_options=_client(settings, settings.gcs_endpoint),
        retry_config=NO_RETRIES,
        credential_provider=credentials,
    )


def open_azure(container: str, prefix: str, settings: StorageSettings) -> AzureStore:
    config: AzureConfig = {}
    if settings.azure_endpoint:
        config["endpoint"] = settings.azure_endpoint
    if settings.azure_account_name:
        config["account_name"] = settings.azure_account_name
    if settings.azure_account_key:
        config["account_key"] = settings.azure_account_key.reveal()
    return AzureStore(
        container,
        prefix=prefix or None,
        config=config,
        client_options=_client(settings, settings.azure_endpoint),
        retry_config=NO_RETRIES,
    )


def _no_credentials() -> GCSCredential:
    return {"token": "", "expires_at": None}


def _client(settings: StorageSettings, endpoint: str) -> ClientConfig:
    options: ClientConfig = {
        "timeout": timedelta(milliseconds=settings.request_timeout_ms),
        "connect_timeout": timedelta(milliseconds=min(5000, settings.request_timeout_ms)),
        # Only if the operator configured it: an address without TLS exposes every byte.
        "allow_http": endpoint.startswith("http://"),
    }
    if settings.ca_file:
        options["root_certificate"] = _certificate(Path(settings.ca_file))
    return options


def _certificate(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(PEM_BYTES_MAX)
    except OSError as error:
        raise ConfigError(f"diskless.storage.ca.file={path}: {error.strerror}") from error
