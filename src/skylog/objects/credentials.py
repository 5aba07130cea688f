"""S3 credentials from a file that another program renews."""

from __future__ import annotations

import configparser
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final

from skylog.kernel.errors import ConfigError, StorageError
from skylog.kernel.limits import SETTINGS_FILE_BYTES_MAX
from skylog.kernel.settings.storage import StorageSettings

if TYPE_CHECKING:
    from obstore.store import S3Credential

# The library requests new credentials when the old ones expire within this time.
ASKED_BEFORE_EXPIRY: Final = timedelta(minutes=5)


def read_credentials(path: Path, profile: str) -> tuple[str, str, str | None]:
    """Key, secret and session token of one section of a file in AWS's format."""
    try:
        with path.open(encoding="utf-8") as file:
            text = file.read(SETTINGS_FILE_BYTES_MAX)
        parser = configparser.ConfigParser(interpolation=None, default_section="")
        parser.read_string(text)
        section = parser[profile]
        key = section["aws_access_key_id"].strip()
        secret = section["aws_secret_access_key"].strip()
    except OSError as error:
        raise StorageError(f"cannot read credentials from {path}: {error.strerror}") from error
    except KeyError as error:
        raise StorageError(f"{path} has no {error} (profile {profile})") from error
    except (configparser.Error, UnicodeDecodeError):
        # Without the cause: a parser's message may quote the line, and so a secret.
        raise StorageError(f"{path} is not a credentials file") from None
    return key, secret, section.get("aws_session_token")


def file_credentials(path: Path, profile: str, reload_ms: int) -> Callable[[], S3Credential]:
    """Reads the file again after ``reload_ms``.

    While the file cannot be read, for instance because it is being replaced, the last good
    credentials stay in use.
    """
    last = read_credentials(path, profile)

    def provide() -> S3Credential:
        nonlocal last
        with suppress(StorageError):
            last = read_credentials(path, profile)
        key, secret, token = last
        return {
            "access_key_id": key,
            "secret_access_key": secret,
            "token": token,
            "expires_at": datetime.now(UTC)
            + ASKED_BEFORE_EXPIRY
            + timedelta(milliseconds=reload_ms),
        }

    return provide


def s3_credentials(settings: StorageSettings) -> Callable[[], S3Credential] | None:
    """The settings' credentials; None: from the environment or the machine."""
    if settings.s3_access_key_id:
        secret = settings.s3_secret_access_key
        if secret is None:
            raise ConfigError(
                "diskless.storage.s3.access.key.id needs diskless.storage.s3.secret.access.key"
            )
        token = settings.s3_session_token
        fixed: S3Credential = {
            "access_key_id": settings.s3_access_key_id,
            "secret_access_key": secret.reveal(),
            "token": token.reveal() if token else None,
            "expires_at": None,
        }
        return lambda: fixed
    if settings.s3_credentials_file:
        return file_credentials(
            Path(settings.s3_credentials_file),
            settings.s3_credentials_profile,
            settings.credentials_reload_ms,
        )
    return None
