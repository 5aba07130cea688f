"""The bucket, as bulk readers and writers access it: at the address that a broker returns."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from skylog.kernel.errors import ConfigError
from skylog.kernel.settings.definitions import BROKER
from skylog.kernel.settings.fields import bind, bound
from skylog.kernel.settings.layers import ENVIRONMENT_PREFIX, environment_name
from skylog.kernel.settings.storage import StorageSettings
from skylog.objects.open import open_store, parse_url
from skylog.objects.store import ObjectStore

STORAGE_URL = "diskless.storage.url"
TIERED_URL = "tiered.storage.url"


def storage_settings(
    options: Mapping[str, str], environ: Mapping[str, str] | None = None
) -> StorageSettings:
    """From ``diskless.storage.*`` options, else from SKYLOG_* variables as a broker's.

    The rest comes from the cloud's own variables and the machine's role.
    """
    known = {setting.name for setting in bound(StorageSettings).values()}
    unknown = sorted(options.keys() - known - {STORAGE_URL, TIERED_URL})
    if unknown:
        raise ConfigError(
            f"unknown storage options {', '.join(unknown)}; allowed are {', '.join(sorted(known))}"
        )
    variables = os.environ if environ is None else environ
    given = {
        environment_name(name): text
        for name, text in variables.items()
        if name.startswith(ENVIRONMENT_PREFIX)
    } | dict(options)
    values = {}
    for name in known:
        key = BROKER[name]
        values[name] = key.parse(given[name]) if name in given else key.default
    return bind(StorageSettings, values)


def is_reachable(url: str | None) -> bool:
    """Whether processes other than the broker can read it."""
    return url is not None and parse_url(url).scheme != "memory"


def open_bulk_store(url: str, options: Mapping[str, str]) -> ObjectStore:
    """The store at the address that a broker returned, or at the one in the options."""
    return _open(options.get(STORAGE_URL) or url, options, STORAGE_URL)


def open_tiered_store(url: str, storage_url: str, options: Mapping[str, str]) -> ObjectStore:
    """The store of tiered segments. If it is below that of diskless topics, which the options say
    is mounted elsewhere, then so is this."""
    moved, inside = options.get(STORAGE_URL), f"{storage_url.rstrip('/')}/"
    if moved and url.startswith(inside):
        url = f"{moved.rstrip('/')}/{url.removeprefix(inside)}"
    address = options.get(TIERED_URL) or url
    if not is_reachable(address):
        raise ConfigError(f"the tiered segments at {address} can only be read by their brokers")
    return _open(address, options, TIERED_URL)


def _open(address: str, options: Mapping[str, str], setting: str) -> ObjectStore:
    where = parse_url(address)
    if where.scheme == "file" and not Path(where.path).is_dir():
        raise ConfigError(
            f"the topic's storage {address} is not a directory on this machine;"
            f" set {setting} to where it is mounted (reads may go through the brokers instead)"
        )
    return open_store(address, storage_settings(options))
