"""Decisions of assembly: which WAL objects are read together, and where a segment is cut. Pure.

A WAL object has batches of many partitions. A round reads the objects one after another, each for
all partitions, so that an object costs one request however many partitions are in it.

A segment ends before the batch that would make it larger than ``segment.bytes``, and
``segment.ms`` after its first batch arrived, whether another follows or not. While all assemblies
take more disk than they may, the largest is cut early: that is what frees the most with one copy.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import takewhile
from typing import TYPE_CHECKING, Final, TypeVar
from zlib import crc32

from skylog.tiered.assembly import RELATIVE_OFFSET_MAX, SEGMENT_BYTES_MAX

if TYPE_CHECKING:
    from skylog.log.config import LogConfig
    from skylog.tiered.consolidation.wal import Found, WalBatch

Key = TypeVar("Key")

# The batches that a round takes, and those of one partition: all that is done for each of them on
# the event loop is done before others get a turn.
ROUND_BATCHES_MAX: Final = 8192
PARTITION_BATCHES_MAX: Final = 1024
# What is read at once: bytes and number of batches, and objects, which may have much between them.
STEP_BYTES: Final = 16 * 1024 * 1024
STEP_BATCHES: Final = 2048
STEP_OBJECTS_MAX: Final = 64
# Closed segments of a partition that wait for their copy; beyond that it is not read any further.
CLOSED_MAX: Final = 4
# The share of the disk from which on segments are cut early: copying needs time.
_EARLY_SHARE: Final = 0.75
# The largest entry of an index.
_ENTRY_BYTES: Final = 12


def batches_per_partition(partitions: int) -> int:
    """How many batches a round takes of each."""
    return max(min(ROUND_BATCHES_MAX // max(partitions, 1), PARTITION_BATCHES_MAX), 1)


def laggards(found: Mapping[Key, Found]) -> list[Key]:
    """Those that have more, and of which only the oldest objects were found."""
    ends = {
        key: _name(one.batches[-1]) for key, one in found.items() if one.batches and _has_more(one)
    }
    frontier = min(ends.values(), default=None)
    return [key for key, end in ends.items() if end == frontier]


def whole_objects(found: Mapping[Key, Found]) -> dict[Key, Sequence[WalBatch]]:
    """Only batches of objects that are found for all partitions: an object of which a partition
    has more than was found would be read again in the next round."""
    ends = [_name(one.batches[-1]) for one in found.values() if one.batches and _has_more(one)]
    if not ends:
        return {key: one.batches for key, one in found.items() if one.batches}
    frontier = min(ends)
    kept: dict[Key, Sequence[WalBatch]] = {}
    for key, one in found.items():
        batches = list(takewhile(lambda batch: _name(batch) <= frontier, one.batches))
        if batches:
            kept[key] = batches
    return kept


def _has_more(found: Found) -> bool:
    return found.batches[-1].next_offset < found.high_watermark


def _name(batch: WalBatch) -> tuple[int, str]:
    """Objects in the order of their age, which is the order of nearly all commits."""
    return batch.created_ms, batch.object_key


def steps(
    found: Mapping[Key, Sequence[WalBatch]],
    bytes_max: int = STEP_BYTES,
    objects_max: int = STEP_OBJECTS_MAX,
    batches_max: int = STEP_BATCHES,
) -> list[dict[Key, list[WalBatch]]]:
    """The batches of all partitions, by what is read together; always whole objects.

    A batch whose partition has its objects in another order waits until those before it were read:
    then its object is read again.
    """
    shares: dict[tuple[int, str], tuple[int, int]] = {}
    for batches in found.values():
        for batch in batches:
            size, count = shares.get(_name(batch), (0, 0))
            shares[_name(batch)] = size + batch.size, count + 1
    step_of: dict[str, int] = {}
    step, used = 0, 0.0
    for name in sorted(shares):
        size, count = shares[name]
        share = max(size / bytes_max, count / batches_max, 1 / objects_max)
        if step_of and used + share > 1:
            step, used = step + 1, 0.0
        used += share
        step_of[name[1]] = step
    planned: list[dict[Key, list[WalBatch]]] = [{} for _ in range(step + 1 if step_of else 0)]
    for key, batches in found.items():
        at = 0
        for batch in batches:
            at = max(at, step_of[batch.object_key])
            planned[at].setdefault(key, []).append(batch)
    return planned


def jitter_ms(name: str, config: LogConfig) -> int:
    """Spreads the cuts of many partitions, as Kafka's rolls are; the same each time."""
    if config.segment_jitter_ms <= 0:
        return 0
    return crc32(name.encode()) % max(1, min(config.segment_jitter_ms, config.segment_ms))


def due_ms(first_ms: int, name: str, config: LogConfig) -> int:
    """When a segment is cut whose first batch arrived at ``first_ms``."""
    return first_ms + config.segment_ms - jitter_ms(name, config)


def ends_before(
    size: int,
    index_bytes: int,
    base_offset: int,
    batch_bytes: int,
    last_offset: int,
    config: LogConfig,
) -> bool:
    """Whether a segment has no room for its next batch."""
    return (
        size + batch_bytes > min(config.segment_bytes, SEGMENT_BYTES_MAX)
        or last_offset - base_offset > RELATIVE_OFFSET_MAX
        or index_bytes + _ENTRY_BYTES > config.segment_index_bytes
    )


def to_cut(open_bytes: Iterable[tuple[Key, int]], used: int, bytes_max: int) -> list[Key]:
    """The open segments to cut, largest first, until those that stay fit; ``used`` counts closed
    ones too, which go by themselves."""
    early = int(bytes_max * _EARLY_SHARE)
    if used < early:
        return []
    sizes = sorted(((key, size) for key, size in open_bytes if size), key=lambda one: -one[1])
    left = sum(size for _, size in sizes)
    chosen: list[Key] = []
    for key, size in sizes:
        if left < early:
            break
        chosen.append(key)
        left -= size
    return chosen
