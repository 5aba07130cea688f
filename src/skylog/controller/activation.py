"""The first actions of an active controller: initialize the cluster, or take it over."""

from __future__ import annotations

from skylog.controller.brokers import session_timer
from skylog.controller.elections import election_timers
from skylog.controller.image.configs import CLUSTER_DEFAULT
from skylog.controller.image.features import ELR_VERSION
from skylog.controller.lifting import lift_epochs
from skylog.controller.managed_replicas import warning_timer
from skylog.controller.offline_replicas import offline_timer
from skylog.controller.requests import Contact
from skylog.controller.state import MIN_ISR, ControllerState
from skylog.replicated.machine import Result
from skylog.wire.messages.abort_transaction_record import AbortTransactionRecord
from skylog.wire.messages.begin_transaction_record import BeginTransactionRecord
from skylog.wire.messages.config_record import ConfigRecord
from skylog.wire.messages.end_transaction_record import EndTransactionRecord
from skylog.wire.messages.feature_level_record import FeatureLevelRecord
from skylog.wire.schema import Message


def activate(state: ControllerState, now_ms: int) -> Result[None]:
    """Write missing records, and give every live broker a full session."""
    records: list[Message] = []
    if state.image.in_transaction:
        records.append(AbortTransactionRecord("Controller failover"))
    if state.image.features.metadata_version is None:
        records += _first_records(state)
    alive = [broker for broker in state.image.brokers.by_id.values() if not broker.fenced]
    settings = state.settings
    contacts = [
        Contact(broker.broker_id, broker.epoch, now_ms, -1)
        for broker in alive
        # A broker in our process is as new as the controller: no other process holds its old
        # session.
        if not (settings.combined and broker.broker_id == settings.node_id)
    ]
    timers = [session_timer(broker, settings.session_timeout_ms) for broker in alive]
    timers += [*election_timers(state), offline_timer()]
    timers.append(warning_timer(state.replica_pacing().warning_interval_ms))
    lifted = lift_epochs(state)
    records += lifted.records
    return Result(None, records, contacts, [*timers, *lifted.effects])


def _first_records(state: ControllerState) -> list[Message]:
    """In one metadata transaction, as in Kafka."""
    bootstrap = state.settings.bootstrap
    records: list[Message] = [BeginTransactionRecord("Bootstrap records"), *bootstrap]
    elr = [
        record
        for record in bootstrap
        if isinstance(record, FeatureLevelRecord) and record.name == ELR_VERSION
    ]
    if elr and elr[-1].feature_level > 0:
        records.append(ConfigRecord(*CLUSTER_DEFAULT, MIN_ISR, state.static_values[MIN_ISR]))
    return [*records, EndTransactionRecord()]
