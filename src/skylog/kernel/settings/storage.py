"""Settings of the object storage behind ``diskless.storage.url``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from skylog.kernel.secret import Secret
from skylog.kernel.settings.fields import setting

# name, type, default, allowed values; the same notation as Kafka's facts.
FACTS: Final[tuple[tuple[str, str, str | None, str], ...]] = (
    ("diskless.storage.file.sync", "BOOLEAN", "true", ""),
    ("diskless.storage.s3.endpoint", "STRING", "", ""),
    ("diskless.storage.s3.region", "STRING", "", ""),
    ("diskless.storage.s3.path.style", "BOOLEAN", "true", ""),
    ("diskless.storage.s3.access.key.id", "STRING", "", ""),
    ("diskless.storage.s3.secret.access.key", "PASSWORD", None, ""),
    ("diskless.storage.s3.session.token", "PASSWORD", None, ""),
    ("diskless.storage.s3.credentials.file", "STRING", "", ""),
    ("diskless.storage.s3.credentials.profile", "STRING", "default", ""),
    ("diskless.storage.gcs.endpoint", "STRING", "", ""),
    ("diskless.storage.gcs.credentials.file", "STRING", "", ""),
    ("diskless.storage.azure.endpoint", "STRING", "", ""),
    ("diskless.storage.azure.account.name", "STRING", "", ""),
    ("diskless.storage.azure.account.key", "PASSWORD", None, ""),
    ("diskless.storage.credentials.reload.ms", "LONG", "60000", "[1000,...]"),
    ("diskless.storage.ca.file", "STRING", "", ""),
    ("diskless.storage.request.timeout.ms", "INT", "30000", "[1,...]"),
    ("diskless.storage.retries", "INT", "5", "[0,...]"),
    ("diskless.storage.retry.backoff.ms", "INT", "50", "[0,...]"),
    ("diskless.storage.retry.backoff.max.ms", "INT", "5000", "[0,...]"),
    ("diskless.storage.max.concurrent.requests", "INT", "64", "[1,...]"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageSettings:
    """Object storage behind diskless.storage.url.

    Empty settings of a cloud are taken from the environment or the machine's role.
    """

    file_sync: bool = setting(
        "diskless.storage.file.sync",
        "Whether a directory's objects, and the metadata of coordinators without followers, are "
        "synced to disk before they count as stored. If false, a crash of the machine (not of "
        "skylog alone) may lose acknowledged records, as with Kafka's own default.",
    )
    s3_endpoint: str = setting(
        "diskless.storage.s3.endpoint",
        "Address of an S3 server other than Amazon's, as https://host:port.",
    )
    s3_region: str = setting("diskless.storage.s3.region", "Region of the bucket.")
    s3_path_style: bool = setting(
        "diskless.storage.s3.path.style",
        "Whether the bucket is in the path (host/bucket) rather than in the host name.",
    )
    s3_access_key_id: str = setting(
        "diskless.storage.s3.access.key.id",
        "Access key; empty uses diskless.storage.s3.credentials.file, else AWS_* variables or the"
        " machine's role.",
    )
    s3_secret_access_key: Secret | None = setting(  # noqa: RUF009 - makes a field
        "diskless.storage.s3.secret.access.key",
        "Secret of diskless.storage.s3.access.key.id.",
    )
    s3_session_token: Secret | None = setting(  # noqa: RUF009 - makes a field
        "diskless.storage.s3.session.token",
        "Session token that goes with diskless.storage.s3.access.key.id, if it needs one.",
    )
    s3_credentials_file: str = setting(
        "diskless.storage.s3.credentials.file",
        "File with aws_access_key_id, aws_secret_access_key and aws_session_token, reloaded every "
        "diskless.storage.credentials.reload.ms.",
    )
    s3_credentials_profile: str = setting(
        "diskless.storage.s3.credentials.profile",
        "Section of diskless.storage.s3.credentials.file.",
    )
    gcs_endpoint: str = setting(
        "diskless.storage.gcs.endpoint",
        "Address of a server other than Google's; it is used without credentials unless there is a"
        " diskless.storage.gcs.credentials.file.",
    )
    gcs_credentials_file: str = setting(
        "diskless.storage.gcs.credentials.file",
        "Service account key file; empty uses the environment or the machine's account.",
    )
    azure_endpoint: str = setting(
        "diskless.storage.azure.endpoint",
        "Address of a Blob service other than the account's own, as https://host:port/account.",
    )
    azure_account_name: str = setting(
        "diskless.storage.azure.account.name", "Storage account of the container."
    )
    azure_account_key: Secret | None = setting(  # noqa: RUF009 - makes a field
        "diskless.storage.azure.account.key",
        "Key of the account; empty uses AZURE_* variables or the machine's identity.",
    )
    credentials_reload_ms: int = setting(
        "diskless.storage.credentials.reload.ms",
        "How long credentials from a file are used before the file is read again.",
    )
    ca_file: str = setting(
        "diskless.storage.ca.file",
        "PEM file of a private authority that signed the server's certificate.",
    )
    request_timeout_ms: int = setting(
        "diskless.storage.request.timeout.ms", "Time-out of one attempt of a request."
    )
    retries: int = setting("diskless.storage.retries", "How often a failed request is retried.")
    retry_backoff_ms: int = setting(
        "diskless.storage.retry.backoff.ms",
        "Upper limit of the random pause before the first retry; it doubles with each retry.",
    )
    retry_backoff_ms_max: int = setting(
        "diskless.storage.retry.backoff.max.ms", "Longest pause before a retry."
    )
    requests_max: int = setting(
        "diskless.storage.max.concurrent.requests",
        "Maximum number of concurrent requests to the storage.",
    )
