"""Incremental fetch sessions (KIP-227), kept so that a quiet session costs nothing.

Every partition of a session watches its replica. What changed since the last response is in
``ready``; a fetch examines only those. A consumer of a thousand quiet partitions therefore costs as
much as a consumer of one.

``progress`` counts all changes: a fetch waits from a given count on, so that no change between its
check and its wait is missed.

    request (id, epoch)   what happens
    0, -1                 full fetch without a session
    0,  0                 full fetch, and a session if there is room
    n,  0                 session n is closed, then as (0, 0)
    n, -1                 session n is closed, then as (0, -1)
    n,  e                 incremental: e must be the session's next epoch
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from skylog.kernel import limits
from skylog.kernel.clock import Clock
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.ids import Uuid
from skylog.kernel.rng import Random
from skylog.wire.messages.fetch_request import FetchPartition, FetchRequest

if TYPE_CHECKING:
    from skylog.broker.partitions.port import ServedPartition

NO_SESSION: Final = 0
NO_REPLICA: Final = -1
INITIAL_EPOCH: Final = 0
FINAL_EPOCH: Final = -1
EPOCH_MAX: Final = 2**31 - 1
# What a change of leader, log start or existence adds to a session's progress: more than any
# fetch can wait for.
_CHANGE: Final = 2**32

Key = tuple[Uuid | str, int]


class Entry:
    """One partition of a session, and what its client was last sent."""

    __slots__ = (
        "index",
        "moved",
        "partition",
        "sent_high_watermark",
        "sent_log_start",
        "session",
        "topic",
        "topic_id",
        "wanted",
    )

    def __init__(self, session: FetchSession, topic: str, topic_id: Uuid, index: int) -> None:
        self.session = session
        self.topic = topic
        self.topic_id = topic_id
        self.index = index
        self.wanted = FetchPartition()
        self.partition: ServedPartition | None = None
        # Whether the replica has moved since it was last read.
        self.moved = True
        self.sent_high_watermark = -1
        self.sent_log_start = -1

    @property
    def key(self) -> Key:
        return (self.topic_id if self.session.uses_topic_ids else self.topic, self.index)

    def attach(self, partition: ServedPartition | None) -> None:
        """Watch the replica that serves this entry; None once the session is closed."""
        if self.session.closed:
            partition = None
        if partition is self.partition:
            return
        if self.partition is not None:
            self.partition.unwatch(self)
        self.partition = partition
        if partition is None:
            return
        partition.watch(self, appends=self.session.replica_id != NO_REPLICA)

    @property
    def replica_id(self) -> int:
        return self.session.replica_id

    @property
    def fetched_ms(self) -> int:
        return self.session.last_used_ms

    def high_watermark_moved(self) -> None:
        """The next response to a follower includes it, whether or not it waits for records."""
        self.moved = True
        self.session.ready[self] = None

    def partition_moved(self, appended_bytes: int) -> None:
        session = self.session
        self.moved = True
        session.ready[self] = None
        session.moved(appended_bytes or _CHANGE)


class FetchSession:
    """The partitions that one consumer fetches, in the order in which they are served."""

    __slots__ = (
        "_wake",
        "_wake_at",
        "closed",
        "entries",
        "epoch",
        "id",
        "last_used_ms",
        "progress",
        "ready",
        "replica_id",
        "uses_topic_ids",
    )

    def __init__(
        self, session_id: int, uses_topic_ids: bool, now_ms: int, replica_id: int = NO_REPLICA
    ) -> None:
        """``replica_id`` is set if a follower fetches."""
        self.id = session_id
        self.replica_id = replica_id
        self.epoch = 1
        self.uses_topic_ids = uses_topic_ids
        self.last_used_ms = now_ms
        self.entries: dict[Key, Entry] = {}
        # Insertion order is the order of service: a served partition moves to the end.
        self.ready: dict[Entry, None] = {}
        self.progress = 0
        self.closed = False
        self._wake: Callable[[], None] | None = None
        self._wake_at = 0

    def update(self, request: FetchRequest) -> None:
        """Add and change partitions, then forget some, as the request says."""
        for topic in request.topics:
            name = topic.topic_id if self.uses_topic_ids else topic.topic
            for wanted in topic.partitions:
                entry = self.entries.get((name, wanted.partition))
                if entry is None:
                    entry = Entry(self, topic.topic, topic.topic_id, wanted.partition)
                    self.entries[name, wanted.partition] = entry
                entry.wanted = wanted
                self.ready[entry] = None
        for forgotten in request.forgotten_topics_data:
            name = forgotten.topic_id if self.uses_topic_ids else forgotten.topic
            for index in forgotten.partitions:
                self._forget((name, index))

    def _forget(self, key: Key) -> None:
        entry = self.entries.pop(key, None)
        if entry is not None:
            entry.attach(None)
            self.ready.pop(entry, None)

    def wait(self, progress: int, wake: Callable[[], None]) -> None:
        """Call ``wake`` once when this much has changed, possibly at once."""
        self.interrupt()
        if self.progress >= progress or self.closed:
            wake()
        else:
            self._wake_at, self._wake = progress, wake

    def stop_waiting(self, wake: Callable[[], None]) -> None:
        if self._wake == wake:
            self._wake = None

    def interrupt(self) -> None:
        """Wake the waiting fetch."""
        wake, self._wake = self._wake, None
        if wake is not None:
            wake()

    def moved(self, amount: int) -> None:
        self.progress += amount
        if self._wake is not None and self.progress >= self._wake_at:
            self.interrupt()

    def served(self, entry: Entry, *, data: bool, more: bool) -> None:
        """Partitions with data move behind the others; those without are no longer ready."""
        if data or not more:
            self.ready.pop(entry, None)
        if more and self.entries.get(entry.key) is entry:
            self.ready[entry] = None

    def close(self) -> None:
        self.closed = True
        for entry in self.entries.values():
            entry.attach(None)
        self.entries.clear()
        self.ready.clear()
        self.interrupt()


@dataclass(frozen=True, slots=True)
class FetchSessionSettings:
    slots_max: int = 1000
    eviction_ms_min: int = 120_000


class FetchSessions:
    """All sessions of a broker, bounded: a new one may evict one that was not used recently."""

    def __init__(self, settings: FetchSessionSettings, clock: Clock, rng: Random) -> None:
        self._settings = settings
        self._clock = clock
        self._rng = rng
        self._sessions: OrderedDict[int, FetchSession] = OrderedDict()
        self._entries = 0

    def __len__(self) -> int:
        return len(self._sessions)

    def open(self, request: FetchRequest, version: int) -> tuple[FetchSession, bool]:
        """The session of a request, and whether its answer is incremental."""
        by_id = version >= 13
        now_ms = self._clock.now_ms()
        if request.session_epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            if request.session_id != NO_SESSION:
                self.close(request.session_id)
            session_id = NO_SESSION
            if request.session_epoch == INITIAL_EPOCH:
                session_id = self._free_id(now_ms)
            session = FetchSession(session_id, by_id, now_ms, replica_of(request, version))
            session.update(request)
            if self._entries + len(session.entries) > limits.FETCH_SESSION_PARTITIONS_MAX:
                session.id = NO_SESSION  # served all the same, but not remembered
            if session.id != NO_SESSION:
                self._sessions[session.id] = session
                self._entries += len(session.entries)
            return session, False
        found = self._sessions.get(request.session_id)
        if found is None:
            raise KafkaError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        if found.epoch != request.session_epoch:
            raise KafkaError(ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        if found.uses_topic_ids != by_id:
            raise KafkaError(ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
        found.epoch = next_epoch(found.epoch)
        found.moved(_CHANGE)  # a fetch with an earlier epoch is stale
        found.last_used_ms = now_ms
        self._sessions.move_to_end(found.id)
        before = len(found.entries)
        found.update(request)
        self._entries += len(found.entries) - before
        if not found.entries or self._entries > limits.FETCH_SESSION_PARTITIONS_MAX:
            # As in Kafka, a session without partitions is closed; so is one beyond the limit, whose
            # client starts over.
            self._sessions.pop(found.id)
            self._entries -= len(found.entries)
            found.id = NO_SESSION
        return found, True

    def close(self, session_id: int) -> None:
        session = self._sessions.pop(session_id, None)
        if session is not None:
            self._entries -= len(session.entries)
            session.close()

    def _free_id(self, now_ms: int) -> int:
        if len(self._sessions) >= self._settings.slots_max:
            oldest = next(iter(self._sessions.values()), None)
            if oldest is None or now_ms - oldest.last_used_ms < self._settings.eviction_ms_min:
                return NO_SESSION
            self.close(oldest.id)
        while True:
            session_id = self._rng.randrange(EPOCH_MAX) + 1
            if session_id not in self._sessions:
                return session_id

    def look_again(self) -> None:
        """The next fetch examines every partition: what a client may read has changed."""
        for session in self._sessions.values():
            for entry in session.entries.values():
                session.ready[entry] = None


def replica_of(request: FetchRequest, version: int) -> int:
    """The broker that fetches as a follower; NO_REPLICA for a consumer."""
    found = request.replica_state.replica_id if version >= 15 else request.replica_id
    return max(found, NO_REPLICA)


def next_epoch(epoch: int) -> int:
    return 1 if epoch == EPOCH_MAX else epoch + 1


def group_by_topic(entries: Iterable[Entry]) -> Iterable[tuple[str, Uuid, list[Entry]]]:
    """Adjacent entries of one topic together, as a response lists them."""
    group: list[Entry] = []
    for entry in entries:
        if group and (group[0].topic, group[0].topic_id) != (entry.topic, entry.topic_id):
            yield group[0].topic, group[0].topic_id, group
            group = []
        group.append(entry)
    if group:
        yield group[0].topic, group[0].topic_id, group
