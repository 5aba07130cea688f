"""The controller: the only machine that writes the metadata log.

Requests are Kafka's own messages; each family has a module whose functions read the state and
return a reply and records. A request that fails as a whole raises KafkaError, which the caller
turns into the API's response.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from skylog.controller.acls import create_acls, delete_acls
from skylog.controller.activation import activate
from skylog.controller.alter_partition import alter_partition, assign_replicas_to_dirs
from skylog.controller.brokers import (
    expire_session,
    heartbeat,
    register_broker,
    register_controller,
    unregister_broker,
)
from skylog.controller.configs import alter_configs, incremental_alter_configs
from skylog.controller.elections import (
    elect_leaders,
    elect_preferred_leaders,
    elect_unclean_leaders,
)
from skylog.controller.features import update_features
from skylog.controller.image import ClusterImage
from skylog.controller.image.configs import ConfigResourceType
from skylog.controller.lifting import lift_epochs
from skylog.controller.managed_replicas import warn_of_placement, warning_timer
from skylog.controller.offline_replicas import offline_timer, replace_offline_replicas
from skylog.controller.partitions import create_partitions
from skylog.controller.producer_ids import allocate_producer_ids
from skylog.controller.quotas import alter_client_quotas
from skylog.controller.reassign import (
    alter_partition_reassignments,
    list_partition_reassignments,
)
from skylog.controller.requests import (
    Contact,
    ControllerRequest,
    Departed,
    ElectPreferredLeaders,
    ElectUncleanLeaders,
    LiftEpochs,
    Loaded,
    ReplaceOfflineReplicas,
    ReplicaWatch,
    Request,
    SessionExpired,
    Volatile,
    WarnOfPlacement,
)
from skylog.controller.scram import (
    alter_user_scram_credentials,
)
from skylog.controller.settings import ConfigSchema, ControllerSettings
from skylog.controller.state import PACING_SETTINGS, ControllerState
from skylog.controller.topics import create_topics, delete_topics
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.replicated.machine import Effect, Result
from skylog.wire.messages.allocate_producer_ids_request import AllocateProducerIdsRequest
from skylog.wire.messages.alter_client_quotas_request import AlterClientQuotasRequest
from skylog.wire.messages.alter_configs_request import AlterConfigsRequest
from skylog.wire.messages.alter_partition_reassignments_request import (
    AlterPartitionReassignmentsRequest,
)
from skylog.wire.messages.alter_partition_request import AlterPartitionRequest
from skylog.wire.messages.alter_user_scram_credentials_request import (
    AlterUserScramCredentialsRequest,
)
from skylog.wire.messages.assign_replicas_to_dirs_request import AssignReplicasToDirsRequest
from skylog.wire.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from skylog.wire.messages.broker_registration_change_record import BrokerRegistrationChangeRecord
from skylog.wire.messages.broker_registration_request import BrokerRegistrationRequest
from skylog.wire.messages.config_record import ConfigRecord
from skylog.wire.messages.controller_registration_request import ControllerRegistrationRequest
from skylog.wire.messages.create_acls_request import CreateAclsRequest
from skylog.wire.messages.create_partitions_request import CreatePartitionsRequest
from skylog.wire.messages.create_topics_request import CreateTopicsRequest
from skylog.wire.messages.delete_acls_request import DeleteAclsRequest
from skylog.wire.messages.delete_topics_request import DeleteTopicsRequest
from skylog.wire.messages.elect_leaders_request import ElectLeadersRequest
from skylog.wire.messages.incremental_alter_configs_request import IncrementalAlterConfigsRequest
from skylog.wire.messages.list_partition_reassignments_request import (
    ListPartitionReassignmentsRequest,
)
from skylog.wire.messages.register_broker_record import RegisterBrokerRecord
from skylog.wire.messages.unregister_broker_record import UnregisterBrokerRecord
from skylog.wire.messages.unregister_broker_request import UnregisterBrokerRequest
from skylog.wire.messages.update_features_request import UpdateFeaturesRequest
from skylog.wire.schema import Message

_Handler = Callable[[ControllerState, ControllerRequest, Any], Result[Any]]
_TimedHandler = Callable[[ControllerState, ControllerRequest, Any, int], Result[Any]]


_HANDLERS: dict[type[Message], _Handler] = {
    CreateTopicsRequest: create_topics,
    DeleteTopicsRequest: delete_topics,
    CreatePartitionsRequest: create_partitions,
    IncrementalAlterConfigsRequest: incremental_alter_configs,
    AlterConfigsRequest: alter_configs,
    AllocateProducerIdsRequest: allocate_producer_ids,
    UpdateFeaturesRequest: update_features,
    UnregisterBrokerRequest: unregister_broker,
    ControllerRegistrationRequest: register_controller,
    ElectLeadersRequest: elect_leaders,
    AlterPartitionRequest: alter_partition,
    AssignReplicasToDirsRequest: assign_replicas_to_dirs,
    AlterPartitionReassignmentsRequest: alter_partition_reassignments,
    ListPartitionReassignmentsRequest: list_partition_reassignments,
    CreateAclsRequest: create_acls,
    DeleteAclsRequest: delete_acls,
    AlterUserScramCredentialsRequest: alter_user_scram_credentials,
    AlterClientQuotasRequest: alter_client_quotas,
}
# Requests whose outcome depends on the time.
_TIMED_HANDLERS: dict[type[Message], _TimedHandler] = {
    BrokerRegistrationRequest: register_broker,
    BrokerHeartbeatRequest: heartbeat,
}


# After these a replica may be offline, or there may be a broker for it.
_OF_BROKERS = (RegisterBrokerRecord, UnregisterBrokerRecord, BrokerRegistrationChangeRecord)


def _sets_pacing(record: Message) -> bool:
    return (
        isinstance(record, ConfigRecord)
        and record.resource_type == ConfigResourceType.BROKER
        and record.name in PACING_SETTINGS
    )


class ControllerMachine:
    """A ``replicated.machine.Machine`` over the cluster image."""

    def __init__(self, settings: ControllerSettings, configs: ConfigSchema) -> None:
        self.state = ControllerState(settings, configs)

    @property
    def image(self) -> ClusterImage:
        return self.state.image

    def handle(self, request: Request, now_ms: int) -> Result[Any]:
        result = self._decide(request, now_ms)
        timers: list[Effect] = []
        if any(isinstance(record, _OF_BROKERS) for record in result.records):
            timers.append(offline_timer())
        if any(map(_sets_pacing, result.records)):
            # These timers were set with the old settings: check with the current ones.
            timers += [offline_timer(), warning_timer(0)]
        return replace(result, effects=[*result.effects, *timers]) if timers else result

    def _decide(self, request: Request, now_ms: int) -> Result[Any]:
        match request:
            case ControllerRequest():
                return self._handle_message(request, now_ms)
            case Loaded():
                return activate(self.state, now_ms)
            case SessionExpired():
                return expire_session(self.state, request, now_ms)
            case ElectPreferredLeaders():
                return elect_preferred_leaders(self.state)
            case ElectUncleanLeaders():
                return elect_unclean_leaders(self.state)
            case ReplaceOfflineReplicas():
                return replace_offline_replicas(self.state, now_ms)
            case LiftEpochs():
                return lift_epochs(self.state)
            case WarnOfPlacement():
                return warn_of_placement(self.state)

    def _handle_message(self, request: ControllerRequest, now_ms: int) -> Result[Any]:
        kind = type(request.message)
        timed = _TIMED_HANDLERS.get(kind)
        if timed is not None:
            return timed(self.state, request, request.message, now_ms)
        handler = _HANDLERS.get(kind)
        if handler is None:
            raise KafkaError(
                ErrorCode.UNSUPPORTED_VERSION, f"The controller does not answer {kind.__name__}."
            )
        return handler(self.state, request, request.message)

    def apply(self, record: Message | Volatile, offset: int) -> None:
        state = self.state
        match record:
            case Contact():
                state.sessions[record.broker_id] = record
            case ReplicaWatch():
                state.watch = record
            case Departed():
                state.sessions.pop(record.broker_id, None)
            case RegisterBrokerRecord():
                self._forget_session(record.broker_id, record.broker_epoch)
                state.registration_offsets[record.broker_id] = offset
            case UnregisterBrokerRecord():
                state.sessions.pop(record.broker_id, None)
                state.registration_offsets.pop(record.broker_id, None)
        if isinstance(record, Message):
            state.image.apply(record)

    def snapshot(self) -> Iterable[Message]:
        return self.state.image.snapshot()

    def _forget_session(self, broker_id: int, epoch: int) -> None:
        """The session of an earlier incarnation does not count for this one."""
        session = self.state.sessions.get(broker_id)
        if session is not None and session.epoch != epoch:
            del self.state.sessions[broker_id]
