"""Registration, heartbeats and departure of brokers.

=====================  =====================  ==================================================
a broker that is       goes to                when
=====================  =====================  ==================================================
fenced                 unfenced               a heartbeat does not ask to stay fenced and the
                                              broker has read its own registration
fenced                 gone                   it asks to shut down
unfenced               fenced                 it asks to, or its session expires
unfenced               controlled shutdown    it asks to shut down and still leads partitions
unfenced               gone (fenced)          it asks to shut down and leads none
controlled shutdown    gone (fenced)          it leads none, and the others have read so
=====================  =====================  ==================================================
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import Any, Final

from skylog.controller.features import check_broker_features
from skylog.controller.image.brokers import (
    ENTER_CONTROLLED_SHUTDOWN,
    FENCE,
    UNFENCE,
    Broker,
    is_reserved_directory,
)
from skylog.controller.image.topics import Topic
from skylog.controller.levels import check_broker_level
from skylog.controller.requests import Contact, ControllerRequest, Departed, SessionExpired
from skylog.controller.state import ControllerState, bounded
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.ids import Uuid
from skylog.replicated.machine import CancelTimer, Result, StartTimer
from skylog.wire.messages import register_broker_record, register_controller_record
from skylog.wire.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from skylog.wire.messages.broker_heartbeat_response import BrokerHeartbeatResponse
from skylog.wire.messages.broker_registration_change_record import BrokerRegistrationChangeRecord
from skylog.wire.messages.broker_registration_request import BrokerRegistrationRequest
from skylog.wire.messages.broker_registration_response import BrokerRegistrationResponse
from skylog.wire.messages.controller_registration_request import ControllerRegistrationRequest
from skylog.wire.messages.controller_registration_response import ControllerRegistrationResponse
from skylog.wire.messages.register_broker_record import RegisterBrokerRecord
from skylog.wire.messages.register_controller_record import RegisterControllerRecord
from skylog.wire.messages.unregister_broker_record import UnregisterBrokerRecord
from skylog.wire.messages.unregister_broker_request import UnregisterBrokerRequest
from skylog.wire.messages.unregister_broker_response import UnregisterBrokerResponse
from skylog.wire.schema import Message

_OFFSET_MAX: Final = 2**63 - 1


class _Next(Enum):
    """What a heartbeat does to its broker."""

    FENCED = "fenced"
    UNFENCED = "unfenced"
    CONTROLLED_SHUTDOWN = "controlled shutdown"
    SHUTDOWN_NOW = "gone"


def register_broker(
    state: ControllerState,
    request: ControllerRequest,
    message: BrokerRegistrationRequest,
    now_ms: int,
) -> Result[BrokerRegistrationResponse]:
    """A new incarnation gets a new epoch, and its predecessor's leaderships are given up."""
    settings = state.settings
    if message.cluster_id != settings.cluster_id:
        raise KafkaError(
            ErrorCode.INCONSISTENT_CLUSTER_ID,
            f"This is cluster {settings.cluster_id}, not {message.cluster_id}.",
        )
    existing = state.image.broker(message.broker_id)
    same = existing is not None and existing.incarnation_id == message.incarnation_id
    if existing is not None and not same and _session_left_ms(state, existing, now_ms) > 0:
        raise KafkaError(
            ErrorCode.DUPLICATE_BROKER_REGISTRATION,
            f"Another broker {message.broker_id} is registered and alive. If it was restarted, "
            "this goes away when the old session expires.",
        )
    if message.is_migrating_zk_broker:
        raise KafkaError(
            ErrorCode.BROKER_ID_NOT_REGISTERED, "Brokers on ZooKeeper cannot be registered."
        )
    _check_directories(state, message.broker_id, message.log_dirs)
    check_broker_features(state, message)
    check_broker_level(state, message)
    record = _registration(message)
    records: list[Message] = []
    if existing is not None and same:
        record.fenced = existing.fenced
        record.in_controlled_shutdown = existing.in_controlled_shutdown
        record.broker_epoch = existing.epoch
    else:
        record.broker_epoch = request.next_offset
        clean = (
            request.version >= 3
            and existing is not None
            and existing.epoch == message.previous_broker_epoch
        )
        records += _shutdown_updates(state, message.broker_id, clean=clean)
    records.append(record)
    return Result(BrokerRegistrationResponse(broker_epoch=record.broker_epoch), records)


def _registration(message: BrokerRegistrationRequest) -> RegisterBrokerRecord:
    return RegisterBrokerRecord(
        broker_id=message.broker_id,
        incarnation_id=message.incarnation_id,
        rack=message.rack,
        end_points=[
            register_broker_record.BrokerEndpoint(
                listener.name, listener.host, listener.port, listener.security_protocol
            )
            for listener in message.listeners
        ],
        features=[
            register_broker_record.BrokerFeature(
                feature.name, feature.min_supported_version, feature.max_supported_version
            )
            for feature in message.features
        ],
        log_dirs=list(message.log_dirs),
    )


