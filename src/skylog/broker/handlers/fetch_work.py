"""One Fetch request: what its session has ready is read within the budget and answered."""

from __future__ import annotations

from collections.abc import Callable, Generator
from functools import partial
from typing import Any

from skylog.broker.handlers.fetch_found import Collected, Located, go_to
from skylog.broker.handlers.fetch_remote import RemoteRead, read_remote
from skylog.broker.handlers.fetch_replicas import (
    ANY_REPLICA_FROM,
    expects_follower,
    follower_epoch,
    is_throttled,
    nearer_replica,
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
from skylog.diskless.partitions import DisklessPartition
from skylog.kernel import limits
from skylog.kernel.acl import AclOperation
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.log.files import WouldBlock
from skylog.log.reader import ReadInfo
from skylog.replication.leader import find_divergence
from skylog.replication.partition import Partition
from skylog.wire.messages.fetch_request import FetchRequest
from skylog.wire.messages.fetch_response import (
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
)

Read = Callable[[], ReadInfo]


Steps = Generator[Read | RemoteRead, Any, Collected]
READ_COMMITTED = 1
_UNSEEN = (
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
)
_TELL_LEADER_FROM = 16
_TELL_LEADER = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)


class RefusedError(KafkaError):
    """A partition that cannot be fetched as things stand, whatever its log holds."""


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
        services = context.services
        self.context = context
        self.request = request
        self.session = session
        self.incremental = incremental
        self.replica_id = replica_of(request, context.version)
        self.from_follower = self.replica_id >= 0
        # Whether what a follower asks of the partition that is looked at has not been noted yet.
        self._unheard = True
        self._read_committed = request.isolation_level == READ_COMMITTED
        self.bytes_max = min(
            request.max_bytes,
            services.settings.network.fetch_bytes_max,
            max(services.memory.answers.left, limits.FETCH_BYTES_UNDER_PRESSURE),
        )
        if not self.from_follower:
            self.bytes_max = min(self.bytes_max, services.quotas.fetch_bytes_max(context))
        self.bytes_min = min(request.min_bytes, self.bytes_max)
        # The session's progress when it was last looked at.
        self.seen = session.progress
        self._refused: set[Entry] | None = None

    @property
    def superseded(self) -> bool:
        """Whether a later request of the same session has come, so that this one is stale."""
        expected = next_epoch(self.request.session_epoch)
        return self.incremental and self.session.epoch != expected and self.session.id != NO_SESSION

    def collect(self, before: Collected | None = None) -> Steps:
        """Read what is ready, in the session's order, within the budget.

        What an earlier pass ``before`` has read, and what did not move since, is not read again.
        Yields each read that would wait for the disk; it expects the outcome back.
        """
        found = Collected(left=self.bytes_max)
        self.seen = self.session.progress
        located = self._locate_all(before, found)
        # One question for all diskless partitions. Whoever is first in the session goes first with
        # all of its kind, so that everybody's turn comes.
        if located.remote_first:
            yield from self._read_remote(located.remote, found)
        for entry, partition in located.logs:
            # A look after a wait tells nothing new, unless there was nothing to look at.
            self._unheard = before is None or entry in before.refused
            try:
                found.add(entry, (yield from self._read(entry, partition, found)))
            except KafkaError as error:
                self._fail(entry, error, found)
        if located.remote and not located.remote_first:
            yield from self._read_remote(located.remote, found)
        if self._refused is None:
            self._refused = found.refused
        # What is refused from the start does not keep the others from waiting for data, as with
        # Kafka; what was lost while waiting is told at once.
        found.urgent = found.urgent or not found.refused <= self._refused
        return found

    def _locate_all(self, before: Collected | None, found: Collected) -> Located:
        """Who is to be read, in the session's order; about the others there is an answer now."""
        located = Located()
        for entry in tuple(self.session.ready):
            known = None if before is None else self._unmoved(entry, before)
            if known is not None:
                found.add(entry, known)
                continue
            entry.moved = False
            try:
                partition = self._locate(entry)
            except KafkaError as error:
                self._fail(entry, error, found)
                continue
            if isinstance(partition, Partition):
                located.logs.append((entry, partition))
            elif (near := self._nearer(partition)) is not None:
                found.add(entry, go_to(entry, near))
            else:
                located.remote_first = located.remote_first or not located.logs
                located.remote.append((entry, partition))
        return located

    def _fail(self, entry: Entry, error: KafkaError, found: Collected) -> None:
        found.answers[entry] = self._failed(entry, error)
        if isinstance(error, RefusedError):
            found.refused.add(entry)
        else:
            found.urgent = True

    @staticmethod
    def _unmoved(entry: Entry, before: Collected) -> PartitionData | None:
        """What was found before, if it was a replica and has not moved."""
        if entry.moved or entry.partition is None or entry in before.refused:
            return None
        return before.answers.get(entry)

    def _read_remote(
        self, entries: list[tuple[Entry, DisklessPartition]], found: Collected
    ) -> Generator[Read | RemoteRead, Any, None]:
        """The diskless partitions, all with one question to their coordinators."""
        requests = [(entry.wanted, partition) for entry, partition in entries]
        min_one, committed = found.read_bytes == 0, self._read_committed
        answers = yield from read_remote(
            requests, found.left, min_one=min_one, read_committed=committed
        )
        for (entry, _), answer in zip(entries, answers, strict=True):
            if answer.error_code:
                self._fail(entry, KafkaError(ErrorCode(answer.error_code)), found)
            else:
                found.add(entry, answer)

    def _read(
        self, entry: Entry, partition: Partition, found: Collected
    ) -> Generator[Read, ReadInfo, PartitionData]:
        wanted = entry.wanted
        log = partition.log
        offset, last_epoch = wanted.fetch_offset, max(wanted.last_fetched_epoch, -1)
        diverging = find_divergence(log, offset, last_epoch)
        if self.from_follower and self._unheard and diverging is None:
            self._hear_follower(entry, partition)
        answer = PartitionData(
            entry.index,
            high_watermark=log.high_watermark,
            last_stable_offset=log.last_stable_offset,
            log_start_offset=log.log_start_offset,
            aborted_transactions=[] if self._read_committed else None,
            records=b"",
        )
        if diverging is not None:
            answer.diverging_epoch = EpochEndOffset(*diverging)
            return answer
        limit = log.log_end_offset
        if self.from_follower:
            if is_throttled(self.context, partition, self.replica_id):
                return answer
        else:
            rack = self.request.rack_id
            near = nearer_replica(self.context, partition, wanted, rack) if rack else None
            if near is not None:
                answer.preferred_read_replica = near
                return answer
            limit = log.last_stable_offset if self._read_committed else log.high_watermark
        size = min(wanted.partition_max_bytes, found.left)
        if size < 0 and log.log_start_offset <= wanted.fetch_offset < limit:
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
        how = log.reader.read_committed if self._read_committed else log.reader.read
        read = partial(how, wanted.fetch_offset, size, limit, min_one=found.read_bytes == 0)
        try:
            data = read(block=False)
        except WouldBlock:
            data = yield partial(read, block=True)
        answer.records = data.buffer
        if data.aborted:
            answer.aborted_transactions = [
                AbortedTransaction(found.producer_id, found.first_offset) for found in data.aborted
            ]
        return answer

    def _hear_follower(self, entry: Entry, partition: Partition) -> None:
        """What a follower asks for says what it has."""
        wanted, log = entry.wanted, partition.log
        if log.log_start_offset <= wanted.fetch_offset <= log.log_end_offset:
            epoch = follower_epoch(self.request, self.context.version)
            start = wanted.log_start_offset
            partition.fetched_by(self.replica_id, wanted.fetch_offset, start, epoch)

    def _locate(self, entry: Entry) -> Partition | DisklessPartition:
        """The replica that serves an entry, or Kafka's error for why there is none."""
        context, services = self.context, self.context.services
        name: str | None = entry.topic
        if self.session.uses_topic_ids:
            name = services.image.topic_name(entry.topic_id)
            if name is None:
                # A session remembers the name of a topic that was deleted since.
                gone = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                raise RefusedError(gone if entry.topic else ErrorCode.UNKNOWN_TOPIC_ID)
            entry.topic = name
        assert name is not None  # noqa: S101 - for the type checker
        if self.from_follower:
            allowed = context.authorize_cluster(AclOperation.CLUSTER_ACTION)
        else:
            allowed = context.allowed(name)
        if not allowed:
            raise RefusedError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        state = services.image.partition(name, entry.index)
        if state is None:
            entry.attach(None)
            raise RefusedError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        if state.writes_diskless:
            if self.from_follower:
                raise RefusedError(ErrorCode.NOT_LEADER_OR_FOLLOWER)  # it has no log
            remote = services.diskless.partition(services.image, name, entry.index)
            entry.attach(remote)
            return remote
        entry.attach(services.replicas.get(name, entry.index))
        epoch = entry.wanted.current_leader_epoch
        anywhere = not self.from_follower and context.version >= ANY_REPLICA_FROM
        find = services.replicas.replica_of if anywhere else services.replicas.leader_of
        partition = find(name, entry.index, epoch)
        if self.from_follower and not partition.has_follower(self.replica_id):
            unknown = ErrorCode.NOT_LEADER_OR_FOLLOWER
            raise KafkaError(unknown if epoch < 0 else ErrorCode.UNKNOWN_LEADER_EPOCH)
        return partition

    def _nearer(self, partition: DisklessPartition) -> int | None:
        """A replica in the consumer's rack, if it has said where it is and this is elsewhere."""
        rack = self.request.rack_id
        services = self.context.services
        topic = services.image.topic(partition.topic) if rack and not self.from_follower else None
        if topic is None:
            return None
        zone = services.router.zone(self.context.client_id, self.context.listener) or rack
        own = services.settings.node.node_id
        return services.router.replica_in(topic, partition.index, zone, own)

    def _failed(self, entry: Entry, error: KafkaError) -> PartitionData:
        code = error.code
        if code is ErrorCode.KAFKA_STORAGE_ERROR and self.context.version <= 5:
            code = ErrorCode.NOT_LEADER_OR_FOLLOWER  # what such old clients retry
        answer = PartitionData(
            entry.index,
            error_code=code,
            high_watermark=-1,
            # Kafka says "none" before it looks into a log, and null when that fails.
            aborted_transactions=[] if code in _UNSEEN else None,
            records=b"",
        )
        partition = entry.partition
        # Older clients could not read it.
        tell = self.context.version >= _TELL_LEADER_FROM and code in _TELL_LEADER
        if tell and partition is not None:
            answer.current_leader = LeaderIdAndEpoch(partition.leader_id, partition.leader_epoch)
        return answer

    def enough(self, found: Collected) -> bool:
        return (
            found.urgent
            or self.request.max_wait_ms <= 0
            or len(found.refused) == len(self.session.entries)
            or found.read_bytes >= self.bytes_min
            or self.superseded
        )

    def respond(self, found: Collected) -> FetchResponse:
        """Make the answer and note what the client now knows."""
        context, session = self.context, self.session
        response = FetchResponse(session_id=session.id)
        if self.superseded:
            response.error_code = ErrorCode.INVALID_FETCH_SESSION_EPOCH
            return response
        throttle_ms = 0
        if not self.from_follower:
            throttle_ms = context.services.quotas.fetched(context, found.read_bytes)
            context.throttle_ms = max(context.throttle_ms, throttle_ms)
        if throttle_ms > 0:
            if not self.incremental:
                # The client takes an empty answer to a full fetch for none, and begins anew.
                context.services.fetch_sessions.close(session.id)
                response.session_id = NO_SESSION
            return response
        moved = session.progress != self.seen
        told = []
        for entry, answer in found.answers.items():
            if not self.incremental or self._news(entry, answer):
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
        """A fetch without a session leaves nothing behind."""
        if self.session.id == NO_SESSION:
            self.session.close()

    def _news(self, entry: Entry, answer: PartitionData) -> bool:
        return bool(
            answer.error_code
            or answer.records
            or answer.diverging_epoch.epoch >= 0
            or answer.preferred_read_replica >= 0
            or answer.high_watermark != entry.sent_high_watermark
            or answer.log_start_offset != entry.sent_log_start
        )

    def _note(self, entry: Entry, answer: PartitionData, moved: bool) -> None:
        entry.sent_high_watermark = answer.high_watermark
        entry.sent_log_start = answer.log_start_offset
        size = len(answer.records or b"")
        # The client's next request moves the offset and makes the entry ready again; what was
        # read but not taken (a client that repeats its offset without saying so) stays ready, and
        # so does all that may have moved after it was read.
        more = moved or answer.high_watermark > entry.wanted.fetch_offset
        if self.from_follower and isinstance(entry.partition, Partition):
            more = moved or expects_follower(entry.partition, self.replica_id, entry.wanted)
        elsewhere = answer.preferred_read_replica >= 0
        if answer.error_code or answer.diverging_epoch.epoch >= 0 or elsewhere:
            # Kafka repeats an error in every answer until it is gone.
            entry.sent_high_watermark = -1
            more = True
        self.session.served(entry, data=size > 0, more=more)
        if size and entry.partition is not None:
            self._count(entry.partition.topic, entry.index, size)

    def _count(self, topic: str, index: int, size: int) -> None:
        services = self.context.services
        if self.from_follower:
            services.traffic.replicated_out(topic, size)
            services.replication.leader_quota.record(topic, index, size)
        else:
            services.traffic.fetched(topic, size)
