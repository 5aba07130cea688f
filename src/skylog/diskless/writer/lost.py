"""The producers that lost a batch which they will send again. Pure.

A coordinator accepts any first sequence of a producer that it does not know. So batches that a
producer sent after a lost one must wait until that one has been resent: otherwise they would be
accepted as its first, and the lost one would be refused for ever.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Final

from skylog.kernel.limits import DISKLESS_LOST_BATCHES_MAX

if TYPE_CHECKING:
    from skylog.diskless.writer.file import Item, ProducerPartition

_SEQUENCES: Final = 2**31


class LostBatches:
    """The first lost batch of each producer and partition, as epoch and sequence."""

    def __init__(self) -> None:
        self._lost: OrderedDict[ProducerPartition, tuple[int, int]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._lost)

    def add(self, item: Item) -> None:
        producer, batch = item.producer, item.batch
        if producer is None or (producer in self._lost and self._is_after(producer, item)):
            return
        self._lost[producer] = batch.producer_epoch, batch.base_sequence
        if len(self._lost) > DISKLESS_LOST_BATCHES_MAX:
            self._lost.popitem(last=False)

    def admits(self, item: Item) -> bool:
        """Whether a batch may be committed; called in the order of commits. The lost batch itself,
        an earlier one, or one of another epoch ends the wait: the coordinator decides on it."""
        if not self._lost:
            return True
        producer = item.producer
        if producer is None or producer not in self._lost:
            return True
        if self._is_after(producer, item):
            return False
        del self._lost[producer]
        return True

    def _is_after(self, producer: ProducerPartition, item: Item) -> bool:
        epoch, sequence = self._lost[producer]
        distance = (item.batch.base_sequence - sequence) % _SEQUENCES
        same_epoch = bool(item.batch.producer_epoch == epoch)
        return same_epoch and 0 < distance < _SEQUENCES // 2
