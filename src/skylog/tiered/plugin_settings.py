"""Settings of Aiven's plugin, ``rsm.config.*``: which are understood, and what they mean here.

Pure. A cluster that is taken over keeps its configuration. What would be stored otherwise than the
operator expects is refused; what only tunes the plugin (its metrics, pools and caches that do not
exist here) is accepted without effect.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Any, Final

from skylog.kernel.config import ConfigKey, ConfigType, Schema, parse
from skylog.kernel.errors import ConfigError
from skylog.kernel.limits import OBJECT_PART_BYTES_MIN
from skylog.kernel.settings.storage import StorageSettings
from skylog.kernel.validators import validator
from skylog.tiered.layout.aiven import CHUNK_SIZE_DEFAULT, CustomField
from skylog.tiered.layout.plan import AivenLayout

_STORAGE: Final = "io.aiven.kafka.tieredstorage.storage"
BACKENDS: Final = {
    f"{_STORAGE}.s3.S3Storage": "s3",
    f"{_STORAGE}.gcs.GcsStorage": "gcs",
    f"{_STORAGE}.azure.AzureBlobStorage": "azure",
    f"{_STORAGE}.filesystem.FileSystemStorage": "filesystem",
}
_CACHE: Final = "io.aiven.kafka.tieredstorage.fetch.cache"
_BOOLEAN, _INT, _LONG = ConfigType.BOOLEAN, ConfigType.INT, ConfigType.LONG
_STRING, _SECRET, _LIST = ConfigType.STRING, ConfigType.PASSWORD, ConfigType.LIST

# name, type, default, allowed values: those of the plugin, in Kafka's notation.
_CORE: Final[tuple[tuple[str, ConfigType, str | None, str], ...]] = (
    ("storage.backend.class", _STRING, None, ""),
    ("chunk.size", _INT, str(CHUNK_SIZE_DEFAULT), "[1,...,1073741823]"),
    ("compression.enabled", _BOOLEAN, "false", ""),
    ("compression.heuristic.enabled", _BOOLEAN, "false", ""),
    ("encryption.enabled", _BOOLEAN, "false", ""),
    ("key.prefix", _STRING, "", ""),
    ("key.prefix.mask", _BOOLEAN, "false", ""),
    ("segment.format", _STRING, "kafka", ""),
    ("upload.rate.limit.bytes.per.second", _INT, None, "[1048576,...,1000000000]"),
    ("custom.metadata.fields.include", _LIST, "", ""),
    ("metrics.num.samples", _INT, "2", "[1,...]"),
    ("metrics.recording.level", _STRING, "INFO", ""),
    ("metrics.sample.window.ms", _LONG, "30000", "[1,...]"),
    ("fetch.chunk.cache.class", _STRING, None, ""),
    ("fetch.chunk.cache.prefetch.max.size", _INT, None, "[0,...]"),
    *(
        (f"fetch.{cache}.cache.{name}", _LONG, None, "")
        for cache in ("chunk", "indexes", "manifest")
        for name in ("size", "retention.ms", "get.timeout.ms", "thread.pool.size")
    ),
)
_BACKEND: Final[Mapping[str, tuple[tuple[str, ConfigType, str | None, str], ...]]] = {
    "s3": (
        ("s3.bucket.name", _STRING, None, ""),
        ("s3.region", _STRING, "", ""),
        ("s3.endpoint.url", _STRING, "", ""),
        ("s3.path.style.access.enabled", _BOOLEAN, None, ""),
        ("s3.multipart.upload.part.size", _INT, None, "[5242880,...,2147483639]"),
        ("s3.api.call.timeout", _LONG, None, "[1,...]"),
        ("s3.api.call.attempt.timeout", _LONG, None, "[1,...]"),
        ("s3.legacy.md5.plugin.enabled", _BOOLEAN, "false", ""),
        ("s3.storage.class", _STRING, "STANDARD", ""),
        ("aws.access.key.id", _SECRET, None, ""),
        ("aws.secret.access.key", _SECRET, None, ""),
        ("aws.session.token", _SECRET, None, ""),
        ("aws.credentials.file", _STRING, "", ""),
        ("aws.certificate.check.enabled", _BOOLEAN, "true", ""),
        ("aws.checksum.check.enabled", _BOOLEAN, "false", ""),
    ),
    "gcs": (
        ("gcs.bucket.name", _STRING, None, ""),
        ("gcs.endpoint.url", _STRING, "", ""),
        ("gcs.credentials.default", _BOOLEAN, None, ""),
        ("gcs.credentials.path", _STRING, "", ""),
        ("gcs.resumable.upload.chunk.size", _INT, None, "[262144,...]"),
    ),
    "azure": (
        ("azure.container.name", _STRING, None, ""),
        ("azure.account.name", _STRING, "", ""),
        ("azure.account.key", _SECRET, None, ""),
        ("azure.endpoint.url", _STRING, "", ""),
        ("azure.upload.block.size", _INT, None, "[102400,...]"),
    ),
    "filesystem": (
        ("root", _STRING, None, ""),
        ("overwrite.enabled", _BOOLEAN, "false", ""),
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginStorage:
    """What the plugin's settings say; None where they say nothing."""

    url: str
    storage: StorageSettings
    layout: AivenLayout
    part_bytes: int | None
    upload_bytes_per_second: int | None
    cache_bytes: int | None
    prefetch_bytes: int | None


