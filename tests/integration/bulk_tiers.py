"""One broker with a diskless topic of all kinds of records, whose tiers a test moves by hand."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

from skylog.bulk import bucket as bucket_reading
from skylog.client.bulk import Split
from skylog.testing import Broker
from skylog.tiered.configuration import LOCAL_TIERED
from skylog.tiered.segments import RemoteSegment, TopicIdPartition
from skylog.wire.batch import split_batches
from tests.consolidating import consolidating_broker
from tests.integration.broker_client import Client
from tests.integration.tiers_by_hand import assembled, copied_by_hand
from tests.waiting import until

# Segments that are never full: nothing moves by itself.
TOPIC = {"diskless.enable": "true", "remote.storage.enable": "true", "retention.ms": "-1"}
LAYOUTS = ("aiven", "kafka-local")


@contextmanager
def still_broker(directory: Path, layout: str = "aiven", **more: str) -> Iterator[Broker]:
    """It prunes nothing within a test."""
    settings = {"diskless_tiering_prune_delay_ms": "3600000", **more}
    for name in ("objects", "segments"):
        (directory / name).mkdir()
    if layout == "kafka-local":
        settings["remote_log_storage_manager_class_name"] = LOCAL_TIERED
        settings["rsm_config_dir"] = str(directory / "segments")
    else:
        settings["tiered_storage_url"] = (directory / "segments").as_uri()
    with consolidating_broker(directory / "objects", **settings) as running:
        yield running


def key_of(broker: Broker, topic: str, index: int) -> TopicIdPartition:
    found = broker.node.image.topic(topic)
    assert found is not None
    return TopicIdPartition(found.topic_id, index)


def batches_of(broker: Broker, topic: str, index: int, start: int, end: int) -> list[bytes]:
    """Whole batches from ``start`` on, up to the one that has the offset before ``end``."""
    found: list[bytes] = []
    offset = start
    with Client(broker.bootstrap) as client:
        while offset < end:
            answer = client.fetch(topic, offset, index)
            assert answer.error_code == 0, answer
            for one in split_batches(answer.records):
                if one.last_offset >= offset and offset < end:
                    found.append(bytes(one.buffer))
                    offset = one.next_offset
    return found


def tier(broker: Broker, topic: str, index: int, start: int, end: int) -> RemoteSegment:
    """Copy all batches from ``start`` on, up to the one before ``end``, to a tiered segment."""
    parts: Any = broker.node._services.tiered
    key = key_of(broker, topic, index)
    batches = batches_of(broker, topic, index, start, end)
    with tempfile.TemporaryDirectory() as folder:
        segment, files = assembled(Path(folder), key, topic, start, batches)
        state = broker.node.image.topic(topic).partitions[index]  # type: ignore[union-attr]
        segment = replace(segment, copier_epoch=state.leader_epoch)
        broker.run(copied_by_hand(parts, segment, files, finish=True))
    until(lambda: (log := parts.logs.get(key)) is not None and log.has(0, start))
    return segment


def prune(broker: Broker, topic: str, index: int, offset: int) -> None:
    """The coordinator forgets the WAL batches below ``offset``."""
    plane = broker.node._services.diskless.plane
    (result,) = broker.run(plane.prune_to([(*key_of(broker, topic, index), offset)]))
    assert (result.error, result.wal_start_offset) == (0, offset)


def tier_and_prune(broker: Broker, topic: str, ends: dict[int, list[int]]) -> dict[int, int]:
    """A segment up to about each offset, pruned up to the last but one; where the WAL begins."""
    starts = {}
    for index, bounds in ends.items():
        start, pruned = 0, 0
        for end in bounds:
            pruned, start = start, tier(broker, topic, index, start, end).end_offset + 1
        prune(broker, topic, index, pruned)
        starts[index] = pruned
    return starts


def without_wal(directory: Path) -> None:
    """What of the WAL is not pruned is needed no more, either."""
    shutil.rmtree(directory / "objects" / "wal")


@contextmanager
def only_buckets() -> Iterator[None]:
    """Nothing may be fetched from brokers, by bulk readers of this process."""

    def fetch(_self: object, split: Split) -> None:
        raise AssertionError(f"{split} is fetched from brokers")

    with mock.patch.object(bucket_reading.ClusterBrokers, "fetch", fetch):
        yield
