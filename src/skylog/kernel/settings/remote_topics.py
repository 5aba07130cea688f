"""Kafka's rules for settings of tiered topics, in Kafka's words, and ours for diskless ones.

``local.*`` limits what is on a broker's disk, the settings without it limit local and remote data
together; a local limit of -2 stands for the total one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from skylog.kernel.config import Value, is_true
from skylog.kernel.errors import ConfigError

REMOTE_STORAGE: Final = "remote.storage.enable"
AS_TOTAL: Final = -2
SYSTEM_OFF: Final = (
    "Tiered Storage functionality is disabled in the broker. "
    "Topic cannot be configured with remote log storage."
)
SYSTEM_STILL_NEEDED: Final = (
    "You have to delete all topics with the property remote.storage.enable=true before disabling "
    "tiered storage cluster-wide"
)
_DELETE_ONLY: Final = (
    "Remote log storage only supports topics with cleanup.policy=delete or cleanup.policy being an"
    " empty list."
)
_WITHOUT_DELETING: Final = (
    "It is invalid to disable remote storage without deleting remote data. If you want to keep the"
    " remote data and turn to read only, please set "
    "`remote.storage.enable=true,remote.log.copy.disable=true`. If you want to disable remote "
    "storage and delete all remote data, please set "
    "`remote.storage.enable=false,remote.log.delete.on.disable=true`."
)
_DISKLESS_STAYS: Final = (
    "Remote storage of a diskless topic cannot be disabled: its older records are only in remote "
    "segments. To stop making more of them, set `remote.log.copy.disable=true`."
)


def check_remote(values: Mapping[str, Value], existing: Mapping[str, str], *, system: bool) -> None:
    """Check a topic's effective ``values``, given the overrides that it has so far; ConfigError."""
    if values[REMOTE_STORAGE]:
        if not system:
            raise ConfigError(SYSTEM_OFF)
        if tuple(values["cleanup.policy"]) not in ((), ("delete",)):
            raise ConfigError(_DELETE_ONLY)
        check_local_limits(values)
        if values["remote.log.copy.disable"]:
            _check_copy_disabled(values)
    elif was_remote(existing) and values["diskless.enable"]:
        raise ConfigError(_DISKLESS_STAYS)
    elif was_remote(existing) and not values["remote.log.delete.on.disable"]:
        raise ConfigError(_WITHOUT_DELETING)


def was_remote(overrides: Mapping[str, str]) -> bool:
    """Whether a topic with these overrides is remote; there is no broker-wide default."""
    return is_true(overrides.get(REMOTE_STORAGE))


def check_local_limits(values: Mapping[str, Value], prefix: str = "") -> None:
    """No local limit may be above the total one; ``prefix`` is that of a broker's settings."""
    bytes_total, ms_total = values[f"{prefix}retention.bytes"], values[f"{prefix}retention.ms"]
    if bytes_total > -1:
        _check_limit(values, f"{prefix}local.retention.bytes", f"{prefix}retention.bytes")
    if ms_total != -1:
        _check_limit(values, f"{prefix}local.retention.ms", f"{prefix}retention.ms")
    for unit in ("bytes", "ms"):
        _check_lag(values, prefix, unit)


def _check_limit(values: Mapping[str, Value], local: str, total: str) -> None:
    limit, whole = values[local], values[total]
    why = ""
    if limit == -1:
        why = f"Value must not be -1 as {total} value is set as {whole}."
    elif limit > whole and limit != AS_TOTAL:
        why = f"Value must not be more than {total} property value: {whole}"
    if why:
        raise ConfigError(f"Invalid value {limit} for configuration {local}: {why}")


def _check_lag(values: Mapping[str, Value], prefix: str, unit: str) -> None:
    """What is not remote yet must stay on disk, so that copying may lag so far and no further."""
    name, local = f"{prefix}remote.copy.lag.{unit}", f"{prefix}local.retention.{unit}"
    lag, kept = values[name], values[local]
    if kept == AS_TOTAL:
        kept = values[f"{prefix}retention.{unit}"]
    if kept >= 0 and lag > kept:
        raise ConfigError(
            f"Invalid value {lag} for configuration {name}: Value must not exceed {local} "
            f"(effective value: {kept})"
        )


def _check_copy_disabled(values: Mapping[str, Value]) -> None:
    for unit in ("bytes", "ms"):
        local, total = f"local.retention.{unit}", f"retention.{unit}"
        if values[local] not in (AS_TOTAL, values[total]):
            raise ConfigError(
                f"When `remote.log.copy.disable` is set to true, the `{local}` and `{total}` must"
                " be set to the identical value because there will be no more logs copied to the"
                " remote storage."
            )
