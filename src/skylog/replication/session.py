"""A follower's incremental fetch session with one leader (KIP-227). Pure.

Only changes are sent, and only they are examined: a fetcher of a thousand idle partitions sends
empty requests.

==========  =======================  ==========================================
state       response                 then
==========  =======================  ==========================================
full        session id 0             full: the leader keeps no session
full        a session id             incremental, epoch 1
incremental no error                 incremental, next epoch
any         an error, or none        full; the leader closes the old session
==========  =======================  ==========================================
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from skylog.kernel.ids import Uuid
from skylog.wire.messages.fetch_request import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ForgottenTopic,
)

Key = tuple[Uuid, int]
_EPOCH_MAX: Final = 2**31 - 1


class ReplicaSession:
    """What the leader knows of the partitions that we fetch."""

    def __init__(self) -> None:
        self._id = 0
        self._epoch = 0
        self._wanted: dict[Key, FetchPartition] = {}
        # What the broker knows from earlier requests: responses refer to it.
        self._asked: dict[Key, FetchPartition] = {}
        self._changed: dict[Key, None] = {}
        self._forgotten: dict[Key, None] = {}

    def __len__(self) -> int:
        return len(self._wanted)

    def asked(self, key: Key) -> FetchPartition | None:
        """The request to which the leader's response about a partition refers."""
        return self._asked.get(key)

    def want(self, key: Key, wanted: FetchPartition) -> None:
        """Include this from the next request on."""
        self._wanted[key] = wanted
        self._changed[key] = None

    def drop(self, key: Key) -> None:
        """Stop fetching it."""
        if self._wanted.pop(key, None) is not None:
            self._changed.pop(key, None)
            if self._epoch:
                self._forgotten[key] = None

    @property
    def has_work(self) -> bool:
        return bool(self._wanted or self._forgotten)

    def fill(self, request: FetchRequest) -> None:
        """Fill a request with what the leader does not know yet."""
        request.session_id, request.session_epoch = self._id, self._epoch
        if not self._epoch:
            self._asked = {}
        said = self._changed if self._epoch else self._wanted
        request.topics = self._topics(said)
        self._asked.update((key, self._wanted[key]) for key in said)
        gone: dict[Uuid, list[int]] = {}
        for key in self._forgotten:
            if key not in self._wanted:
                self._asked.pop(key, None)
                gone.setdefault(key[0], []).append(key[1])
        request.forgotten_topics_data = [
            ForgottenTopic("", topic_id, indexes) for topic_id, indexes in gone.items()
        ]
        self._changed, self._forgotten = {}, {}

    def answered(self, session_id: int) -> None:
        """The leader accepted the request."""
        self._id = session_id
        if not session_id:
            self.reset()
            return
        self._epoch = 1 if self._epoch == _EPOCH_MAX else self._epoch + 1

    def reset(self) -> None:
        """Begin a new session with the next request."""
        self._epoch = 0
        self._changed, self._forgotten = {}, {}

    def _topics(self, keys: Iterable[Key]) -> list[FetchTopic]:
        topics: dict[Uuid, FetchTopic] = {}
        for key in keys:
            topic = topics.get(key[0])
            if topic is None:
                topic = topics[key[0]] = FetchTopic("", key[0])
            topic.partitions.append(self._wanted[key])
        return list(topics.values())
