"""After a restore every leader epoch is lifted once, above those used since the backup."""

from __future__ import annotations

from pathlib import Path

import pytest

from skylog.controller.lifting import EpochFloor
from skylog.controller.requests import LiftEpochs, Loaded
from skylog.diskless.files.restore import EPOCH_FLOOR, LeaderEpochs, read_epoch_floor
from skylog.kernel.errors import StorageError
from skylog.kernel.ids import Uuid
from skylog.wire.batch import split_batches
from skylog.wire.messages.partition_record import PartitionRecord
from skylog.wire.messages.topic_record import TopicRecord
from skylog.wire.metadata_records import encode_metadata
from skylog.wire.records import encode_batch
from tests.unit.controller.support import Bench, topic


def epochs(bench: Bench) -> dict[tuple[str, int], int]:
    return {
        (found.name, index): partition.leader_epoch
        for found in bench.machine.state.image.topics.by_id.values()
        for index, partition in found.partitions.items()
    }


def restored(bench: Bench, floor: int) -> Bench:
    """The same log under a controller that was restored."""
    ids = frozenset(bench.machine.state.image.topics.by_id)
    again = Bench(epoch_floor=EpochFloor(floor, ids))
    again.machine.state.image.topics.by_id.clear()
    for offset, record in enumerate(bench.log):
        again.machine.apply(record, offset)
    again.log = list(bench.log)
    return again


def made() -> Bench:
    bench = Bench(brokers=2)
    bench.create(topic("a", partitions=3), topic("b", partitions=1))
    return bench


def test_a_controller_that_was_not_restored_lifts_nothing() -> None:
    bench = made()
    before = epochs(bench)
    bench.run(Loaded())
    assert epochs(bench) == before


def test_every_epoch_is_lifted_once() -> None:
    bench = made()
    before = epochs(bench)
    again = restored(bench, 1_000_000)
    again.run(Loaded())
    lifted = epochs(again)
    assert lifted == {key: epoch + 1_000_000 for key, epoch in before.items()}
    for found in again.machine.state.image.topics.by_id.values():
        old = bench.machine.state.image.topics.by_id[found.topic_id]
        for index, partition in found.partitions.items():
            assert partition.replicas == old.partitions[index].replicas
            assert partition.leader == old.partitions[index].leader
            assert partition.partition_epoch == old.partitions[index].partition_epoch + 1
    again.run(Loaded())  # a later failover, still with the file of the restore
    assert epochs(again) == lifted
    again.create(topic("new"))
    again.run(Loaded())
    assert epochs(again) == {**lifted, ("new", 0): 0}


def test_many_partitions_are_lifted_in_steps_across_failovers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One batch of records holds only so many."""
    monkeypatch.setattr("skylog.controller.lifting._PARTITIONS_PER_STEP", 3)
    again = restored(made(), 1_000_000)
    again.run(Loaded())
    assert sum(epoch >= 1_000_000 for epoch in epochs(again).values()) == 3
    assert any(isinstance(timer, LiftEpochs) for timer in requests_of(again))
    again.run(Loaded())  # another controller goes on
    assert all(epoch >= 1_000_000 for epoch in epochs(again).values())
    assert again.machine.handle(LiftEpochs(), again.now_ms).records == []


def requests_of(bench: Bench) -> list[object]:
    return [getattr(timer, "request", timer) for timer in bench.timers.values()]


def test_what_a_restore_writes_is_read(tmp_path: Path) -> None:
    assert read_epoch_floor(tmp_path) is None
    noted = LeaderEpochs()
    ids = [Uuid(bytes([n]) * 16) for n in range(3)]
    values = [encode_metadata(TopicRecord(f"t{n}", id_)) for n, id_ in enumerate(ids)]
    noted.note(split_batches(encode_batch([(None, value) for value in values], timestamp=0)))
    (tmp_path / EPOCH_FLOOR).write_text(noted.text)
    assert read_epoch_floor(tmp_path) == (1_000_000, frozenset(ids))
    (tmp_path / EPOCH_FLOOR).write_text("garbage")
    with pytest.raises(StorageError):
        read_epoch_floor(tmp_path)


@pytest.mark.parametrize(
    ("highest", "floor"), [(0, 1_000_000), (999_999, 1_000_000), (1_000_000, 2_000_000)]
)
def test_a_restore_of_a_restored_cluster_lifts_further(highest: int, floor: int) -> None:
    noted = LeaderEpochs()
    for epoch in (3, highest, 1):
        value = encode_metadata(PartitionRecord(leader_epoch=epoch))
        noted.note(split_batches(encode_batch([(None, value)], timestamp=0)))
    assert noted.floor == floor
