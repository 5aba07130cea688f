"""Which replicas may lead when none is in sync."""

from __future__ import annotations

from skylog.controller.image.topics import Partition
from skylog.controller.partition_change import PartitionChange, PartitionRules
from skylog.kernel.ids import ZERO_UUID


def test_a_former_replica_is_not_eligible() -> None:
    """It deletes its log; added again, it must not lead with an empty one."""
    partition = Partition(
        replicas=(1, 2, 3),
        directories=(ZERO_UUID,) * 3,
        isr=(1, 3),
        leader=1,
        leader_epoch=4,
        partition_epoch=9,
        removing_replicas=(2,),
        adding_replicas=(3,),
        elr=(2,),
    )
    rules = PartitionRules(
        may_lead=lambda broker: True,
        min_isr=3,
        elr_enabled=True,
        default_directory=lambda broker: ZERO_UUID,
    )
    change = PartitionChange(partition, ZERO_UUID, 0, rules)
    record = change.build()
    assert record is not None
    after = partition.merge(record)
    assert (after.replicas, after.isr, after.elr) == ((1, 3), (1, 3), ())
