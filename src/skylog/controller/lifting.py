"""After a restore: every leader epoch goes above those that the cluster has used since the backup.

Whoever fences by epochs, and clients that remember them, would ignore lower ones. It is done in
steps, since one batch of records holds only so many partitions; a controller that fails over in
between goes on, and what is lifted already stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Final

from skylog.controller.requests import LiftEpochs
from skylog.kernel.ids import Uuid
from skylog.kernel.limits import EPOCHS_PER_RESTORE
from skylog.replicated.machine import Result, StartTimer

if TYPE_CHECKING:
    from skylog.controller.state import ControllerState
    from skylog.wire.messages.partition_record import PartitionRecord

_PARTITIONS_PER_STEP: Final = 20_000


@dataclass(frozen=True, slots=True)
class EpochFloor:
    """Partitions of these topics must not have a leader epoch below ``epoch``."""

    epoch: int
    # Those of the backup: the epochs of topics that were made since begin at 0.
    topic_ids: frozenset[Uuid]


def lift_epochs(state: ControllerState) -> Result[None]:
    """The next step, and a timer for the one after it."""
    floor = state.settings.epoch_floor
    if floor is None:
        return Result(None)
    records = list(islice(_lifted(state, floor), _PARTITIONS_PER_STEP))
    more = len(records) == _PARTITIONS_PER_STEP
    return Result(None, records, effects=[lift_timer()] if more else [])


def lift_timer() -> StartTimer:
    return StartTimer("lift-leader-epochs", 0, LiftEpochs())


def _lifted(state: ControllerState, floor: EpochFloor) -> Iterator[PartitionRecord]:
    for topic in state.image.topics.by_id.values():
        if topic.topic_id not in floor.topic_ids:
            continue
        for index, partition in topic.partitions.items():
            if partition.leader_epoch < floor.epoch:
                yield replace(
                    partition,
                    leader_epoch=partition.leader_epoch % EPOCHS_PER_RESTORE + floor.epoch,
                    partition_epoch=partition.partition_epoch + 1,
                ).to_record(topic.topic_id, index)
