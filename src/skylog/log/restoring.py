"""Gives an empty log the history of records that it does not have: they are in the object store."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from skylog.log.producers import ProducerEntry, Producers

if TYPE_CHECKING:
    from skylog.log.checkpoints import EpochStart
    from skylog.log.log import Log


def restore(log: Log, epochs: Sequence[EpochStart], producers: Sequence[ProducerEntry]) -> None:
    """Producers as of the end of the log, and leader epochs up to there, durably. Blocks.

    The epochs come last: a log that has them has its producers, too. Before this the log start must
    be durable: without it, the next start would take the end for the start.
    """
    log.check_usable()
    try:
        known = Producers(producers, decided_below=log.high_watermark)
        log.snapshots.restore(known)
        log.companions.restore(epochs)
    except OSError as error:
        raise log.fail(f"restoring of {log.directory} failed", error) from error
    log.producers = known
