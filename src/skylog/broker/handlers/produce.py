"""Produce: validate each partition's batch, append it, wait as ``acks`` asks, respond once.

A partition that fails affects no other. Validation of a large compressed batch runs off the event
loop; everything else runs at once, in the callback that delivered the request. For results that are
not known at once (see ``partitions.port``) each resolver is called once, and the response follows.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from skylog.broker.handlers.produce_transactions import (
    begin_verification,
    has_transactional,
    note_verified,
    transactional_denied,
)
from skylog.broker.handlers.verification import Verification, finish_verification
from skylog.broker.net.answers import Close, Later
from skylog.broker.net.context import RequestContext
from skylog.broker.partitions.port import AppendOutcome, ServedPartition, Writing
from skylog.broker.partitions.questions import Question
from skylog.controller.image.topics import Topic
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.ids import Uuid
from skylog.kernel.topics import is_internal
from skylog.kernel.waiting import all_done
from skylog.log.verification import CLIENT, Origin
from skylog.wire.buffers import Buffer
from skylog.wire.messages.produce_request import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from skylog.wire.messages.produce_response import (
    BatchIndexAndErrorMessage,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)
from skylog.wire.topic_rules import TopicRules
from skylog.wire.validation import (
    UnreadableError,
    Validated,
    ValidationError,
    is_long,
    validate,
)

ALL, NONE, LEADER = -1, 0, 1
# Kafka returns the log start offset with every error but these.
_WITHOUT_LOG_START = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.RECORD_LIST_TOO_LARGE,
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.KAFKA_STORAGE_ERROR,
    }
)
ADMIN_CLIENT_ID = "__admin_client"
# Older clients cannot parse the current leader.
TELL_LEADER_FROM = 10
_NO_RECORD_ERRORS: list[BatchIndexAndErrorMessage] = []
_NO_LEADER = LeaderIdAndEpoch()


@dataclass(slots=True)
class Slot:
    """One partition of a request. ``partition`` is None once it has failed."""

    topic: str
    data: PartitionProduceData
    answer: PartitionProduceResponse
    partition: ServedPartition | None = None
    rules: TopicRules | None = None
    origin: Origin = CLIENT

    @property
    def records(self) -> Buffer:
        return self.data.records if self.data.records is not None else b""


def produce(
    context: RequestContext, request: ProduceRequest
) -> ProduceResponse | Awaitable[ProduceResponse | None] | None:
    """Handle a Produce request; None for ``acks=0``."""
    work = Produce(context, request)
    transactional = has_transactional(request)
    denied = transactional_denied(context, request) if transactional else None
    for topic in _each_once(request.topic_data):
        work.open(topic, denied)
    if transactional and denied is None:
        verification = begin_verification(work)
        if verification is not None:
            return work.verify_and_write(verification)
    for slot in work.slots:
        if slot.rules is not None and is_long(slot.records, slot.rules):
            return work.write_slowly()
    return work.write()


class Produce:
    """One Produce request."""

    __slots__ = ("_questions", "context", "request", "response", "slots")

    def __init__(self, context: RequestContext, request: ProduceRequest) -> None:
        self.context = context
        self.request = request
        self.response = ProduceResponse()
        self.slots: list[Slot] = []
        # Questions of the partitions, by resolver.
        self._questions: dict[Any, list[tuple[Slot, Any]]] = {}

    def open(self, topic: TopicProduceData, transactional: KafkaError | None) -> None:
        """Find the partitions of a topic that may be written to."""
        context, services = self.context, self.context.services
        name, error = topic.name, transactional
        if context.version >= 13:
            name = services.image.topic_name(topic.topic_id) or ""
            if not name:
                error = error or KafkaError(ErrorCode.UNKNOWN_TOPIC_ID)
        if error is None and not context.allowed(name):
            error = KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        known = None if error is not None else services.image.topic(name)
        answers: list[PartitionProduceResponse] = []
        for data in topic.partition_data:
            # The shared values are never changed in place.
            answer = PartitionProduceResponse(
                data.index, 0, -1, -1, -1, _NO_RECORD_ERRORS, None, _NO_LEADER
            )
            answers.append(answer)
            slot = Slot(name, data, answer)
            self.slots.append(slot)
            if error is not None:
                # Not raised: its traceback would refer to this frame, and thus to itself and the
                # request.
                self.fail(slot, error)
                continue
            try:
                slot.partition = self._writable(known, slot)
                slot.rules = services.configs.topic_rules(name)
            except KafkaError as failure:
                self.fail(slot, failure)
        self.response.responses.append(TopicProduceResponse(topic.name, topic.topic_id, answers))

    def _writable(self, known: Topic | None, slot: Slot) -> ServedPartition:
        index = slot.data.index
        if known is None or index not in known.partitions:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        if self.request.acks not in (ALL, NONE, LEADER):
            raise KafkaError(ErrorCode.INVALID_REQUIRED_ACKS)
        if is_internal(slot.topic) and self.context.client_id != ADMIN_CLIENT_ID:
            raise KafkaError(
                ErrorCode.INVALID_TOPIC_EXCEPTION, f"Cannot append to internal topic {slot.topic}"
            )
        partition = self.context.services.partitions.find_in(known, index)
        partition.require_leader()
        return partition

    async def verify_and_write(self, verification: Verification) -> ProduceResponse | None:
        """Write once the transaction's coordinator has agreed."""
        await finish_verification(self.context.services, verification)
        note_verified(self, verification)
        for slot in self.slots:
            why = _gone(slot)
            if why is not None:
                self.fail(slot, why)
        return await self.write_slowly()

    async def write_slowly(self) -> ProduceResponse | None:
        """Write in a task, with slow validation on a thread, so that other clients are not held
        up."""
        services = self.context.services
        now_ms = services.clock.now_ms()
        chosen = [slot for slot in self.slots if slot.rules is not None]
        validated = None
        if any(slot.rules and is_long(slot.records, slot.rules) for slot in chosen):
            found = await services.validators.run(
                lambda: [self._validated(slot, now_ms) for slot in chosen]
            )
            validated = {
                id(slot): _gone(slot) or one for slot, one in zip(chosen, found, strict=True)
            }
        answer = self.write(validated)
        return await answer if isinstance(answer, Later) else answer

    def write(
        self, validated: Mapping[int, Validated | KafkaError] | None = None
    ) -> ProduceResponse | Later | None:
        """Append every batch; the response follows later if something must first be uploaded or
        replicated. ``validated`` holds earlier results of validation, by the id of the slot."""
        now_ms = self.context.services.clock.now_ms()
        acks_all = self.request.acks == ALL
        for slot in self.slots:
            partition = slot.partition
            if partition is None:
                continue
            batch = self._validated(slot, now_ms) if validated is None else validated[id(slot)]
            try:
                if acks_all:
                    partition.require_in_sync()
                if isinstance(batch, KafkaError):
                    self._refuse(slot, partition, batch)
                    continue
                appended = partition.append(batch, slot.origin, now_ms, acks_all=acks_all)
            except KafkaError as error:
                self._refuse(slot, partition, error)
                continue
            if isinstance(appended, Question):
                self._questions.setdefault(appended.resolver, []).append((slot, appended.asked))
            else:
                _fill(slot, appended)
        if not self._questions:
            return self._answer()
        number, under_way = self.context.correlation_id, []
        for resolver, questions in self._questions.items():
            writing: Writing = resolver([asked for _, asked in questions], number)
            under_way.append((questions, writing))
        return Later(
            all_done([writing.done for _, writing in under_way]),
            partial(self._finish, under_way),
            max(self.request.timeout_ms, 0) / 1000,
            overlaps=not any(writing.waits for _, writing in under_way),
        )

    def _validated(self, slot: Slot, now_ms: int) -> Validated | KafkaError:
        assert slot.rules is not None  # noqa: S101 - for the type checker
        try:
            return validate(slot.records, slot.rules, now_ms, self.context.version)
        except KafkaError as error:
            return error.without_frames()

    def _refuse(self, slot: Slot, partition: ServedPartition, error: KafkaError) -> None:
        """Fail a batch that the log, or a check before it, refuses."""
        if not isinstance(error, UnreadableError) and error.code not in _WITHOUT_LOG_START:
            slot.answer.log_start_offset = partition.log_start_offset
        self.fail(slot, error)

    def fail(self, slot: Slot, error: KafkaError) -> None:
        """Respond with an error; the slot is done."""
        services, answer = self.context.services, slot.answer
        answer.error_code = error.code
        slot.partition = slot.rules = None
        if services.image.topic(slot.topic) is not None:  # the name comes from the client
            services.traffic.rejected(slot.topic)
        if isinstance(error, UnreadableError) and error.code is ErrorCode.CORRUPT_MESSAGE:
            answer.error_message = error.message
        if isinstance(error, ValidationError):
            # Kafka includes a message only for errors of single records.
            answer.error_message = error.message
            answer.record_errors = [
                BatchIndexAndErrorMessage(index, message) for index, message in error.record_errors
            ]
        moved = error.code is ErrorCode.NOT_LEADER_OR_FOLLOWER
        if moved and self.context.version >= TELL_LEADER_FROM:
            state = services.image.partition(slot.topic, answer.index)
            if state is not None:
                answer.current_leader = LeaderIdAndEpoch(state.leader, state.leader_epoch)

    def _finish(
        self, under_way: Sequence[tuple[Sequence[tuple[Slot, Any]], Writing]]
    ) -> ProduceResponse | None:
        """Enter the results that are known, and build the response."""
        for questions, writing in under_way:
            for (slot, _), result in zip(questions, writing.results(), strict=True):
                if result.error is ErrorCode.NONE:
                    _fill(slot, result)
                else:
                    self.fail(slot, KafkaError(result.error, result.message or ""))
        return self._answer()

    def _answer(self) -> ProduceResponse | None:
        context, response = self.context, self.response
        services = context.services
        throttle_ms = services.quotas.produced(context, context.request_bytes)
        context.throttle_ms = max(context.throttle_ms, throttle_ms)
        failed = [slot.answer for slot in self.slots if slot.answer.error_code]
        if self.request.acks == NONE:
            if failed:
                raise Close("a batch sent with acks=0 failed")
            return None
        if not failed:
            return response
        leaders = {answer.current_leader.leader_id for answer in failed} - {-1}
        for node in services.image.endpoints(leaders, context.listener):
            response.node_endpoints.append(NodeEndpoint(node.id, node.host, node.port, node.rack))
        return response


def _each_once(topics: list[TopicProduceData]) -> list[TopicProduceData]:
    """If a partition is repeated in a request, only the last entry counts, as in Kafka."""
    if len(topics) == 1:
        listed = topics[0].partition_data
        if len(listed) == 1 or len({data.index for data in listed}) == len(listed):
            return topics
    kept: dict[tuple[str, Uuid], dict[int, PartitionProduceData]] = {}
    for topic in topics:
        partitions = kept.setdefault((topic.name, topic.topic_id), {})
        partitions.update((data.index, data) for data in topic.partition_data)
    return [
        TopicProduceData(name, topic_id, list(partitions.values()))
        for (name, topic_id), partitions in kept.items()
    ]


def _gone(slot: Slot) -> KafkaError | None:
    """Why a partition can no longer be written to, after a wait."""
    if slot.partition is not None:
        try:
            slot.partition.require_leader()
        except KafkaError as error:
            return error.without_frames()
    return None


def _fill(slot: Slot, appended: AppendOutcome) -> None:
    answer = slot.answer
    answer.base_offset = appended.base_offset
    answer.log_append_time_ms = appended.log_append_time
    answer.log_start_offset = appended.log_start_offset
