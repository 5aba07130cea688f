"""Options of reads: those of Spark's Kafka source, and a few of ours.

Pure. Names are case-insensitive, as everywhere in Spark. Every error names the option, its value
and the allowed values.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from skylog.bulk import names
from skylog.bulk.store import STORAGE_URL, TIERED_URL
from skylog.client.metadata import TopicPartition
from skylog.client.offsets import EARLIEST, LATEST
from skylog.kernel.errors import ConfigError
from skylog.kernel.settings.storage import FACTS as STORAGE_FACTS
from skylog.objects.open import parse_url
from skylog.spark.client_options import PREFIX, client_properties
from skylog.spark.positions import (
    AtOffsets,
    AtTime,
    AtTimes,
    Everywhere,
    Position,
    name_all,
    parse_partitions,
    parse_position,
    parse_timestamps,
)

HEADERS: Final = "headers"
COLUMNS: Final = tuple(name for name in names.COLUMNS if name != HEADERS)
SPLIT_BYTES_MIN: Final = 64 * 1024
SPLIT_BYTES_MAX: Final = 2**31 - 1
_STRATEGIES: Final = ("subscribe", "subscribePattern", "assign")
_STORAGE: Final = (STORAGE_URL, TIERED_URL, *(name for name, *_ in STORAGE_FACTS))
# How Spark's source fetches and names its consumers; here there are none.
WITHOUT_EFFECT: Final = (
    "groupIdPrefix",
    "kafkaConsumer.pollTimeoutMs",
    "fetchOffset.numRetries",
    "fetchOffset.retryIntervalMs",
    "partition.metadata.cache.ttl.ms",
)
KNOWN: Final = (
    *_STRATEGIES,
    "startingOffsets",
    "startingOffsetsByTimestamp",
    "startingOffsetsByTimestampStrategy",
    "startingTimestamp",
    "endingOffsets",
    "endingOffsetsByTimestamp",
    "endingTimestamp",
    "maxOffsetsPerTrigger",
    "minOffsetsPerTrigger",
    "maxTriggerDelay",
    "minPartitions",
    "maxRecordsPerPartition",
    "failOnDataLoss",
    "includeHeaders",
    "columns",
    "read.via",
    "read.split.bytes",
    "read.timestamp.min",
    "read.timestamp.max",
    "read.push.filters",
    "publish.group.id",
    *WITHOUT_EFFECT,
    *_STORAGE,
)
_ENDINGS: Final = ("endingOffsets", "endingOffsetsByTimestamp", "endingTimestamp")
_LONG_MAX: Final = 2**63 - 1
_UNITS_MS: Final = {
    "": 1, "us": 0.001, "ms": 1, "s": 1000, "m": 60_000, "min": 60_000,
    "h": 3_600_000, "d": 86_400_000,
}  # fmt: skip
_DURATION: Final = re.compile(r"([0-9]{1,15})\s*([a-z]*)\Z", re.ASCII)


@dataclass(frozen=True, slots=True)
class Subscription:
    """The partitions to read: of topics by name, of topics by pattern, or an explicit list."""

    topics: tuple[str, ...] = ()
    pattern: str | None = None
    partitions: tuple[TopicPartition, ...] = ()

    def matches(self, topic: str) -> bool:
        """Whether a topic's name matches the pattern."""
        return self.pattern is not None and re.search(self.pattern, topic) is not None


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """All options of a query's source."""

    client: Mapping[str, str]
    storage: Mapping[str, str]
    subscription: Subscription
    starting: Position
    ending: Position
    columns: tuple[str, ...]
    latest_if_no_match: bool = False
    fail_on_data_loss: bool = True
    via: str = "bucket"
    split_bytes: int | None = None
    timestamp_min: int | None = None
    timestamp_max: int | None = None
    push_filters: bool = False
    min_partitions: int | None = None
    max_records_per_partition: int | None = None
    max_offsets_per_trigger: int | None = None
    min_offsets_per_trigger: int | None = None
    max_trigger_delay_ms: int = 900_000
    publish_group_id: str | None = None


def parse_batch(options: Mapping[str, str]) -> ReadOptions:
    """The options of a batch query; ConfigError if invalid."""
    given = _Given(options)
    starting = _starting(given, Everywhere(EARLIEST))
    ending = _ending(given)
    _check_batch(given, starting, ending)
    return _parse(given, starting, ending)


