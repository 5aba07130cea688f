"""Brokers with tiered storage: Kafka with its own LocalTieredStorage, and skylog with the same."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.interop.support import Node, start_kafka, start_skylog

LOCAL_TIERED_STORAGE = "org.apache.kafka.server.log.remote.storage.LocalTieredStorage"


def tiered(directory: Path) -> dict[str, str]:
    """The settings of both; ``remote.log.storage.manager.class.path`` would load a class twice."""
    return {
        "remote.log.storage.system.enable": "true",
        "remote.log.storage.manager.class.name": LOCAL_TIERED_STORAGE,
        "rsm.config.dir": str(directory / "remote"),
        "remote.log.metadata.manager.listener.name": "PLAINTEXT",
        "rlmm.config.remote.log.metadata.topic.replication.factor": "1",
        "rlmm.config.remote.log.metadata.topic.min.isr": "1",
        "rlmm.config.remote.log.metadata.topic.num.partitions": "5",
        "remote.log.manager.task.interval.ms": "500",
        "log.retention.check.interval.ms": "500",
        "log.initial.task.delay.ms": "500",
        "log.segment.delete.delay.ms": "0",
        "transaction.state.log.num.partitions": "4",
    }


def start_tiered_kafka(directory: Path, settings: Mapping[str, str] | None = None) -> Node:
    return start_kafka(directory, {**tiered(directory), **(settings or {})})


def start_tiered_skylog(directory: Path, settings: Mapping[str, str] | None = None) -> Node:
    return start_skylog(directory, {**tiered(directory), **(settings or {})})


@contextmanager
def tiered_pair(ours: Path, kafkas: Path) -> Iterator[tuple[Node, Node]]:
    """A skylog, which must not end by itself, and a Kafka."""
    first = start_tiered_skylog(ours)
    with first.process:
        second = start_tiered_kafka(kafkas)
        with second.process:
            yield first, second
        assert first.process.alive
