"""Creating and deleting topics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from skylog.controller.assignments import (
    assigned_partition,
    bad_assignment,
    placed_partitions,
)
from skylog.controller.configs import ConfigChange, alter_resource
from skylog.controller.diskless import DISKLESS_ENABLE, is_wanted, with_coordinators
from skylog.controller.draws import Draws
from skylog.controller.image.configs import ConfigResource, ConfigResourceType
from skylog.controller.image.topics import Partition, Topic
from skylog.controller.levels import is_remote_by_default
from skylog.controller.managed_replicas import check_managed, managed_partitions
from skylog.controller.names import check_topic_name
from skylog.controller.racks import RackPlacer
from skylog.controller.requests import ControllerRequest
from skylog.controller.state import ControllerState, bounded
from skylog.kernel.config import Operation
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.ids import ZERO_UUID, Uuid
from skylog.kernel.limits import CONTROLLER_PARTITIONS_PER_REQUEST_MAX
from skylog.kernel.settings.remote_topics import REMOTE_STORAGE
from skylog.kernel.topics import CLUSTER_METADATA
from skylog.replicated.machine import Result
from skylog.wire.messages.config_record import ConfigRecord
from skylog.wire.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from skylog.wire.messages.create_topics_response import CreatableTopicResult, CreateTopicsResponse
from skylog.wire.messages.delete_topics_request import DeleteTopicsRequest
from skylog.wire.messages.delete_topics_response import DeletableTopicResult, DeleteTopicsResponse
from skylog.wire.messages.remove_topic_record import RemoveTopicRecord
from skylog.wire.messages.topic_record import TopicRecord
from skylog.wire.schema import Message

_USE_DEFAULT = -1


def create_topics(
    state: ControllerState, request: ControllerRequest, message: CreateTopicsRequest
) -> Result[CreateTopicsResponse]:
    """Each topic succeeds or fails on its own; all that succeed are one batch."""
    _check_partition_count(state, message.topics)
    counts = Counter(topic.name for topic in message.topics)
    draws, placer = Draws(request.seed), state.rack_placer()
    records: list[Message] = []
    response = CreateTopicsResponse()
    for topic in message.topics:
        if counts[topic.name] > 1 or topic.name == CLUSTER_METADATA:
            continue
        try:
            created, result = _create_topic(state, request, topic, draws, placer)
        except KafkaError as error:
            result = _refused(topic.name, error.code, error.message)
        else:
            records += created
        response.topics.append(result)
    for name, count in counts.items():
        if count > 1:
            why = "Duplicate topic name."
            response.topics.append(_refused(name, ErrorCode.INVALID_REQUEST, why))
        elif name == CLUSTER_METADATA:
            why = f"Creation of internal topic {name} is prohibited."
            response.topics.append(_refused(name, ErrorCode.INVALID_REQUEST, why))
    bounded(records)
    return Result(response, () if message.validate_only else records)


def _refused(name: str, code: ErrorCode, why: str | None) -> CreatableTopicResult:
    return CreatableTopicResult(name=name, error_code=code, error_message=why)


def _check_partition_count(state: ControllerState, topics: Iterable[CreatableTopic]) -> None:
    """Checked before anything is allocated."""
    total = 0
    for topic in topics:
        if topic.assignments:
            total += len(topic.assignments)
        elif topic.num_partitions == _USE_DEFAULT:
            total += state.settings.partition_count_default
        else:
            total += max(0, topic.num_partitions)
    if total > CONTROLLER_PARTITIONS_PER_REQUEST_MAX:
        raise KafkaError(
            ErrorCode.POLICY_VIOLATION, "Excessively large number of partitions per request."
        )


def _create_topic(
    state: ControllerState,
    request: ControllerRequest,
    topic: CreatableTopic,
    draws: Draws,
    placer: RackPlacer,
) -> tuple[list[Message], CreatableTopicResult]:
    _check_new_name(state, topic.name)
    overrides = _overrides(topic)
    if is_remote_by_default(state, topic.name, overrides):
        overrides[REMOTE_STORAGE] = "true"
    config_records = _config_records(state, topic.name, overrides)
    diskless = is_wanted(state, topic.name, overrides)
    if diskless:
        factor = topic.replication_factor
        check_managed(assigned=bool(topic.assignments), replication_factor=factor)
        partitions = managed_partitions(state, _partition_count(state, topic), placer)
    else:
        partitions = _new_partitions(state, topic, draws)
    request.charge(len(partitions))
    topic_id = draws.uuid()
    if diskless:
        partitions = with_coordinators(state, partitions, draws)
        if DISKLESS_ENABLE not in overrides:
            # The cluster's default may change; the type of this topic may not.
            kind = ConfigResourceType.TOPIC
            config_records.append(ConfigRecord(kind, topic.name, DISKLESS_ENABLE, "true"))
    result = CreatableTopicResult(
        name=topic.name,
        topic_id=topic_id,
        error_message=None,
        num_partitions=len(partitions),
        replication_factor=len(partitions[0].replicas),
        configs=list(state.configs.describe_topic(state.layers(overrides))),
    )
    records: list[Message] = [TopicRecord(topic.name, topic_id), *config_records]
    records += [found.to_record(topic_id, index) for index, found in enumerate(partitions)]
    return records, result


def _check_new_name(state: ControllerState, name: str) -> None:
    topics = state.image.topics
    if name in topics.by_name:
        raise KafkaError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
    check_topic_name(name)
    colliding = topics.colliding(name)
    if colliding is not None:
        raise KafkaError(
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            f"Topic '{name}' collides with existing topic: {colliding}",
        )


def _overrides(topic: CreatableTopic) -> dict[str, str]:
    nulls = [config.name for config in topic.configs if config.value is None]
    if nulls:
        raise KafkaError(
            ErrorCode.INVALID_CONFIG,
            f"Null value not supported for topic configs: {','.join(nulls)}",
        )
    return {config.name: config.value or "" for config in topic.configs}


def _config_records(
    state: ControllerState, name: str, overrides: Mapping[str, str]
) -> list[Message]:
    if not overrides:
        return []
    changes = {key: ConfigChange(Operation.SET, value) for key, value in overrides.items()}
    resource = ConfigResource(ConfigResourceType.TOPIC, name)
    return alter_resource(state, resource, changes, new=True)


def _new_partitions(state: ControllerState, topic: CreatableTopic, draws: Draws) -> list[Partition]:
    if topic.assignments:
        return _assigned_partitions(state, topic)
    if topic.replication_factor < _USE_DEFAULT or topic.replication_factor == 0:
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            "Replication factor must be larger than 0, or -1 to use the default value.",
        )
    count, replicas = _partition_count(state, topic), topic.replication_factor
    if replicas == _USE_DEFAULT:
        replicas = state.settings.replication_factor_default
    return placed_partitions(state, count, replicas, draws)


def _partition_count(state: ControllerState, topic: CreatableTopic) -> int:
    if topic.num_partitions < _USE_DEFAULT or topic.num_partitions == 0:
        raise KafkaError(
            ErrorCode.INVALID_PARTITIONS,
            "Number of partitions must be larger than 0, or -1 to use the default value.",
        )
    if topic.num_partitions == _USE_DEFAULT:
        return state.settings.partition_count_default
    return topic.num_partitions


def _assigned_partitions(state: ControllerState, topic: CreatableTopic) -> list[Partition]:
    for name, value in (
        ("the replication factor", topic.replication_factor),
        ("the number of partitions", topic.num_partitions),
    ):
        if value != _USE_DEFAULT:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                f"A manual partition assignment was specified, but {name} was not set to -1.",
            )
    by_index: dict[int, Partition] = {}
    replication_factor: int | None = None
    for assignment in topic.assignments:
        index = assignment.partition_index
        if index in by_index:
            raise bad_assignment(f"Found multiple assignments for partition {index}.")
        by_index[index] = assigned_partition(
            state, index, assignment.broker_ids, replication_factor
        )
        replication_factor = len(assignment.broker_ids)
    if sorted(by_index) != list(range(len(by_index))):
        raise bad_assignment("Partitions should be a consecutive 0-based integer sequence.")
    return [by_index[index] for index in range(len(by_index))]


def delete_topics(
    state: ControllerState, request: ControllerRequest, message: DeleteTopicsRequest
) -> Result[DeleteTopicsResponse]:
    """By name or by id; one that is repeated, even once each way, is refused."""
    if not state.settings.delete_topic_enable:
        if request.version < 3:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST, "This version does not support topic deletion."
            )
        raise KafkaError(ErrorCode.TOPIC_DELETION_DISABLED)
    deletion = _Deletion(state, request)
    names = list(message.topic_names)
    ids: list[Uuid] = []
    for topic in message.topics:
        if topic.name is None and topic.topic_id == ZERO_UUID:
            deletion.refuse(None, ZERO_UUID, "Neither topic name nor id were specified.")
        elif topic.name is None:
            ids.append(topic.topic_id)
        elif topic.topic_id == ZERO_UUID:
            names.append(topic.name)
        else:
            deletion.refuse(
                topic.name, topic.topic_id, "You may not specify both topic name and topic id."
            )
    deletion.by_id(ids)
    deletion.by_name(names)
    return Result(deletion.response, bounded(deletion.delete()))


class _Deletion:
    """The steps of one DeleteTopics request."""

    def __init__(self, state: ControllerState, request: ControllerRequest) -> None:
        self.response = DeleteTopicsResponse()
        self._state = state
        self._request = request
        self._chosen: dict[Uuid, Topic] = {}
        self._named_twice: set[Uuid] = set()

    def refuse(
        self,
        name: str | None,
        topic_id: Uuid,
        why: str | None,
        code: ErrorCode = ErrorCode.INVALID_REQUEST,
    ) -> None:
        self.response.responses.append(DeletableTopicResult(name, topic_id, code, why))

    def by_id(self, ids: list[Uuid]) -> None:
        for topic_id, count in Counter(ids).items():
            topic = self._state.image.topic_by_id(topic_id)
            if count > 1:
                self._named_twice.add(topic_id)
                self.refuse(None, topic_id, "Duplicate topic id.")
            elif topic is None:
                why = "This server does not host this topic ID."
                self.refuse(None, topic_id, why, ErrorCode.UNKNOWN_TOPIC_ID)
            else:
                self._chosen[topic_id] = topic

    def by_name(self, names: list[str]) -> None:
        for name, count in Counter(names).items():
            topic = self._state.image.topic(name)
            if count > 1:
                self.refuse(name, ZERO_UUID, "Duplicate topic name.")
            elif topic is None:
                why = "This server does not host this topic-partition."
                self.refuse(name, ZERO_UUID, why, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            elif topic.topic_id in self._chosen or topic.topic_id in self._named_twice:
                self._chosen.pop(topic.topic_id, None)
                self.refuse(
                    name,
                    topic.topic_id,
                    "The provided topic name maps to an ID that was already supplied.",
                )
            else:
                self._chosen[topic.topic_id] = topic

    def delete(self) -> list[Message]:
        records: list[Message] = []
        for topic_id, topic in self._chosen.items():
            try:
                self._request.charge(len(topic.partitions))
            except KafkaError as error:
                self.refuse(topic.name, topic_id, error.message, error.code)
                continue
            self.response.responses.append(DeletableTopicResult(topic.name, topic_id))
            records.append(RemoveTopicRecord(topic_id))
        return records