def plugin_storage(
    texts: Mapping[str, str], storage: StorageSettings, prefix: str
) -> PluginStorage:
    """From the names below ``prefix``; ConfigError with one sentence on what is wrong.

    ``storage`` has what the plugin has no names for: retries, a private authority.
    """
    backend_class = texts.get("storage.backend.class", "")
    backend = BACKENDS.get(backend_class)
    if backend is None:
        raise ConfigError(
            f"Invalid value {backend_class} for configuration {prefix}storage.backend.class:"
            f" allowed: {', '.join(BACKENDS)}"
        )
    facts = (*_CORE, *((f"storage.{name}", *rest) for name, *rest in _BACKEND[backend]))
    values = typed(texts, facts, prefix)
    _refuse(values, prefix)
    layout = AivenLayout(
        chunk_size=values["chunk.size"],
        custom_fields=_custom_fields(values["custom.metadata.fields.include"], prefix),
        key_prefix=values["key.prefix"],
    )
    below = {name: values[f"storage.{name}"] for name, *_ in _BACKEND[backend]}
    opened = {"s3": _s3, "gcs": _gcs, "azure": _azure, "filesystem": _filesystem}[backend]
    url, changed, part_bytes = opened(below, storage, prefix)
    return PluginStorage(
        url=_with_prefix(url, values["key.prefix"], prefix),
        storage=changed,
        layout=layout,
        part_bytes=part_bytes and max(part_bytes, OBJECT_PART_BYTES_MIN),
        upload_bytes_per_second=values["upload.rate.limit.bytes.per.second"],
        cache_bytes=_cache_bytes(values, prefix),
        prefetch_bytes=values["fetch.chunk.cache.prefetch.max.size"],
    )


def typed(
    texts: Mapping[str, str], facts: tuple[tuple[Any, ...], ...], prefix: str
) -> dict[str, Any]:
    """The values of all names of ``facts``; ConfigError for other names. No value is shown of
    those: it may be a secret under a mistyped name."""
    schema = Schema(
        ConfigKey(
            name=name,
            type=kind,
            default=None if default is None else parse(name, default, kind),
            validator=validator(allowed) if allowed else None,
        )
        for name, kind, default, allowed in facts
    )
    for name in texts:
        if name not in schema:
            near = ", ".join(prefix + other for other in schema.nearest(name))
            hint = f"similar known names: {near}" if near else "no known name is similar"
            raise ConfigError(f"Unknown setting {prefix}{name}: {hint}")
    try:
        return {
            name: key.parse(texts[name]) if texts.get(name) else key.default
            for name, key in schema.items()
        }
    except ConfigError as error:
        raise ConfigError(f"{error} (below {prefix})") from None


def _refuse(values: Mapping[str, Any], prefix: str) -> None:
    """What would make other objects than the operator expects."""
    reasons = {
        "encryption.enabled": "segments are not encrypted by this version",
        "compression.enabled": "segments are stored as they are; batches are compressed by"
        " producers or compression.type",
    }
    for name, why in reasons.items():
        if values[name]:
            raise ConfigError(f"{prefix}{name}=true is not supported: {why}")
    if values["segment.format"] != "kafka":
        raise ConfigError(f"{prefix}segment.format can only be kafka")
    if values.get("storage.s3.storage.class", "STANDARD") != "STANDARD":
        raise ConfigError(f"{prefix}storage.s3.storage.class can only be STANDARD")
    if values.get("storage.aws.certificate.check.enabled", True) is False:
        raise ConfigError(
            f"{prefix}storage.aws.certificate.check.enabled=false is not supported:"
            " name the authority in diskless.storage.ca.file"
        )


