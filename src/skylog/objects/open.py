"""From ``diskless.storage.url`` to a store that counts, limits and retries its requests."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from skylog.kernel.clock import Clock, SystemClock
from skylog.kernel.errors import ConfigError
from skylog.kernel.executor import ThreadExecutor
from skylog.kernel.limits import OBJECT_INLINE_BYTES_MAX, OBJECT_PART_BYTES
from skylog.kernel.rng import Random, system_random
from skylog.kernel.settings.storage import StorageSettings
from skylog.objects.files import Files, UnsyncedFiles
from skylog.objects.limited import LimitedStore
from skylog.objects.local import LocalStore
from skylog.objects.memory import MemoryStore
from skylog.objects.metered import FREE, MeteredStore, StoreStats
from skylog.objects.retrying import RetryingStore, RetryPolicy
from skylog.objects.store import ObjectStore

ALLOWED: Final = (
    "file:///directory, s3://bucket/prefix, gs://bucket/prefix, az://container/prefix or memory://"
)
REMOTE: Final = ("s3", "gs", "az")
_BUCKET: Final = re.compile(r"[a-z0-9][a-z0-9._-]{1,220}\Z", re.ASCII)
_SEGMENT: Final = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,99}\Z", re.ASCII)
# Waiting for a disk needs few threads, and concurrent syncs of one disk hardly gain from more.
_LOCAL_THREADS: Final = 8
_LOCAL_COPIES: Final = 4


@dataclass(frozen=True, slots=True)
class StorageUrl:
    """Where objects are: a directory, a bucket with a prefix, or memory."""

    scheme: str
    bucket: str
    prefix: str  # of a bucket, without leading or trailing slash
    path: str  # of a directory

    @property
    def is_remote(self) -> bool:
        """Whether requests cost money and round trips."""
        return self.scheme in REMOTE


def parse_url(text: str, setting: str = "diskless.storage.url") -> StorageUrl:
    """Parse the address of a store; raises ConfigError that names the setting."""
    try:
        parts = urlsplit(text)
    except ValueError:
        raise _bad(setting, text) from None
    if "@" in parts.netloc:
        # Not repeated: messages are logged, and this one may contain a secret.
        raise _bad(setting, f"{parts.scheme}://…@…", "without credentials")
    if parts.query or parts.fragment:
        raise _bad(setting, text)
    if parts.scheme == "memory" and not parts.path.strip("/"):
        return StorageUrl("memory", "", "", "")
    if parts.scheme == "file":
        path = unquote(parts.path)
        if parts.netloc or not path.startswith("/") or "\0" in path:
            raise _bad(setting, text)
        return StorageUrl("file", "", "", path)
    prefix = parts.path.strip("/")
    good_prefix = not prefix or all(map(_SEGMENT.match, prefix.split("/")))
    if parts.scheme not in REMOTE:
        raise _bad(setting, text)
    if not _BUCKET.match(parts.netloc) or not good_prefix:
        raise _bad(
            setting, text, "with letters, digits, . _ and - in the names, no capitals in a bucket's"
        )
    return StorageUrl(parts.scheme, parts.netloc, prefix, "")


def open_store(
    url: str,
    settings: StorageSettings,
    *,
    stats: StoreStats | None = None,
    clock: Clock | None = None,
    rng: Random | None = None,
    beside_logs: bool = False,
    part_bytes: int = OBJECT_PART_BYTES,
) -> ObjectStore:
    """The store behind ``url``. ``stats`` counts its requests, ``part_bytes`` is the part of a
    large object that is put at once.

    ``beside_logs``: the directory is on a disk whose page cache the event loop may wait for, as it
    does when it appends to logs. Other directories may be on another machine.
    """
    where = parse_url(url)
    counted = stats or StoreStats()
    if not where.is_remote:
        counted.prices = FREE
    clock, rng = clock or SystemClock(), rng or system_random()
    if where.is_remote:
        base = _open_remote(where, settings, part_bytes)
    else:
        base = _open_base(where, settings, clock, rng, beside_logs)
    metered = MeteredStore(base, counted)
    limited = LimitedStore(metered, settings.requests_max)
    return RetryingStore(limited, retry_policy(settings), clock=clock, rng=rng)


def retry_policy(settings: StorageSettings) -> RetryPolicy:
    """The retry settings in ``diskless.storage.*``."""
    return RetryPolicy(
        attempts_max=settings.retries + 1,
        # The library's own timeout fires first; this one covers what it does not see.
        attempt_seconds_max=settings.request_timeout_ms / 1000 * 2,
        pause_seconds=settings.retry_backoff_ms / 1000,
        pause_seconds_max=settings.retry_backoff_ms_max / 1000,
    )


def _open_base(
    where: StorageUrl, settings: StorageSettings, clock: Clock, rng: Random, beside_logs: bool
) -> ObjectStore:
    if where.scheme == "memory":
        return MemoryStore(clock)
    threads = ThreadExecutor(_LOCAL_THREADS, "objects")
    copies = ThreadExecutor(_LOCAL_COPIES, "object copies")
    inline = beside_logs and not settings.file_sync

    def close() -> None:
        threads.close()
        copies.close()

    store = LocalStore(
        Path(where.path),
        threads,
        clock=clock,
        rng=rng,
        files=Files() if settings.file_sync else UnsyncedFiles(),
        inline_bytes_max=OBJECT_INLINE_BYTES_MAX if inline else 0,
        on_close=close,
    )
    store.copies = copies
    return store


def _open_remote(where: StorageUrl, settings: StorageSettings, part_bytes: int) -> ObjectStore:
    # Imported here: a node without a bucket need not load the library.
    from skylog.objects.buckets import open_bucket  # noqa: PLC0415

    return open_bucket(where.scheme, where.bucket, where.prefix, settings, part_bytes)


def _bad(setting: str, text: str, how: str = "") -> ConfigError:
    allowed = f"{ALLOWED}, {how}" if how else ALLOWED
    return ConfigError(f"Invalid value {text} for configuration {setting}: {allowed}")
