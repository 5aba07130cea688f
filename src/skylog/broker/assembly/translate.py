"""A node's settings, translated for its parts."""

from __future__ import annotations

import resource
import socket
from dataclasses import fields
from functools import partial
from typing import TYPE_CHECKING

from skylog.broker.assembly.diskless_planes import coordinator_replicas
from skylog.broker.net.access import controller_client
from skylog.controller.lifting import EpochFloor
from skylog.controller.settings import ControllerSettings, ReplicaPacing
from skylog.diskless.files.restore import read_epoch_floor
from skylog.groups.settings import GroupSettings
from skylog.kernel import limits
from skylog.kernel.rates import INT32_MAX
from skylog.log.config import LogManagerSettings
from skylog.quorum.config import CONTROLLER_LISTENER, QuorumConfig
from skylog.quorum.voters import Endpoint
from skylog.security.connection_limits import ConnectionSettings, ListenerLimits, parse_ip_overrides
from skylog.wire.metadata_records import decode_metadata

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from pathlib import Path

    from skylog.kernel.settings import BrokerSettings, ListenerSettings
    from skylog.quorum.storage import NodeStorage


def advertised_host(listener: ListenerSettings) -> str:
    """The address that clients connect to; by default the machine's own name."""
    return listener.advertised_host or listener.host or socket.getfqdn()


def epoch_floor(metadata_log: Path) -> EpochFloor | None:
    """Of a node that was restored. Blocks."""
    found = read_epoch_floor(metadata_log)
    return None if found is None else EpochFloor(*found)


def controller_settings(
    settings: BrokerSettings, storage: NodeStorage, voters: Collection[int]
) -> ControllerSettings:
    records = [decode_metadata(value) for _, value in storage.bootstrap if value is not None]
    diskless, managed = settings.diskless, settings.managed_replication
    replication = settings.replication
    return ControllerSettings(
        node_id=settings.node.node_id,
        cluster_id=storage.cluster_id,
        quorum_node_ids=voters,
        bootstrap=tuple(record for record in records if record is not None),
        combined=settings.node.is_broker,
        epoch_floor=epoch_floor(storage.metadata_log),
        partition_count_default=settings.topics.partitions,
        replication_factor_default=settings.topics.replication_factor,
        session_timeout_ms=settings.node.session_timeout_ms,
        delete_topic_enable=settings.topics.delete_enable,
        leader_rebalance_enable=replication.leader_rebalance_enable,
        leader_check_interval_ms=replication.leader_check_interval_seconds * 1000,
        unclean_election_interval_ms=replication.unclean_election_interval_ms,
        replica_pacing=ReplicaPacing(
            **{known.name: getattr(managed, known.name) for known in fields(ReplicaPacing)}
        ),
        diskless_coordinators=diskless.metadata_partitions,
        diskless_metadata_replicas=coordinator_replicas(diskless),
        diskless_metadata_replicas_chosen="diskless.metadata.topic.replication.factor"
        in settings.static,
        diskless_tiering=settings.tiered.enabled and settings.tiered.tiering_default,
    )


def quorum_config(settings: BrokerSettings, port_of: Callable[[str], int]) -> QuorumConfig:
    """How this node takes part in the quorum; controllers use the first of their listeners."""
    listeners = settings.controller_listeners
    endpoints = [
        Endpoint(each.name, advertised_host(each), port_of(each.name)) for each in listeners
    ]
    names = settings.listener_texts.controller_names
    timeout_ms = settings.quorum.request_timeout_ms
    return QuorumConfig.from_settings(
        settings.quorum,
        endpoints,
        names[0] if names else CONTROLLER_LISTENER,
        partial(controller_client, settings, request_timeout_ms=timeout_ms),
        controller=settings.node.is_controller,
    )


def log_manager_settings(settings: BrokerSettings) -> LogManagerSettings:
    logs = settings.log
    return LogManagerSettings(
        retention_check_interval_ms=logs.retention_check_interval_ms,
        flush_scheduler_interval_ms=logs.flush_scheduler_interval_ms,
        flush_offset_checkpoint_interval_ms=logs.flush_offset_checkpoint_interval_ms,
        high_watermark_checkpoint_interval_ms=logs.high_watermark_checkpoint_interval_ms,
    )


def group_settings(settings: BrokerSettings) -> GroupSettings:
    groups, consumers = settings.groups, settings.consumer_groups
    return GroupSettings(
        session_timeout_ms_min=groups.session_timeout_ms_min,
        session_timeout_ms_max=groups.session_timeout_ms_max,
        initial_rebalance_delay_ms=groups.initial_rebalance_delay_ms,
        group_size_max=groups.size_max,
        offset_metadata_length_max=groups.offset_metadata_bytes_max,
        offsets_retention_ms=groups.offsets_retention_minutes * 60_000,
        offsets_check_interval_ms=groups.offsets_retention_check_interval_ms,
        write_timeout_ms=groups.offsets_commit_timeout_ms,
        offsets_topic_partitions=groups.offsets_topic_partitions,
        consumer_group_size_max=consumers.size_max,
        consumer_assignors=consumers.assignors,
        migration_policy=consumers.migration_policy.lower(),
        regex_refresh_interval_ms=consumers.regex_refresh_interval_ms,
    )


def connection_settings(settings: BrokerSettings) -> ConnectionSettings:
    network = settings.network
    return ConnectionSettings(
        connections_max=min(network.connections_max, _connections_possible()),
        per_ip_max=network.connections_per_ip_max,
        per_ip_overrides=parse_ip_overrides(
            network.connections_per_ip_overrides, socket.gethostbyname
        ),
        rate_max=network.connection_rate_max,
        listeners={
            listener.name: _listener_limits(listener) for listener in settings.broker_listeners
        },
        inter_broker_listener=settings.inter_broker_listener,
    )


def _connections_possible() -> int:
    """As many as the process may have sockets, beside the files of its logs."""
    allowed = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if allowed == resource.RLIM_INFINITY:
        return INT32_MAX
    return max(allowed // 2 - limits.OPEN_FILES_RESERVED, 1)


def _listener_limits(listener: ListenerSettings) -> ListenerLimits:
    """The limits in ``listener.name.<name>.…``; without them only the broker's limits apply."""
    unlimited = ListenerLimits()
    texts = listener.texts
    return ListenerLimits(
        int(texts.get("max.connections", unlimited.connections_max)),
        int(texts.get("max.connection.creation.rate", unlimited.rate_max)),
    )
