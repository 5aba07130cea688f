"""Fetch: read what moved, within the budget, in the session's order; wait when there is too little.

The whole response is built in one pass from what is in memory. For anything else (records on a cold
disk, or in objects), the pass collects questions, and each resolver is called once for all
partitions of the request. The request waits only if there is nothing to return.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from typing import Final

from skylog.broker.handlers.fetch_collected import (
    Collected,
    Questions,
    asked_of,
    holds_none,
    kept,
)
from skylog.broker.handlers.fetch_sessions import (
    NO_SESSION,
    Entry,
    FetchSession,
    group_by_topic,
    next_epoch,
    replica_of,
)
from skylog.broker.net.context import RequestContext
from skylog.broker.partitions.port import Reader, RefusedError, ServedPartition
from skylog.broker.partitions.questions import Question
from skylog.kernel import limits
from skylog.kernel.acl import AclOperation
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.wire.messages.fetch_request import FetchRequest
from skylog.wire.messages.fetch_response import (
    FetchableTopicResponse,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
)

READ_COMMITTED: Final = 1
# From this version on a consumer names its rack, and may read from any replica.
_ANY_REPLICA_FROM: Final = 11
_REPLICA_STATE_FROM: Final = 15
_TELL_LEADER_FROM: Final = 16
_TELL_LEADER: Final = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)
_UNSEEN: Final = (
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
)


def fetch(
    context: RequestContext, request: FetchRequest
) -> FetchResponse | Awaitable[FetchResponse]:
    """Handle a Fetch request."""
    session, incremental = context.services.fetch_sessions.open(request, context.version)
    work = Fetch(context, request, session, incremental=incremental)
    waits: Awaitable[FetchResponse] | None = None
    try:
        found = work.look()
        if found.questions:
            waits = work.settle_and_respond(found)
        elif work.enough(found):
            return work.respond(found)
        else:
            waits = work.wait(found)
    finally:
        if waits is None:
            work.release()
    return waits


class Fetch:
    """One Fetch request from its session to its answer."""

    def __init__(
        self,
        context: RequestContext,
        request: FetchRequest,
        session: FetchSession,
        *,
        incremental: bool,
    ) -> None:
        services, version = context.services, context.version
        self.context = context
        self.request = request
        self.session = session
        self.incremental = incremental
        replica_id = replica_of(request, version)
        self._from_follower = replica_id >= 0
        with_epoch = self._from_follower and version >= _REPLICA_STATE_FROM
        self._reader = Reader(
            replica_id,
            broker_epoch=request.replica_state.replica_epoch if with_epoch else -1,
            read_committed=request.isolation_level == READ_COMMITTED,
            anywhere=not self._from_follower and version >= _ANY_REPLICA_FROM,
            rack="" if self._from_follower else request.rack_id,
            client_id=context.client_id,
            listener=context.listener,
        )
        self._bytes_max = min(
            request.max_bytes,
            services.settings.network.fetch_bytes_max,
            max(services.memory.answers.left, limits.FETCH_BYTES_UNDER_PRESSURE),
        )
        if not self._from_follower:
            self._bytes_max = min(self._bytes_max, services.quotas.fetch_bytes_max(context))
        self._bytes_min = min(request.min_bytes, self._bytes_max)
        # The session's progress at the last check.
        self._seen = session.progress
        self._refused: set[Entry] | None = None

    async def settle_and_respond(self, found: Collected) -> FetchResponse:
        """Respond after the pending answers have been obtained."""
        try:
            await self._settle(found)
            if self.enough(found):
                return self.respond(found)
            return await self.wait(found)
        finally:
            self.release()

    async def wait(self, found: Collected) -> FetchResponse:
        """Wait until enough bytes have arrived, something else happened, or the time is up.

        A disconnected client does not wait.
        """
        loop = asyncio.get_running_loop()
        connection = self.context.connection
        deadline = loop.time() + self.request.max_wait_ms / 1000
        woken = asyncio.Event()
        wake = woken.set
        connection.when_ended = wake
        try:
            while True:
                woken.clear()
                if connection.ended:
                    wake()
                self.session.wait(self._seen + self._bytes_min - found.read_bytes, wake)
                timer = loop.call_at(deadline, wake)
                try:
                    await woken.wait()
                finally:
                    timer.cancel()
                if not self._superseded:
                    found = self.look(found)
                    if found.questions:
                        await self._settle(found)
                if self.enough(found) or connection.ended or loop.time() >= deadline:
                    return self.respond(found)
        finally:
            connection.when_ended = None
            self.session.stop_waiting(wake)
            self.release()

    @property
    def _superseded(self) -> bool:
        """Whether a later request of the same session has arrived, so that this one is stale."""
        expected = next_epoch(self.request.session_epoch)
        return self.incremental and self.session.epoch != expected and self.session.id != NO_SESSION

    def look(self, before: Collected | None = None) -> Collected:
        """Read what is ready, in the session's order, within the budget.

        What an earlier pass ``before`` has read, and has not changed since, is not read again.
        """
        found = Collected(self._bytes_max)
        self._seen = self.session.progress
        ready = list(self.session.ready)
        if before is not None:
            ready = [entry for entry in ready if not kept(entry, before, found)]
        is_first = True
        for entry in ready:
            entry.moved = False
            try:
                partition = self._locate(entry)
                # A pass after a wait repeats what the client said, unless the partition was refused
                # before.
                is_new = before is None or entry in before.refused
                answer = partition.read(entry.wanted, self._reader, found, is_new=is_new)
            except KafkaError as error:
                self._fail(entry, error, found)
                continue
            if isinstance(answer, Question):
                # The first entry is served first, with everything its resolver has, so that every
                # entry is served eventually.
                found.held = found.held or answer.holds or (is_first and not answer.reserves)
                found.ask(entry, answer)
            else:
                found.add(entry, answer)
            is_first = False
        if self._refused is None:
            self._refused = found.refused
        # As in Kafka, partitions refused from the start do not keep the others from waiting for
        # data; a partition lost while waiting is reported at once.
        found.urgent = found.urgent or not found.refused <= self._refused
        return found

    async def _settle(self, found: Collected) -> None:
        """Call each resolver once; those for which other partitions were held come first. One whose
        bytes are reserved runs beside the others."""
        if len(found.questions) == 1:
            ((resolver, questions),) = found.questions.items()
            self._take(questions, await resolver(asked_of(questions), found), found)
            return
        beside = [
            (asyncio.ensure_future(resolver(asked_of(questions), found)), questions)
            for resolver, questions in found.questions.items()
            if questions[0][1].reserves
        ]
        try:
            for resolver, questions in sorted(found.questions.items(), key=holds_none):
                if not questions[0][1].reserves:
                    self._take(questions, await resolver(asked_of(questions), found), found)
            for task, questions in beside:
                self._take(questions, await task, found)
        finally:
            for task, _ in beside:
                task.cancel()

    def _take(
        self,
        questions: Questions,
        answers: Sequence[PartitionData | KafkaError],
        found: Collected,
    ) -> None:
        for (entry, question), answer in zip(questions, answers, strict=True):
            found.left += question.reserves
            if isinstance(answer, KafkaError):
                self._fail(entry, answer, found)
            else:
                found.add(entry, answer)

    def _locate(self, entry: Entry) -> ServedPartition:
        """The partition that serves an entry; raises Kafka's error if there is none."""
        context, services = self.context, self.context.services
        name: str | None = entry.topic
        if self.session.uses_topic_ids:
            name = services.image.topic_name(entry.topic_id)
            if name is None:
                # A session may hold the name of a topic that has been deleted.
                gone = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                raise RefusedError(gone if entry.topic else ErrorCode.UNKNOWN_TOPIC_ID)
            entry.topic = name
        assert name is not None  # noqa: S101 - for the type checker
        if self._from_follower:
            allowed = context.authorize_cluster(AclOperation.CLUSTER_ACTION)
        else:
            allowed = context.allowed(name)
        if not allowed:
            raise RefusedError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        try:
            partition = services.partitions.find(name, entry.index)
        except KafkaError:
            entry.attach(None)
            raise
        entry.attach(partition)
        partition.require_reader(self._reader, entry.wanted.current_leader_epoch)
        return partition

    def _fail(self, entry: Entry, error: KafkaError, found: Collected) -> None:
        code = error.code
        if code is ErrorCode.KAFKA_STORAGE_ERROR and self.context.version <= 5:
            code = ErrorCode.NOT_LEADER_OR_FOLLOWER  # what such old clients retry
        answer = PartitionData(
            entry.index,
            error_code=code,
            high_watermark=-1,
            # Kafka returns "none" before it reads a log, and null if that fails.
            aborted_transactions=[] if code in _UNSEEN else None,
            records=b"",
        )
        partition = entry.partition
        # Older clients cannot parse it.
        tell = self.context.version >= _TELL_LEADER_FROM and code in _TELL_LEADER
        if tell and partition is not None:
            answer.current_leader = LeaderIdAndEpoch(partition.leader_id, partition.leader_epoch)
        found.answers[entry] = answer
        if isinstance(error, RefusedError):
            found.refused.add(entry)
        else:
            found.urgent = True

    def enough(self, found: Collected) -> bool:
        return (
            found.urgent
            or self.request.max_wait_ms <= 0
            or len(found.refused) == len(self.session.entries)
            or found.read_bytes >= self._bytes_min
            or self._superseded
        )

    def respond(self, found: Collected) -> FetchResponse:
        """Build the response and note what the client knows now."""
        context, session = self.context, self.session
        response = FetchResponse(session_id=session.id)
        if self._superseded:
            response.error_code = ErrorCode.INVALID_FETCH_SESSION_EPOCH
            return response
        throttle_ms = 0
        if not self._from_follower:
            throttle_ms = context.services.quotas.fetched(context, found.read_bytes)
            context.throttle_ms = max(context.throttle_ms, throttle_ms)
        if throttle_ms > 0:
            if not self.incremental:
                # The client treats an empty response to a full fetch as invalid, and starts over.
                context.services.fetch_sessions.close(session.id)
                response.session_id = NO_SESSION
            return response
        moved = session.progress != self._seen
        told = []
        for entry, answer in found.answers.items():
            if not self.incremental or _is_news(entry, answer):
                told.append(entry)
            self._note(entry, answer, moved)
        told.sort(key=found.refused.__contains__)  # Kafka lists them last
        for topic, topic_id, entries in group_by_topic(told):
            answers = [found.answers[entry] for entry in entries]
            response.responses.append(FetchableTopicResponse(topic, topic_id, answers))
        leaders = {a.current_leader.leader_id for a in found.answers.values()} - {-1}
        for node in context.services.image.endpoints(leaders, context.listener):
            response.node_endpoints.append(NodeEndpoint(node.id, node.host, node.port, node.rack))
        return response

    def release(self) -> None:
        """A fetch without a session leaves no state behind."""
        if self.session.id == NO_SESSION:
            self.session.close()

    def _note(self, entry: Entry, answer: PartitionData, moved: bool) -> None:
        entry.sent_high_watermark = answer.high_watermark
        entry.sent_log_start = answer.log_start_offset
        size, offset = len(answer.records or b""), entry.wanted.fetch_offset
        # The client's next request moves the offset and makes the entry ready again. A partition
        # that was read but not consumed (a client that repeats its offset without saying so) stays
        # ready, and so does one that may have moved after it was read.
        more = moved or answer.high_watermark > offset
        if self._from_follower and entry.partition is not None:
            more = moved or entry.partition.expects_follower(self._reader.replica_id, offset)
        elsewhere = answer.preferred_read_replica >= 0
        if answer.error_code or answer.diverging_epoch.epoch >= 0 or elsewhere:
            # Kafka repeats an error in every response until it is resolved.
            entry.sent_high_watermark = -1
            more = True
        self.session.served(entry, data=size > 0, more=more)
        if size and entry.partition is not None:
            self._count(entry.partition.topic, entry.index, size)

    def _count(self, topic: str, index: int, size: int) -> None:
        services = self.context.services
        if self._from_follower:
            services.traffic.replicated_out(topic, size)
            services.replication.leader_quota.record(topic, index, size)
        else:
            services.traffic.fetched(topic, size)


def _is_news(entry: Entry, answer: PartitionData) -> bool:
    return bool(
        answer.error_code
        or answer.records
        or answer.diverging_epoch.epoch >= 0
        or answer.preferred_read_replica >= 0
        or answer.high_watermark != entry.sent_high_watermark
        or answer.log_start_offset != entry.sent_log_start
    )
