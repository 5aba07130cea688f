"""Elections on request, and periodic elections by the controller."""

from __future__ import annotations

from enum import IntEnum

from skylog.controller.image.topics import NO_LEADER
from skylog.controller.partition_change import Election
from skylog.controller.requests import (
    ControllerRequest,
    ElectPreferredLeaders,
    ElectUncleanLeaders,
)
from skylog.controller.state import ControllerState, bounded
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.replicated.machine import Result, StartTimer
from skylog.wire.messages.elect_leaders_request import ElectLeadersRequest
from skylog.wire.messages.elect_leaders_response import (
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)
from skylog.wire.messages.partition_change_record import PartitionChangeRecord
from skylog.wire.schema import Message


class ElectionType(IntEnum):
    """The election types that a client may request."""

    PREFERRED = 0
    UNCLEAN = 1


def elect_leaders(
    state: ControllerState, _request: ControllerRequest, message: ElectLeadersRequest
) -> Result[ElectLeadersResponse]:
    if message.topic_partitions == []:
        return Result(ElectLeadersResponse())
    if message.election_type not in ElectionType._value2member_map_:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"Unknown election type {message.election_type}"
        )
    election = ElectionType(message.election_type)
    response = ElectLeadersResponse()
    records: list[Message] = []
    everything = message.topic_partitions is None
    for name, indexes in _asked_for(state, message):
        results = ReplicaElectionResult(name)
        for index in indexes:
            result = PartitionResult(index, 0, None)
            try:
                records.append(_elect(state, name, index, election))
            except KafkaError as error:
                if everything and error.code is ErrorCode.ELECTION_NOT_NEEDED:
                    continue
                result = PartitionResult(index, error.code, error.message)
            results.partition_result.append(result)
        response.replica_election_results.append(results)
    return Result(response, bounded(records))


def _asked_for(state: ControllerState, message: ElectLeadersRequest) -> list[tuple[str, list[int]]]:
    if message.topic_partitions is not None:
        return [(asked.topic, asked.partitions) for asked in message.topic_partitions]
    topics = state.image.topics.by_name
    return [(name, sorted(topic.partitions)) for name, topic in topics.items()]


def _elect(
    state: ControllerState, name: str, index: int, election: ElectionType
) -> PartitionChangeRecord:
    topic = state.image.topic(name)
    if topic is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such topic as {name}")
    partition = topic.partitions.get(index)
    if partition is None:
        raise KafkaError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such partition as {name}-{index}"
        )
    preferred = election is ElectionType.PREFERRED
    if preferred:
        settled = partition.leader == partition.preferred_replica
    else:
        settled = partition.leader != NO_LEADER
    if settled:
        raise KafkaError(
            ErrorCode.ELECTION_NOT_NEEDED, "Leader election not needed for topic partition."
        )
    change = state.change(topic, index)
    change.election = Election.PREFERRED if preferred else Election.UNCLEAN
    record = change.build()
    if record is not None:
        return record
    if preferred:
        raise KafkaError(
            ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, "The preferred leader was not available."
        )
    raise KafkaError(
        ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
        "Eligible topic partition leaders are not available.",
    )


def election_timers(state: ControllerState) -> list[StartTimer]:
    """For the controller's own elections."""
    settings = state.settings
    timers = [_unclean_timer(settings.unclean_election_interval_ms)]
    if settings.leader_rebalance_enable:
        timers.append(_preferred_timer(settings.leader_check_interval_ms))
    return timers


def _preferred_timer(delay_ms: int) -> StartTimer:
    return StartTimer("elect-preferred-leaders", delay_ms, ElectPreferredLeaders())


def _unclean_timer(delay_ms: int) -> StartTimer:
    return StartTimer("elect-unclean-leaders", delay_ms, ElectUncleanLeaders())


def elect_preferred_leaders(state: ControllerState) -> Result[None]:
    """A bounded number at a time; if more is left, it continues at once."""
    most = state.settings.elections_per_check_max
    records = _preferred_elections(state, most)
    delay_ms = 0 if len(records) >= most else state.settings.leader_check_interval_ms
    return Result(None, records, effects=[_preferred_timer(delay_ms)])


def elect_unclean_leaders(state: ControllerState) -> Result[None]:
    """A bounded number at a time; if more is left, it continues at once."""
    most = state.settings.elections_per_check_max
    records = _unclean_elections(state, most)
    delay_ms = 0 if len(records) >= most else state.settings.unclean_election_interval_ms
    return Result(None, records, effects=[_unclean_timer(delay_ms)])


def _preferred_elections(state: ControllerState, most: int) -> list[Message]:
    topics = state.image.topics
    records: list[Message] = []
    for topic_id, index in topics.imbalanced:
        if len(records) >= most:
            break
        topic = topics.by_id[topic_id]
        if topic.partitions[index].leader == NO_LEADER and state.unclean_election(topic.name):
            continue  # the other kind of election is about to handle it
        change = state.change(topic, index)
        change.election = Election.PREFERRED
        record = change.build()
        if record is not None:
            records.append(record)
    return records


def _unclean_elections(state: ControllerState, most: int) -> list[Message]:
    records: list[Message] = []
    for topic, index in state.leaderless():
        if len(records) >= most:
            break
        if not state.unclean_election(topic.name):
            continue
        change = state.change(topic, index)
        change.election = Election.UNCLEAN
        record = change.build()
        if record is not None:
            records.append(record)
    return records
