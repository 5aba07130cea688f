"""Segments of classic and of consolidated diskless topics are alike to Kafka's own tool."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.integration.broker_client import Client
from tests.integration.consolidation_support import (
    CONSOLIDATING,
    PER_SEGMENT,
    SEGMENTED,
    consolidating_broker,
    fill,
    until_covered,
)
from tests.interop.test_dump_log import COMPLAINT, dump, jars
from tests.interop.tiered import LOCAL_TIERED_STORAGE

__all__ = ["jars"]
pytestmark = pytest.mark.interop

KINDS = {
    "classic": {**SEGMENTED, "remote.storage.enable": "true"},
    "diskless": CONSOLIDATING,
}
SEGMENTS = 3


def renamed(directory: Path, topic: str) -> list[Path]:
    """Copies of a topic's files in the store, under the names that the tool expects."""
    copies = directory / topic
    copies.mkdir()
    for path in (directory / "remote").rglob(f"{topic}-0-*/*"):
        shutil.copy(path, copies / f"{path.name[:20]}{path.suffix}")
    return sorted(copies.iterdir())


def names(files: list[Path], suffix: str) -> str:
    found = [str(path) for path in files if path.suffix == suffix]
    assert len(found) == SEGMENTS, (suffix, files)
    return ",".join(found)


def test_kafka_reads_the_segments_and_the_metadata_of_both(jars: Path, tmp_path: Path) -> None:
    # ENG-49
    end = SEGMENTS * PER_SEGMENT
    settings = {
        "remote_log_storage_manager_class_name": LOCAL_TIERED_STORAGE,
        "rsm_config_dir": str(tmp_path / "remote"),
    }
    with (
        consolidating_broker(tmp_path / "data", **settings) as broker,
        Client(broker.bootstrap) as client,
    ):
        for topic, configs in KINDS.items():
            client.create(topic, configs=dict(configs))
            fill(client, topic, 0, end + 1)
            until_covered(broker, topic, end)
    for topic in KINDS:
        files = renamed(tmp_path, topic)
        out = dump(jars, "--deep-iteration", "--print-data-log", "--files", names(files, ".log"))
        assert not COMPLAINT.search(out), out
        assert out.count("| offset: ") == end
        for suffix in (".index", ".timeindex"):
            checked = dump(jars, "--index-sanity-check", "--files", names(files, suffix))
            assert not COMPLAINT.search(checked), checked
        assert not COMPLAINT.search(dump(jars, "--files", names(files, ".snapshot")))
    told = "".join(
        dump(jars, "--remote-log-metadata-decoder", "--files", str(path))
        for path in sorted((tmp_path / "data").glob("__remote_log_metadata-*/*.log"))
    )
    for topic in KINDS:
        assert told.count(f":{topic}-0,") == 2 * SEGMENTS, told
    assert told.count("COPY_SEGMENT_FINISHED") == len(KINDS) * SEGMENTS