def parse_stream(options: Mapping[str, str]) -> ReadOptions:
    """The options of a streaming query; ConfigError if invalid."""
    given = _Given(options)
    for name in _ENDINGS:
        if given.get(name) is not None:
            raise ConfigError(f"option {name} is not allowed in a streaming query: it never ends")
    parsed = _parse(given, _starting(given, Everywhere(LATEST)), Everywhere(LATEST))
    least, most = parsed.min_offsets_per_trigger, parsed.max_offsets_per_trigger
    if least is not None and most is not None and least > most:
        raise ConfigError(
            f"option minOffsetsPerTrigger ({least}) is above maxOffsetsPerTrigger ({most})"
        )
    return parsed


def parse_columns(options: Mapping[str, str]) -> tuple[str, ...]:
    """The columns of a query without its own schema; validates all other options."""
    given = _Given(options)
    return _parse(given, Everywhere(EARLIEST), Everywhere(LATEST)).columns


@dataclass(frozen=True, slots=True)
class _Given:
    """Options by lower-case name, none of them unknown."""

    options: Mapping[str, str]
    lower: dict[str, str] = field(init=False)

    def __post_init__(self) -> None:
        lower = {str(key).lower(): str(value) for key, value in self.options.items()}
        known = {name.lower(): name for name in KNOWN}
        unknown = sorted(key for key in lower if key not in known and not key.startswith(PREFIX))
        if unknown:
            raise ConfigError(_unknown(unknown, known))
        object.__setattr__(self, "lower", lower)

    def get(self, name: str) -> str | None:
        return self.lower.get(name.lower())

    def number(self, name: str, least: int = 1, most: int = _LONG_MAX) -> int | None:
        text = self.get(name)
        if text is None:
            return None
        number = text.strip()
        if not (number.isascii() and number.isdigit() and len(number) < 20):
            raise ConfigError(f"option {name} is {text!r}; allowed is a whole number from {least}")
        if not least <= int(number) <= most:
            raise ConfigError(f"option {name} is {number}; allowed are {least} to {most}")
        return int(number)

    def word(self, name: str, *allowed: str) -> str:
        """One of some words; the first is the default."""
        text = self.get(name)
        if text is None:
            return allowed[0]
        if text.strip().lower() not in allowed:
            raise ConfigError(f"option {name} is {text!r}; allowed are {', '.join(allowed)}")
        return text.strip().lower()


def _unknown(unknown: list[str], known: Mapping[str, str]) -> str:
    hints = []
    for key in unknown:
        near = difflib.get_close_matches(key, known, 1)
        hints.append(f"{key} (is it {known[near[0]]}?)" if near else key)
    return (
        f"unknown options {', '.join(hints)}; allowed are {', '.join(sorted(KNOWN))}"
        " and kafka.* for the settings of a Kafka client"
    )


def _parse(given: _Given, starting: Position, ending: Position) -> ReadOptions:
    subscription = _subscription(given)
    timestamp_min, timestamp_max = _times(given)
    return ReadOptions(
        client=client_properties(given.lower),
        storage=_storage(given),
        subscription=subscription,
        starting=starting,
        ending=ending,
        columns=_columns(given),
        latest_if_no_match=_strategy(given) == "latest",
        fail_on_data_loss=given.word("failOnDataLoss", "true", "false") == "true",
        via=given.word("read.via", "bucket", "broker"),
        split_bytes=given.number("read.split.bytes", SPLIT_BYTES_MIN, SPLIT_BYTES_MAX),
        timestamp_min=timestamp_min,
        timestamp_max=timestamp_max,
        push_filters=given.word("read.push.filters", "false", "true") == "true",
        min_partitions=given.number("minPartitions", 1, 2**31 - 1),
        max_records_per_partition=given.number("maxRecordsPerPartition"),
        max_offsets_per_trigger=given.number("maxOffsetsPerTrigger"),
        min_offsets_per_trigger=given.number("minOffsetsPerTrigger"),
        max_trigger_delay_ms=_duration(given, "maxTriggerDelay", "15m"),
        publish_group_id=_group(given),
    )


def _times(given: _Given) -> tuple[int | None, int | None]:
    first, last = (given.number(f"read.timestamp.{end}", 0) for end in ("min", "max"))
    if first is not None and last is not None and first > last:
        raise ConfigError(f"option read.timestamp.min is {first}, above read.timestamp.max={last}")
    return first, last


def _storage(given: _Given) -> dict[str, str]:
    found = {name: text for name in _STORAGE if (text := given.get(name)) is not None}
    for name in (STORAGE_URL, TIERED_URL):
        if name in found:
            parse_url(found[name], setting=name)
    return found


