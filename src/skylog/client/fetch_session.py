"""An incremental fetch session (KIP-227): only changes are sent again.

==========  =======================  ==========================================
state       answer                   then
==========  =======================  ==========================================
FULL        session id 0             FULL: the broker keeps no session
FULL        a session id             INCREMENTAL, epoch 1
INCREMENTAL no error                 INCREMENTAL, next epoch
any         an error of the session  FULL
==========  =======================  ==========================================
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from skylog.client.metadata import TopicPartition
from skylog.kernel.ids import Uuid
from skylog.wire.messages.fetch_request import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ForgottenTopic,
)

_EPOCH_MAX: Final = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Wanted:
    """The fetch position of one partition."""

    topic_id: Uuid
    offset: int
    leader_epoch: int
    max_bytes: int


class FetchSession:
    """The session with one broker."""

    def __init__(self) -> None:
        self._id = 0
        self._epoch = 0
        self._known: dict[TopicPartition, Wanted] = {}
        self._asked: dict[TopicPartition, Wanted] = {}

    def fill(self, request: FetchRequest, wanted: Mapping[TopicPartition, Wanted]) -> None:
        """Put into a request what the broker does not know yet."""
        self._asked = dict(wanted)
        request.session_id, request.session_epoch = self._id, self._epoch
        if not self._epoch:
            request.topics = _topics(wanted.items())
            return
        changed = [(key, want) for key, want in wanted.items() if self._known.get(key) != want]
        # A topic that was created again under the same name is another topic.
        gone = [
            (key, known.topic_id)
            for key, known in self._known.items()
            if key not in wanted or wanted[key].topic_id != known.topic_id
        ]
        request.topics = _topics(changed)
        forgotten: dict[tuple[str, Uuid], list[int]] = {}
        for key, topic_id in gone:
            forgotten.setdefault((key.topic, topic_id), []).append(key.partition)
        request.forgotten_topics_data = [
            ForgottenTopic(name, topic_id, partitions)
            for (name, topic_id), partitions in forgotten.items()
        ]

    def answered(self, session_id: int) -> None:
        """The broker accepted the request."""
        if not session_id:
            self.reset()
            return
        self._id = session_id
        self._epoch = 1 if self._epoch == _EPOCH_MAX else self._epoch + 1
        self._known = self._asked

    def reset(self) -> None:
        """Start a new session with the next request."""
        self._id = self._epoch = 0
        self._known = {}


def _topics(wanted: Iterable[tuple[TopicPartition, Wanted]]) -> list[FetchTopic]:
    topics: dict[str, FetchTopic] = {}
    for key, want in wanted:
        topic = topics.get(key.topic)
        if topic is None:
            topic = topics[key.topic] = FetchTopic(key.topic, want.topic_id)
        topic.partitions.append(
            FetchPartition(
                partition=key.partition,
                current_leader_epoch=want.leader_epoch,
                fetch_offset=want.offset,
                partition_max_bytes=want.max_bytes,
            )
        )
    return list(topics.values())
