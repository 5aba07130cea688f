"""What consumer groups need from the broker: topics, settings of groups, patterns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from skylog.kernel.ids import Uuid


@dataclass(frozen=True, slots=True)
class TopicInfo:
    """A topic; ``racks`` has, for each partition, the racks of its replicas."""

    name: str
    topic_id: Uuid
    racks: tuple[tuple[str, ...], ...]

    @property
    def partition_count(self) -> int:
        return len(self.racks)


class Topics(Protocol):
    """The current topics. Versions only grow."""

    @property
    def version(self) -> int: ...

    @property
    def created_version(self) -> int:
        """The version that added the newest topic."""
        ...

    def topic_id(self, name: str) -> Uuid | None: ...

    def name(self, topic_id: Uuid) -> str | None: ...

    def partition_count(self, topic_id: Uuid) -> int: ...

    def info(self, name: str) -> TopicInfo | None: ...

    def names(self) -> Iterable[str]: ...


@dataclass(frozen=True, slots=True)
class ConsumerConfig:
    """A group's own settings; each field's comment is its key."""

    session_timeout_ms: int = 45_000  # consumer.session.timeout.ms
    heartbeat_interval_ms: int = 5_000  # consumer.heartbeat.interval.ms
    assignment_interval_ms: int = 1_000  # consumer.assignment.interval.ms


class FixedTopics:
    """A fixed set of topics, by name, with their ids and partition counts."""

    def __init__(self, topics: Mapping[str, tuple[Uuid, int]] | None = None) -> None:
        self.version = self.created_version = 0
        self._by_name = dict(topics or {})

    def topic_id(self, name: str) -> Uuid | None:
        return self._by_name[name][0] if name in self._by_name else None

    def name(self, topic_id: Uuid) -> str | None:
        return next((n for n, (found, _) in self._by_name.items() if found == topic_id), None)

    def partition_count(self, topic_id: Uuid) -> int:
        return next(count for found, count in self._by_name.values() if found == topic_id)

    def info(self, name: str) -> TopicInfo | None:
        if name not in self._by_name:
            return None
        topic_id, count = self._by_name[name]
        return TopicInfo(name, topic_id, ((),) * count)

    def names(self) -> Iterable[str]:
        return list(self._by_name)


@dataclass(frozen=True, slots=True)
class World:
    """The environment of a group machine: all of it may change between two requests."""

    topics: Topics = field(default_factory=FixedTopics)
    config: Callable[[str], ConsumerConfig] = lambda group_id: ConsumerConfig()