def _subscription(given: _Given) -> Subscription:
    chosen = [name for name in _STRATEGIES if given.get(name) is not None]
    if len(chosen) != 1:
        said = " and ".join(chosen) or "none"
        raise ConfigError(
            f"exactly one of the options {', '.join(_STRATEGIES)} says what is read; given: {said}"
        )
    name = chosen[0]
    text = (given.get(name) or "").strip()
    if name == "assign":
        partitions = parse_partitions(name, text)
        if not partitions:
            raise ConfigError(f"option assign is {text!r}, which has no partitions")
        return Subscription(partitions=partitions)
    topics = tuple(dict.fromkeys(filter(None, map(str.strip, text.split(",")))))
    if not text or not topics:
        raise ConfigError(f"option {name} is empty; allowed are names or a pattern of topics")
    if name == "subscribe":
        return Subscription(topics=topics)
    try:
        re.compile(text)
    except re.error as error:
        raise ConfigError(
            f"option subscribePattern is {text!r}, which is not a regular expression: {error}"
        ) from None
    return Subscription(pattern=text)


def _starting(given: _Given, default: Position) -> Position:
    _strategy(given)
    found = _position(given, "starting")
    return default if found is None else found


def _ending(given: _Given) -> Position:
    found = _position(given, "ending")
    return Everywhere(LATEST) if found is None else found


def _position(given: _Given, side: str) -> Position | None:
    """In Spark's order of preference: one time for all, then times, then offsets."""
    timestamp = given.number(f"{side}Timestamp", 0)
    if timestamp is not None:
        return AtTime(timestamp)
    for name, parse in (
        (f"{side}OffsetsByTimestamp", parse_timestamps),
        (f"{side}Offsets", parse_position),
    ):
        text = given.get(name)
        if text is not None:
            return parse(name, text)
    return None


def _strategy(given: _Given) -> str:
    return given.word("startingOffsetsByTimestampStrategy", "error", "latest")


def _check_batch(given: _Given, starting: Position, ending: Position) -> None:
    if given.get("publish.group.id") is not None:
        raise ConfigError("option publish.group.id is allowed in streaming queries only")
    _check_no(starting, LATEST, "startingOffsets", "latest")
    _check_no(ending, EARLIEST, "endingOffsets", "earliest")
    match starting, ending:
        case AtOffsets(start), AtOffsets(end):
            _check_order(start, end, "offset")
        case AtTimes(start), AtTimes(end):
            _check_order(start, end, "timestamp")
        case AtTime(start_time), AtTime(end_time) if start_time > end_time:
            raise ConfigError(
                f"option startingTimestamp ({start_time}) is after endingTimestamp ({end_time})"
            )
        case _:
            pass


def _check_no(position: Position, offset: int, option: str, word: str) -> None:
    if position == Everywhere(offset):
        raise ConfigError(f"option {option} is {word}, which is not allowed in a batch query")
    if isinstance(position, AtOffsets):
        found = [key for key, value in position.offsets.items() if value == offset]
        if found:
            raise ConfigError(
                f"option {option} has {offset} ({word}) for {name_all(found)}, which is not"
                " allowed in a batch query"
            )


def _check_order(
    start: Mapping[TopicPartition, int], end: Mapping[TopicPartition, int], what: str
) -> None:
    only = start.keys() ^ end.keys()
    if only:
        raise ConfigError(
            f"starting and ending {what}s must name the same partitions; only one of them has"
            f" {name_all(only)}"
        )
    for key in sorted(start):
        if start[key] > end[key] >= 0:
            raise ConfigError(
                f"the starting {what} {start[key]} of {key} is above its ending {what} {end[key]}"
            )


def _columns(given: _Given) -> tuple[str, ...]:
    has_headers = given.word("includeHeaders", "false", "true") == "true"
    allowed = (*COLUMNS, HEADERS) if has_headers else COLUMNS
    text = given.get("columns")
    if text is None:
        return allowed
    by_lower = {name.lower(): name for name in (*COLUMNS, HEADERS)}
    names = list(filter(None, map(str.strip, text.split(","))))
    wrong = [name for name in names if name.lower() not in by_lower]
    if wrong or not names:
        raise ConfigError(
            f"option columns is {text!r}; allowed are {', '.join((*COLUMNS, HEADERS))}"
        )
    if len({name.lower() for name in names}) < len(names):
        raise ConfigError(f"option columns is {text!r}, which names a column twice")
    return tuple(by_lower[name.lower()] for name in names)


def _duration(given: _Given, name: str, default: str) -> int:
    text = given.get(name) or default
    found = _DURATION.match(text.strip().lower())
    if found is None or found[2] not in _UNITS_MS:
        raise ConfigError(f"option {name} is {text!r}; allowed is a time as 500ms, 30s, 15m or 1h")
    return int(int(found[1]) * _UNITS_MS[found[2]])


def _group(given: _Given) -> str | None:
    text = given.get("publish.group.id")
    if text is not None and not text.strip():
        raise ConfigError("option publish.group.id is empty; allowed is the name of a group")
    return text