def _session_left_ms(state: ControllerState, broker: Broker, now_ms: int) -> int:
    session = state.sessions.get(broker.broker_id)
    if session is None or session.epoch != broker.epoch:
        return 0
    return max(session.now_ms + state.settings.session_timeout_ms - now_ms, 0)


def _check_directories(state: ControllerState, broker_id: int, directories: list[Uuid]) -> None:
    if not directories:
        raise _bad_registration("No directories specified in request")
    if any(is_reserved_directory(directory) for directory in directories):
        raise _bad_registration("Reserved directory ID in request")
    if len(set(directories)) != len(directories):
        raise _bad_registration("Duplicate directory ID in request")
    for directory in directories:
        owner = state.image.brokers.owner(directory)
        if owner is not None and owner != broker_id:
            raise _bad_registration(f"Broker {owner} is registered with directory {directory}.")


def _bad_registration(why: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REGISTRATION, why)


def _shutdown_updates(state: ControllerState, broker_id: int, *, clean: bool) -> list[Message]:
    """Cleanup after an incarnation; one that crashed may have lost data that it had
    acknowledged."""
    in_sync = state.partitions_in_sync_with(broker_id)
    if clean or not state.elr_enabled:
        return state.updates(in_sync, removed=broker_id)
    return [
        *state.updates(in_sync, unclean_shutdown=broker_id),
        *state.updates(state.partitions_eligible_for(broker_id), unclean_shutdown=broker_id),
    ]


def heartbeat(
    state: ControllerState, request: ControllerRequest, message: BrokerHeartbeatRequest, now_ms: int
) -> Result[BrokerHeartbeatResponse]:
    broker = state.broker_of_epoch(message.broker_id, message.broker_epoch)
    registration_offset = state.registration_offsets.get(broker.broker_id, -1)
    caught_up = message.current_metadata_offset >= registration_offset
    session = state.sessions.get(broker.broker_id)
    shutdown_offset = -1 if session is None else session.controlled_shutdown_offset
    following = _next_state(state, broker, message, caught_up, shutdown_offset)
    records = _transition(state, broker, following, shutting_down=shutdown_offset >= 0)
    records += _offline_directories(state, broker, message.offline_log_dirs)
    records += _cordoned_directories(broker, message.cordoned_log_dirs)
    fenced = following in (_Next.FENCED, _Next.SHUTDOWN_NOW)
    response = BrokerHeartbeatResponse(
        is_caught_up=caught_up,
        is_fenced=fenced,
        should_shut_down=following is _Next.SHUTDOWN_NOW,
    )
    timer = session_timer(broker, state.settings.session_timeout_ms)
    if following is _Next.SHUTDOWN_NOW:
        return Result(response, records, [Departed(broker.broker_id)], [CancelTimer(timer.key)])
    if fenced:
        shutdown_offset = -1
    elif following is _Next.CONTROLLED_SHUTDOWN and shutdown_offset < 0:
        shutdown_offset = request.next_offset + len(records) - 1
    contact = Contact(
        broker.broker_id,
        broker.epoch,
        now_ms,
        message.current_metadata_offset,
        shutdown_offset,
    )
    return Result(response, records, [contact], [timer])


def session_timer(broker: Broker, delay_ms: int) -> StartTimer:
    expired = SessionExpired(broker.broker_id, broker.epoch)
    return StartTimer(("broker-session", broker.broker_id), delay_ms, expired)


def _next_state(
    state: ControllerState,
    broker: Broker,
    message: BrokerHeartbeatRequest,
    caught_up: bool,
    shutdown_offset: int,
) -> _Next:
    """The table above."""
    if shutdown_offset >= 0:
        if state.leads_any(broker.broker_id):
            return _Next.CONTROLLED_SHUTDOWN
        read = _lowest_active_offset(state, broker.broker_id)
        return _Next.SHUTDOWN_NOW if shutdown_offset <= read else _Next.CONTROLLED_SHUTDOWN
    if broker.fenced:
        if message.want_shut_down:
            return _Next.SHUTDOWN_NOW
        return _Next.UNFENCED if caught_up and not message.want_fence else _Next.FENCED
    if message.want_fence:
        return _Next.SHUTDOWN_NOW if message.want_shut_down else _Next.FENCED
    if not message.want_shut_down:
        return _Next.UNFENCED
    leads = state.leads_any(broker.broker_id)
    return _Next.CONTROLLED_SHUTDOWN if leads else _Next.SHUTDOWN_NOW


def _lowest_active_offset(state: ControllerState, leaving: int) -> int:
    """How far every remaining broker has read the metadata log."""
    offsets = [
        _metadata_offset(state, broker.broker_id)
        for broker in state.image.brokers.by_id.values()
        if broker.active and broker.broker_id != leaving
    ]
    return min(offsets, default=_OFFSET_MAX)


