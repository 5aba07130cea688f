"""Kafka's own tool reads the local segments of diskless topics."""

from __future__ import annotations

import re
import threading
from pathlib import Path

import pytest
from confluent_kafka import Producer

from skylog.testing import Broker
from tests.integration.diskless_support import create_topic
from tests.interop.test_dump_log import COMPLAINT, dump, jars

__all__ = ["jars"]
pytestmark = pytest.mark.interop

RECORDS = 600
SECONDS_MAX = 60.0


def test_local_segments_are_kafkas(jars: Path, tmp_path: Path) -> None:
    settings = {"diskless.local.segments.enable": "true", "log.level": "FATAL"}
    with Broker(settings, directory=tmp_path) as broker:
        create_topic(broker.bootstrap, "t")
        for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
            producer = Producer(
                {
                    "bootstrap.servers": broker.bootstrap,
                    "compression.type": codec,
                    "enable.idempotence": True,
                    "log_level": 0,
                }
            )
            for number in range(RECORDS // 5):
                producer.produce("t", b"%s %d" % (codec.encode(), number))
            assert producer.flush(SECONDS_MAX) == 0
        (one,) = broker.node._services.diskless.local.partitions  # type: ignore[union-attr]
        pause = threading.Event()
        for _ in range(int(SECONDS_MAX * 100)):
            if one.following and one.end == RECORDS:
                break
            pause.wait(0.01)
        assert one.end == RECORDS

    directory = tmp_path / "diskless-local" / "t-0"
    logs = sorted(directory.glob("*.log"))
    out = dump(jars, "--deep-iteration", "--print-data-log", "--files", ",".join(map(str, logs)))
    assert not COMPLAINT.search(out)
    offsets = [int(found) for found in re.findall(r"^\| offset: (\d+) ", out, re.M)]
    assert offsets == list(range(RECORDS))
    assert "payload: zstd 119" in out
    for suffix in ("index", "timeindex"):
        found = sorted(directory.glob(f"*.{suffix}"))
        checked = dump(jars, "--index-sanity-check", "--files", ",".join(map(str, found)))
        assert not COMPLAINT.search(checked)
