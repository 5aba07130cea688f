"""A broker that follows metadata creates nothing for diskless partitions."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from skylog.broker.metadata.followers import PartitionFollower
from skylog.controller.image import ClusterImage, Delta
from skylog.controller.image.topics import NO_COORDINATOR, Partition
from skylog.kernel.ids import Uuid
from skylog.wire.messages.topic_record import TopicRecord

TOPIC = Uuid(b"0123456789abcdef")


class Recorder:
    """Stands for every part of a broker, and records its calls."""

    def __init__(self) -> None:
        self.assigned: list[tuple[str, int]] = []

    def assign(self, topic: str, index: int, *_: Any) -> None:
        self.assigned.append((topic, index))

    def __getattr__(self, name: str) -> Any:
        return lambda *_: ()


@pytest.mark.parametrize("leader", [1, 2], ids=["as leader", "as follower"])
@pytest.mark.parametrize("coordinator", [0, NO_COORDINATOR], ids=["diskless", "classic"])
def test_no_log_and_no_fetcher_for_diskless_partitions(leader: int, coordinator: int) -> None:
    # MRF-52: both ways, as leader and as follower.
    image, delta, parts = ClusterImage(), Delta(), Recorder()
    state = Partition(
        (1, 2), (Uuid(16),) * 2, (1, 2), leader, 0, 0, diskless_coordinator=coordinator
    )
    for record in (TopicRecord("foo", TOPIC), state.to_record(TOPIC, 0)):
        image.apply(record, delta)
    services: Any = SimpleNamespace(
        image=image,
        replicas=parts,
        groups=parts,
        configs=parts,
        traffic=parts,
        diskless=parts,
        settings=SimpleNamespace(node=SimpleNamespace(node_id=1)),
    )
    PartitionFollower(services).metadata_changed(image, delta)
    assert parts.assigned == ([] if coordinator == 0 else [("foo", 0)])