def _custom_fields(names: tuple[str, ...], prefix: str) -> tuple[CustomField, ...]:
    for name in names:
        if name not in CustomField.__members__:
            raise ConfigError(
                f"Invalid value {name} for configuration {prefix}custom.metadata.fields.include:"
                f" allowed: {', '.join(CustomField.__members__)}"
            )
    return tuple(sorted({CustomField[name] for name in names}))


def _cache_bytes(values: Mapping[str, Any], prefix: str) -> int | None:
    kind, size = values["fetch.chunk.cache.class"], values["fetch.chunk.cache.size"]
    if kind not in (None, f"{_CACHE}.MemoryChunkCache"):
        raise ConfigError(
            f"{prefix}fetch.chunk.cache.class={kind} is not supported: chunks are cached in memory"
            f" ({_CACHE}.MemoryChunkCache)"
        )
    if size is not None and size < 0:
        raise ConfigError(f"{prefix}fetch.chunk.cache.size must be a number of bytes")
    return size  # type: ignore[no-any-return]


def _s3(
    given: Mapping[str, Any], storage: StorageSettings, prefix: str
) -> tuple[str, StorageSettings, int | None]:
    bucket = _required(given, "s3.bucket.name", prefix)
    key = given["aws.access.key.id"]
    path_style = given["s3.path.style.access.enabled"]
    timeout = given["s3.api.call.attempt.timeout"]
    changed = replace(
        storage,
        s3_region=given["s3.region"],
        s3_endpoint=given["s3.endpoint.url"],
        # Without it the plugin's library decides by the address.
        s3_path_style=bool(given["s3.endpoint.url"]) if path_style is None else path_style,
        s3_access_key_id=key.reveal() if key else "",
        s3_secret_access_key=given["aws.secret.access.key"],
        s3_session_token=given["aws.session.token"],
        s3_credentials_file=given["aws.credentials.file"],
        request_timeout_ms=timeout or storage.request_timeout_ms,
    )
    return f"s3://{bucket}", changed, given["s3.multipart.upload.part.size"]


def _gcs(
    given: Mapping[str, Any], storage: StorageSettings, prefix: str
) -> tuple[str, StorageSettings, int | None]:
    bucket = _required(given, "gcs.bucket.name", prefix)
    changed = replace(
        storage,
        gcs_endpoint=given["gcs.endpoint.url"],
        gcs_credentials_file=given["gcs.credentials.path"],
    )
    return f"gs://{bucket}", changed, given["gcs.resumable.upload.chunk.size"]


def _azure(
    given: Mapping[str, Any], storage: StorageSettings, prefix: str
) -> tuple[str, StorageSettings, int | None]:
    container = _required(given, "azure.container.name", prefix)
    changed = replace(
        storage,
        azure_endpoint=given["azure.endpoint.url"],
        azure_account_name=given["azure.account.name"],
        azure_account_key=given["azure.account.key"],
    )
    return f"az://{container}", changed, given["azure.upload.block.size"]


def _filesystem(
    given: Mapping[str, Any], storage: StorageSettings, prefix: str
) -> tuple[str, StorageSettings, int | None]:
    root = PurePosixPath(_required(given, "root", prefix))
    if not root.is_absolute():
        raise ConfigError(f"{prefix}storage.root={root} must be an absolute path")
    return root.as_uri(), storage, None


def _required(given: Mapping[str, Any], name: str, prefix: str) -> str:
    if not given[name]:
        raise ConfigError(f"{prefix}storage.{name} is missing")
    return str(given[name])


def _with_prefix(url: str, key_prefix: str, prefix: str) -> str:
    """The plugin puts its prefix before the key as it is; here it is a part of the path."""
    if not key_prefix:
        return url
    if not key_prefix.endswith("/") or key_prefix.startswith("/") or "//" in key_prefix:
        raise ConfigError(
            f"{prefix}key.prefix={key_prefix} is not supported: it must end at a slash, such as"
            " segments/"
        )
    return f"{url}/{key_prefix.rstrip('/')}"
