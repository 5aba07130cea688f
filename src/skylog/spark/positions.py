"""Where reading begins and ends, and offsets in Spark's notation.

Pure. The notation is that of Spark's Kafka source, in options as well as in checkpoints:
``{"topic": {"0": 23, "1": -2}}``, where −2 is the earliest offset and −1 the latest.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from skylog.client.metadata import TopicPartition
from skylog.client.offsets import EARLIEST, LATEST
from skylog.kernel.errors import ConfigError

Offsets = dict[TopicPartition, int]
_LONG_MAX: Final = 2**63 - 1
_INT_MAX: Final = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Everywhere:
    """The earliest or the latest offset of each partition."""

    offset: int


@dataclass(frozen=True, slots=True)
class AtOffsets:
    """An offset for each partition; −2 and −1 mean earliest and latest."""

    offsets: Mapping[TopicPartition, int]


@dataclass(frozen=True, slots=True)
class AtTime:
    """The first record of each partition at or after a time, in milliseconds."""

    timestamp: int


@dataclass(frozen=True, slots=True)
class AtTimes:
    """The same with a time for each partition."""

    timestamps: Mapping[TopicPartition, int]


Position = Everywhere | AtOffsets | AtTime | AtTimes


def parse_position(option: str, text: str) -> Everywhere | AtOffsets:
    """``earliest``, ``latest`` or offsets as JSON."""
    word = text.strip().lower()
    if word in ("earliest", "latest"):
        return Everywhere(EARLIEST if word == "earliest" else LATEST)
    example = 'earliest, latest or JSON as {"topicA":{"0":23,"1":-1},"topicB":{"0":-2}}'
    return AtOffsets(_parse(option, text, example, EARLIEST))


def parse_timestamps(option: str, text: str) -> AtTimes:
    """Milliseconds for each partition, as JSON."""
    return AtTimes(_parse(option, text, 'JSON as {"topicA":{"0":1700000000000}}', 0))


def parse_partitions(option: str, text: str) -> tuple[TopicPartition, ...]:
    """Partitions by topic, as JSON."""
    found: list[TopicPartition] = []
    try:
        for topic, indexes in _object(json.loads(text)).items():
            if not isinstance(indexes, list):
                raise ValueError
            found += [TopicPartition(topic, _number(index, 0, _INT_MAX)) for index in indexes]
    except (ValueError, RecursionError):
        raise _unreadable(option, text, 'JSON as {"topicA":[0,1],"topicB":[2,4]}') from None
    return tuple(dict.fromkeys(found))


def to_json(offsets: Mapping[TopicPartition, int]) -> dict[str, dict[str, int]]:
    """Offsets in the format of a checkpoint."""
    found: dict[str, dict[str, int]] = {}
    for partition in sorted(offsets):
        found.setdefault(partition.topic, {})[str(partition.partition)] = offsets[partition]
    return found


def from_json(value: Any) -> Offsets:
    """Offsets of a checkpoint; ConfigError if it is not one of ours."""
    try:
        return _numbers(value, 0)
    except ValueError:
        raise ConfigError(
            f"the checkpoint has offsets {_short(json.dumps(value))}, which are not offsets of"
            ' topics, as {"topic":{"0":23}}; it belongs to another source'
        ) from None


def name_all(partitions: Iterable[TopicPartition]) -> str:
    """Partitions in readable form; if there are many, only some."""
    ordered = sorted(partitions)
    shown = ", ".join(map(str, ordered[:10]))
    return shown if len(ordered) <= 10 else f"{shown} and {len(ordered) - 10} more"


def _parse(option: str, text: str, example: str, least: int) -> Offsets:
    try:
        return _numbers(json.loads(text), least)
    except (ValueError, RecursionError):
        raise _unreadable(option, text, example) from None


def _numbers(value: Any, least: int) -> Offsets:
    found: Offsets = {}
    for topic, by_index in _object(value).items():
        for index, number in _object(by_index).items():
            if not (index.isascii() and index.isdigit()):
                raise ValueError
            key = TopicPartition(topic, _number(int(index), 0, _INT_MAX))
            found[key] = _number(number, least, _LONG_MAX)
    return found


def _object(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError
    return value


def _number(value: Any, least: int, most: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise ValueError
    return value


def _unreadable(option: str, text: str, allowed: str) -> ConfigError:
    return ConfigError(f"option {option} is {_short(text)!r}; allowed is {allowed}")


def _short(text: str) -> str:
    return text if len(text) <= 200 else text[:200] + "…"