def _metadata_offset(state: ControllerState, broker_id: int) -> int:
    session = state.sessions.get(broker_id)
    return -1 if session is None else session.metadata_offset


def _transition(
    state: ControllerState, broker: Broker, following: _Next, *, shutting_down: bool
) -> list[Message]:
    match following:
        case _Next.FENCED | _Next.SHUTDOWN_NOW if not broker.fenced:
            return _fence(state, broker)
        case _Next.UNFENCED if broker.fenced:
            return _unfence(state, broker)
        case _Next.CONTROLLED_SHUTDOWN if not shutting_down:
            return _enter_controlled_shutdown(state, broker)
    return []


def _change(broker: Broker, **changes: Any) -> BrokerRegistrationChangeRecord:
    return BrokerRegistrationChangeRecord(
        broker_id=broker.broker_id, broker_epoch=broker.epoch, **changes
    )


def _fence(state: ControllerState, broker: Broker) -> list[Message]:
    in_sync = state.partitions_in_sync_with(broker.broker_id)
    return [
        *state.updates(in_sync, removed=broker.broker_id),
        _change(broker, fenced=FENCE),
    ]


def _unfence(state: ControllerState, broker: Broker) -> list[Message]:
    return [
        _change(broker, fenced=UNFENCE),
        *state.updates(state.waiting_for(broker.broker_id), added=broker.broker_id),
    ]


def _enter_controlled_shutdown(state: ControllerState, broker: Broker) -> list[Message]:
    records: list[Message] = []
    if not broker.in_controlled_shutdown:
        records.append(_change(broker, in_controlled_shutdown=ENTER_CONTROLLED_SHUTDOWN))
    in_sync = state.partitions_in_sync_with(broker.broker_id)
    return [*records, *state.updates(in_sync, removed=broker.broker_id)]


def _offline_directories(
    state: ControllerState, broker: Broker, offline: Iterable[Uuid]
) -> list[Message]:
    lost = set(offline) & set(broker.directories)
    if not lost:
        return []
    online = [directory for directory in broker.directories if directory not in lost]
    affected: list[tuple[Topic, int]] = [
        (topic, index)
        for topic, index, partition in state.all_partitions()
        if partition.has_log
        and broker.broker_id in partition.replicas
        and partition.directory(broker.broker_id) in lost
    ]
    return [
        *state.updates(affected, removed=broker.broker_id),
        _change(broker, log_dirs=online),
    ]


def _cordoned_directories(broker: Broker, cordoned: list[Uuid] | None) -> list[Message]:
    """A broker does not report them until it has read all metadata."""
    known = broker.cordoned_directories
    if cordoned is None or (known is not None and set(known) == set(cordoned)):
        return []
    return [_change(broker, cordoned_log_dirs=list(cordoned))]


def expire_session(state: ControllerState, request: SessionExpired, now_ms: int) -> Result[None]:
    broker = state.image.broker(request.broker_id)
    if broker is None or broker.epoch != request.epoch or broker.fenced:
        return Result(None)
    left_ms = _session_left_ms(state, broker, now_ms)
    if left_ms > 0:
        # Timers may fire slightly early: wait only for the rest, not for another session.
        return Result(None, effects=[session_timer(broker, left_ms)])
    return Result(None, _fence(state, broker))


def unregister_broker(
    state: ControllerState, _request: ControllerRequest, message: UnregisterBrokerRequest
) -> Result[UnregisterBrokerResponse]:
    broker = state.image.broker(message.broker_id)
    if broker is None:
        raise KafkaError(
            ErrorCode.BROKER_ID_NOT_REGISTERED, f"Broker {message.broker_id} is not registered."
        )
    records: list[Message] = [
        *state.updates(_in_sync_or_eligible(state, broker.broker_id), removed=broker.broker_id),
        UnregisterBrokerRecord(broker.broker_id, broker.epoch),
    ]
    return Result(UnregisterBrokerResponse(), bounded(records))


def _in_sync_or_eligible(state: ControllerState, broker_id: int) -> Iterable[tuple[Topic, int]]:
    for topic, index, partition in state.all_partitions():
        if broker_id in partition.isr or broker_id in partition.elr:
            yield topic, index


def register_controller(
    _state: ControllerState, _request: ControllerRequest, message: ControllerRegistrationRequest
) -> Result[ControllerRegistrationResponse]:
    record = RegisterControllerRecord(
        controller_id=message.controller_id,
        incarnation_id=message.incarnation_id,
        end_points=[
            register_controller_record.ControllerEndpoint(
                listener.name, listener.host, listener.port, listener.security_protocol
            )
            for listener in message.listeners
        ],
        features=[
            register_controller_record.ControllerFeature(
                feature.name, feature.min_supported_version, feature.max_supported_version
            )
            for feature in message.features
        ],
    )
    return Result(ControllerRegistrationResponse(error_message=None), [record])
