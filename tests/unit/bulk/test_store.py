"""The bucket of bulk readers: settings from options, then the environment, then the defaults."""

from __future__ import annotations

from pathlib import Path

import pytest

from skylog.bulk.store import (
    is_reachable,
    open_bulk_store,
    open_tiered_store,
    storage_settings,
)
from skylog.kernel.errors import ConfigError

ENDPOINT = "diskless.storage.s3.endpoint"


def test_options_come_before_the_environment() -> None:
    variables = {
        "SKYLOG_DISKLESS_STORAGE_S3_ENDPOINT": "http://from-environment:1",
        "SKYLOG_DISKLESS_STORAGE_S3_REGION": "eu",
        "SKYLOG_NODE_ID": "not ours",
        "OTHER": "x",
    }
    found = storage_settings({ENDPOINT: "http://from-option:1"}, variables)
    assert (found.s3_endpoint, found.s3_region) == ("http://from-option:1", "eu")
    assert found.s3_path_style is True
    assert storage_settings({}, {}).s3_endpoint == ""


def test_options_that_cannot_be_are_named() -> None:
    with pytest.raises(
        ConfigError, match=r"unknown storage options endpoint; allowed are diskless"
    ):
        storage_settings({"endpoint": "x"}, {})
    with pytest.raises(ConfigError, match=r"diskless\.storage\.retries"):
        storage_settings({"diskless.storage.retries": "many"}, {})


def test_a_store_in_memory_is_not_reachable() -> None:
    assert is_reachable("file:///tmp/x")
    assert is_reachable("s3://bucket/prefix")
    assert not is_reachable("memory://")
    assert not is_reachable(None)


async def test_an_address_of_ones_own_replaces_the_broker_s(tmp_path: Path) -> None:
    away = "file:///not/of/this/machine"
    with pytest.raises(ConfigError, match="machine is not a directory on this machine"):
        open_bulk_store(away, {})
    store = open_bulk_store(away, {"diskless.storage.url": tmp_path.as_uri()})
    await store.close()


async def test_tiered_segments_move_with_the_bucket_that_they_are_in(tmp_path: Path) -> None:
    (tmp_path / "tiered").mkdir()
    away = "file:///not/of/this/machine"
    mounted = {"diskless.storage.url": tmp_path.as_uri()}
    for inside in (f"{away}/tiered", f"{away}/"):
        await open_tiered_store(inside, away, mounted).close()
    # One beside it is where the brokers say, or where an option of its own does.
    with pytest.raises(ConfigError, match=r"set tiered\.storage\.url to where it is mounted"):
        open_tiered_store(f"{away}-else/tiered", away, mounted)
    given = {**mounted, "tiered.storage.url": (tmp_path / "tiered").as_uri()}
    await open_tiered_store(f"{away}-else/tiered", away, given).close()
    for nowhere in ("memory://", ""):
        with pytest.raises(ConfigError):
            open_tiered_store(nowhere, away, {})
