"""Where a read starts and ends: words, offsets or times, for all partitions or each its own."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Final, TypeAlias

from skylog.client.bulk import PartitionRange
from skylog.client.cluster import Cluster
from skylog.client.metadata import TopicPartition
from skylog.client.offsets import list_offsets
from skylog.kernel.errors import ConfigError, KafkaError

Position: TypeAlias = str | int | datetime
Positions: TypeAlias = Position | Mapping[int, Position]

LOG_START: Final = -2
HIGH_WATERMARK: Final = -1
_WORDS: Final = {"earliest": LOG_START, "latest": HIGH_WATERMARK}
ALLOWED: Final = (
    "earliest, latest, an offset, a datetime with a time zone, or a dictionary by partition"
)


async def ranges_of(
    cluster: Cluster,
    topic: str,
    partitions: Collection[int] | None,
    start: Positions,
    end: Positions,
) -> list[PartitionRange]:
    """What to plan; ConfigError for positions and partitions that cannot be."""
    known = sorted((await cluster.topic(topic)).partitions)
    wanted = known if partitions is None else sorted(set(partitions))
    _check_partitions("partitions", topic, wanted, known)
    starts = _by_partition("start", topic, start, wanted, known)
    ends = _by_partition("end", topic, end, wanted, known)
    if any(position == LOG_START for position in ends.values()):
        raise ConfigError("end is earliest; allowed are " + ALLOWED.removeprefix("earliest, "))
    from_, to = await _resolved(cluster, topic, starts), await _resolved(cluster, topic, ends)
    if any(offset == HIGH_WATERMARK for offset in from_.values()):
        # As a start it is a number like others, which -1 is not.
        from_ |= await _listed(
            cluster,
            topic,
            {place: offset for place, offset in from_.items() if offset == HIGH_WATERMARK},
        )
    return [
        PartitionRange(topic, place, from_[place], max(to[place], from_[place]))
        if to[place] >= 0 and from_[place] >= 0
        else PartitionRange(topic, place, from_[place], to[place])
        for place in wanted
    ]


def _check_partitions(
    what: str, topic: str, wanted: Collection[int], known: Collection[int]
) -> None:
    unknown = sorted(set(wanted) - set(known))
    if unknown:
        names = ", ".join(map(str, unknown))
        raise ConfigError(f"{what} has {names}; topic {topic} has 0 to {max(known)}")


def _by_partition(
    what: str, topic: str, given: Positions, wanted: Collection[int], known: Collection[int]
) -> dict[int, int | datetime]:
    if not isinstance(given, Mapping):
        position = _checked(what, given)
        return dict.fromkeys(wanted, position)
    _check_partitions(what, topic, given.keys(), known)
    missing = sorted(set(wanted) - given.keys())
    if missing:
        raise ConfigError(f"{what} does not say where for partitions {missing} of topic {topic}")
    return {place: _checked(what, given[place]) for place in wanted}


def _checked(what: str, given: Position) -> int | datetime:
    if isinstance(given, str) and given in _WORDS:
        return _WORDS[given]
    if isinstance(given, int) and not isinstance(given, bool) and given >= 0:
        return given
    if isinstance(given, datetime) and given.tzinfo is not None:
        return given
    raise ConfigError(f"{what} is {given!r}; allowed are {ALLOWED}")


async def _resolved(
    cluster: Cluster, topic: str, positions: Mapping[int, int | datetime]
) -> dict[int, int]:
    """Times become the offset of the first record at or after them, else the log's end."""
    times = {
        place: round(position.timestamp() * 1000)
        for place, position in positions.items()
        if isinstance(position, datetime)
    }
    found = await _listed(cluster, topic, times) if times else {}
    offsets = {p: offset for p, offset in positions.items() if not isinstance(offset, datetime)}
    return offsets | found


async def _listed(cluster: Cluster, topic: str, times: Mapping[int, int]) -> dict[int, int]:
    wanted = {TopicPartition(topic, place): time for place, time in times.items()}
    found: dict[int, int] = {}
    for key, outcome in (await list_offsets(cluster, wanted)).items():
        if isinstance(outcome, KafkaError):
            raise outcome
        found[key.partition] = outcome.offset
    return found
