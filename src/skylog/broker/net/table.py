"""The dispatch table: for each API its handler, versions, listeners and the permission it needs.

Dispatch enforces a permission on the cluster before the handler runs; the handler enforces one on
named resources, with ``context.allowed(name)``. An API without a row does not exist: it is not
offered, and a request for it closes the connection, as in Kafka.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from skylog.broker.handlers import (
    bulk_reads,
    bulk_writes,
    cluster,
    configs,
    consumer_groups,
    diskless_apis,
    diskless_inspection,
    envelope,
    external_segments,
    failures,
    fetch,
    group_offsets,
    groups,
    metadata,
    offsets,
    partition_transactions,
    produce,
    quorum,
    security,
    tiered,
    topics,
    transactions,
)
from skylog.broker.net.dispatch import Permission, Row
from skylog.controller.quotas import describe_client_quotas
from skylog.controller.scram import describe_user_scram_credentials
from skylog.kernel.acl import AclOperation, ResourceType
from skylog.kernel.errors import ErrorCode
from skylog.wire.apis import ApiKey, request_class
from skylog.wire.messages.api_versions_response import ApiVersion
from skylog.wire.schema import Versions

# Kafka lists versions of Produce that it then refuses: librdkafka checks for them.
PRODUCE_OFFERED_FROM: Final = 0


def _on(resource: ResourceType, denied: ErrorCode) -> Callable[[AclOperation], Permission]:
    return lambda operation: Permission(operation, resource, denied)


_topic = _on(ResourceType.TOPIC, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
_group = _on(ResourceType.GROUP, ErrorCode.GROUP_AUTHORIZATION_FAILED)
_transactional_id = _on(
    ResourceType.TRANSACTIONAL_ID, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
)
_cluster = _on(ResourceType.CLUSTER, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)


def _row(key: ApiKey, handler: Any, permission: Permission | None, **more: Any) -> Row:
    """A row with all versions that Kafka offers of the API."""
    message = request_class(key)
    versions = message.VERSIONS
    if message.LATEST_UNSTABLE:
        versions = Versions(versions.low, versions.high - 1)
    return Row(handler, permission, versions, **more)


_Op = AclOperation
_Key = ApiKey


_BOTH: Final[dict[str, Any]] = {"controller": True}
_FORWARDED: Final[dict[str, Any]] = {"controller": True, "forwarded": True}
_CONTROLLER: Final[dict[str, Any]] = {"controller": True, "broker": False}
_Spec = tuple[ApiKey, Any, Permission | None, dict[str, Any]]

_DATA: Final[list[_Spec]] = [
    (_Key.PRODUCE, produce.produce, _topic(_Op.WRITE), {"fail": failures.produce}),
    (_Key.FETCH, fetch.fetch, _topic(_Op.READ), {}),
    (_Key.LIST_OFFSETS, offsets.list_offsets, _topic(_Op.DESCRIBE),
     {"fail": failures.list_offsets}),
    (_Key.METADATA, metadata.metadata, _topic(_Op.DESCRIBE),
     {"fail": metadata.metadata_failed}),
    (_Key.OFFSET_COMMIT, groups.offset_commit, _group(_Op.READ),
     {"fail": groups.offset_commit_failed}),
    (_Key.OFFSET_FETCH, group_offsets.offset_fetch, _group(_Op.DESCRIBE),
     {"fail": failures.offset_fetch}),
    (_Key.FIND_COORDINATOR, groups.find_coordinator, _group(_Op.DESCRIBE), {}),
    (_Key.JOIN_GROUP, groups.join_group, _group(_Op.READ), {}),
    (_Key.HEARTBEAT, groups.heartbeat, _group(_Op.READ), {}),
    (_Key.LEAVE_GROUP, groups.leave_group, _group(_Op.READ), {}),
    (_Key.SYNC_GROUP, groups.sync_group, _group(_Op.READ), {}),
    (_Key.DESCRIBE_GROUPS, groups.describe_groups, _group(_Op.DESCRIBE),
     {"fail": failures.describe_groups}),
    (_Key.LIST_GROUPS, groups.list_groups, _group(_Op.DESCRIBE), {}),
    (_Key.DELETE_GROUPS, groups.delete_groups, _group(_Op.DELETE), {}),
    (_Key.OFFSET_DELETE, groups.offset_delete, _group(_Op.DELETE), {}),
    (_Key.CONSUMER_GROUP_HEARTBEAT, consumer_groups.consumer_group_heartbeat, _group(_Op.READ),
     {"fail": consumer_groups.consumer_group_heartbeat_failed}),
    (_Key.CONSUMER_GROUP_DESCRIBE, consumer_groups.consumer_group_describe,
     _group(_Op.DESCRIBE), {"fail": consumer_groups.consumer_group_describe_failed}),
]  # fmt: skip

_TRANSACTIONS: Final[list[_Spec]] = [
    (_Key.INIT_PRODUCER_ID, transactions.init_producer_id, _transactional_id(_Op.WRITE),
     {"fail": transactions.init_producer_id_failed}),
    (_Key.ADD_PARTITIONS_TO_TXN, transactions.add_partitions_to_txn, _transactional_id(_Op.WRITE),
     {"fail": transactions.add_partitions_to_txn_failed}),
    (_Key.ADD_OFFSETS_TO_TXN, transactions.add_offsets_to_txn, _transactional_id(_Op.WRITE), {}),
    (_Key.END_TXN, transactions.end_txn, _transactional_id(_Op.WRITE), {}),
    (_Key.DESCRIBE_TRANSACTIONS, transactions.describe_transactions,
     _transactional_id(_Op.DESCRIBE), {"fail": transactions.describe_transactions_failed}),
    (_Key.WRITE_TXN_MARKERS, partition_transactions.write_txn_markers, None,
     {"fail": partition_transactions.write_txn_markers_failed}),
    (_Key.TXN_OFFSET_COMMIT, partition_transactions.txn_offset_commit, _group(_Op.READ),
     {"fail": partition_transactions.txn_offset_commit_failed}),
    (_Key.LIST_TRANSACTIONS, transactions.list_transactions, _transactional_id(_Op.DESCRIBE), {}),
]  # fmt: skip

_ADMINISTRATION: Final[list[_Spec]] = [
    (_Key.SASL_HANDSHAKE, security.sasl_handshake, None, _BOTH),
    (_Key.SASL_AUTHENTICATE, security.sasl_authenticate, None, _BOTH),
    (_Key.CREATE_TOPICS, topics.create_topics, _topic(_Op.CREATE),
     {"fail": topics.create_topics_failed, **_FORWARDED}),
    (_Key.DELETE_TOPICS, topics.delete_topics, _topic(_Op.DELETE),
     {"fail": topics.delete_topics_failed, **_FORWARDED}),
    (_Key.CREATE_PARTITIONS, topics.create_partitions, _topic(_Op.ALTER),
     {"fail": topics.create_partitions_failed, **_FORWARDED}),
    (_Key.DELETE_RECORDS, offsets.delete_records, _topic(_Op.DELETE),
     {"fail": failures.delete_records}),
    (_Key.OFFSET_FOR_LEADER_EPOCH, offsets.offset_for_leader_epoch, _topic(_Op.DESCRIBE),
     {"fail": failures.offset_for_leader_epoch}),
    (_Key.DESCRIBE_ACLS, security.describe_acls, _cluster(_Op.DESCRIBE), _BOTH),
    (_Key.CREATE_ACLS, security.alter_acls, _cluster(_Op.ALTER),
     {"fail": security.create_acls_failed, **_FORWARDED}),
    (_Key.DELETE_ACLS, security.alter_acls, _cluster(_Op.ALTER),
     {"fail": security.delete_acls_failed, **_FORWARDED}),
    (_Key.DESCRIBE_CONFIGS, configs.describe_configs, _topic(_Op.DESCRIBE_CONFIGS),
     {"fail": failures.describe_configs, **_BOTH}),
    (_Key.ALTER_CONFIGS, configs.alter_configs, _topic(_Op.ALTER_CONFIGS),
     {"fail": failures.alter_configs, **_BOTH}),
    (_Key.INCREMENTAL_ALTER_CONFIGS, configs.incremental_alter_configs,
     _topic(_Op.ALTER_CONFIGS), {"fail": failures.incremental_alter_configs, **_BOTH}),
    (_Key.LIST_CONFIG_RESOURCES, configs.list_config_resources,
     _cluster(_Op.DESCRIBE_CONFIGS), {}),
    (_Key.DESCRIBE_LOG_DIRS, cluster.describe_log_dirs, _cluster(_Op.DESCRIBE), {}),
    (_Key.ELECT_LEADERS, cluster.forward, _cluster(_Op.ALTER),
     {"fail": failures.elect_leaders, **_FORWARDED}),
    (_Key.ALTER_PARTITION_REASSIGNMENTS, cluster.forward, _cluster(_Op.ALTER),
     {"fail": failures.alter_partition_reassignments, **_FORWARDED}),
    (_Key.LIST_PARTITION_REASSIGNMENTS, cluster.forward, _cluster(_Op.DESCRIBE),
     {"fail": failures.list_partition_reassignments, **_FORWARDED}),
    (_Key.DESCRIBE_CLIENT_QUOTAS, cluster.of_image(describe_client_quotas),
     _cluster(_Op.DESCRIBE_CONFIGS), {"fail": failures.describe_client_quotas}),
    (_Key.ALTER_CLIENT_QUOTAS, cluster.forward, _cluster(_Op.ALTER_CONFIGS),
     {"fail": failures.alter_client_quotas, **_FORWARDED}),
    (_Key.DESCRIBE_USER_SCRAM_CREDENTIALS, cluster.of_image(describe_user_scram_credentials),
     _cluster(_Op.DESCRIBE),
     {"fail": failures.describe_user_scram_credentials}),
    (_Key.ALTER_USER_SCRAM_CREDENTIALS, cluster.forward, _cluster(_Op.ALTER),
     {"fail": failures.alter_user_scram_credentials, **_FORWARDED}),
    (_Key.DESCRIBE_QUORUM, cluster.forward, _cluster(_Op.DESCRIBE), _FORWARDED),
    (_Key.UPDATE_FEATURES, cluster.forward, _cluster(_Op.ALTER), _FORWARDED),
    (_Key.UNREGISTER_BROKER, cluster.forward, _cluster(_Op.ALTER), _FORWARDED),
    (_Key.DESCRIBE_CLUSTER, metadata.describe_cluster, None, {}),
    (_Key.DESCRIBE_PRODUCERS, offsets.describe_producers, _topic(_Op.READ),
     {"fail": failures.describe_producers}),
    (_Key.DESCRIBE_TOPIC_PARTITIONS, metadata.describe_topic_partitions,
     _topic(_Op.DESCRIBE), {"fail": metadata.describe_topic_partitions_failed}),
    (_Key.BROKER_REGISTRATION, cluster.forward, _cluster(_Op.CLUSTER_ACTION), _CONTROLLER),
    (_Key.BROKER_HEARTBEAT, cluster.forward, _cluster(_Op.CLUSTER_ACTION), _CONTROLLER),
    (_Key.ALLOCATE_PRODUCER_IDS, cluster.forward, _cluster(_Op.CLUSTER_ACTION), _CONTROLLER),
    (_Key.ALTER_PARTITION, cluster.forward, _cluster(_Op.CLUSTER_ACTION), _CONTROLLER),
    (_Key.ASSIGN_REPLICAS_TO_DIRS, cluster.forward, _cluster(_Op.CLUSTER_ACTION), _CONTROLLER),
    (_Key.CONTROLLER_REGISTRATION, cluster.forward, _cluster(_Op.CLUSTER_ACTION), _CONTROLLER),
    (_Key.ENVELOPE, envelope.envelope, _cluster(_Op.CLUSTER_ACTION), _CONTROLLER),
    (_Key.ADD_RAFT_VOTER, cluster.forward, _cluster(_Op.ALTER), _FORWARDED),
    (_Key.REMOVE_RAFT_VOTER, cluster.forward, _cluster(_Op.ALTER), _FORWARDED),
    (_Key.UPDATE_RAFT_VOTER, quorum.serve, _cluster(_Op.CLUSTER_ACTION), _CONTROLLER),
    (_Key.VOTE, quorum.serve, _cluster(_Op.CLUSTER_ACTION), _CONTROLLER),
    (_Key.BEGIN_QUORUM_EPOCH, quorum.serve, _cluster(_Op.CLUSTER_ACTION), _CONTROLLER),
    (_Key.END_QUORUM_EPOCH, quorum.serve, _cluster(_Op.CLUSTER_ACTION), _CONTROLLER),
    (_Key.FETCH_SNAPSHOT, quorum.serve, _cluster(_Op.CLUSTER_ACTION), _CONTROLLER),
]  # fmt: skip


def _private(fail: Any) -> dict[str, Any]:
    return {"private": True, "fail": fail}


_DISKLESS: Final[list[_Spec]] = [
    (_Key.DISKLESS_CREATE_PARTITIONS, diskless_apis.create_partitions,
     _cluster(_Op.CLUSTER_ACTION), _private(diskless_apis.create_partitions_failed)),
    (_Key.DISKLESS_DELETE_TOPICS, diskless_apis.delete_topics,
     _cluster(_Op.CLUSTER_ACTION), _private(diskless_apis.delete_topics_failed)),
    (_Key.DISKLESS_COMMIT_FILE, diskless_apis.commit_file,
     _cluster(_Op.CLUSTER_ACTION), _private(diskless_apis.commit_file_failed)),
    (_Key.DISKLESS_DELETE_RECORDS, diskless_apis.delete_records,
     _cluster(_Op.CLUSTER_ACTION), _private(diskless_apis.delete_records_failed)),
    (_Key.DISKLESS_LIST_OFFSETS, diskless_apis.list_offsets,
     _cluster(_Op.CLUSTER_ACTION), _private(diskless_apis.list_offsets_failed)),
    (_Key.DISKLESS_FIND_BATCHES, diskless_apis.find_batches,
     _cluster(_Op.CLUSTER_ACTION), _private(diskless_apis.find_batches_failed)),
    (_Key.DISKLESS_DESCRIBE_FILES, diskless_apis.describe_files,
     _cluster(_Op.CLUSTER_ACTION), _private(diskless_apis.describe_files_failed)),
    (_Key.DISKLESS_RECEIVE_FILE, diskless_apis.receive_file,
     _cluster(_Op.CLUSTER_ACTION), {"private": True}),
    (_Key.DISKLESS_PIN_FILES, diskless_apis.pin_files,
     _cluster(_Op.CLUSTER_ACTION), {"private": True}),
    (_Key.DISKLESS_READ_RANGES, diskless_apis.read_ranges,
     _cluster(_Op.CLUSTER_ACTION), _private(diskless_apis.read_ranges_failed)),
    (_Key.DISKLESS_FETCH_SNAPSHOT, diskless_apis.fetch_snapshot,
     _cluster(_Op.CLUSTER_ACTION), {"private": True}),
]  # fmt: skip


_UNLISTED: Final[dict[str, Any]] = {"unlisted": True}
_INSPECTION: Final[list[_Spec]] = [
    (_Key.DESCRIBE_DISKLESS_COORDINATORS, diskless_inspection.describe_coordinators,
     _cluster(_Op.DESCRIBE), _UNLISTED),
    (_Key.LIST_DISKLESS_FILES, diskless_inspection.list_files,
     _cluster(_Op.DESCRIBE), _UNLISTED),
    (_Key.START_SEGMENTS, external_segments.start_segments,
     _cluster(_Op.CLUSTER_ACTION), _UNLISTED),
    (_Key.FINISH_SEGMENTS, external_segments.finish_segments,
     _cluster(_Op.CLUSTER_ACTION), _UNLISTED),
    (_Key.DESCRIBE_REMOTE_LOG, tiered.describe_remote_log, _topic(_Op.DESCRIBE), _UNLISTED),
]  # fmt: skip


def _unlisted(fail: Any) -> dict[str, Any]:
    return {"unlisted": True, "fail": fail}


_BULK: Final[list[_Spec]] = [
    (_Key.PLAN_RANGES, bulk_reads.plan_ranges, _topic(_Op.READ),
     _unlisted(bulk_reads.plan_ranges_failed)),
    (_Key.LOCATE_BATCHES, bulk_reads.locate_batches, _topic(_Op.READ),
     _unlisted(bulk_reads.locate_batches_failed)),
    (_Key.COMMIT_STAGED, bulk_writes.commit_staged, _topic(_Op.WRITE), _UNLISTED),
    (_Key.PIN_STAGED, bulk_writes.pin_staged, _topic(_Op.WRITE), _UNLISTED),
]  # fmt: skip


def _rows() -> Mapping[ApiKey, Row]:
    """All rows except ApiVersions, which depends on what a listener offers."""
    specs = [*_DATA, *_TRANSACTIONS, *_ADMINISTRATION, *_DISKLESS, *_INSPECTION, *_BULK]
    return {key: _row(key, handler, permission, **more) for key, handler, permission, more in specs}


def broker_table(*, inter_broker: bool = False) -> Mapping[ApiKey, Row]:
    """What a broker's listener serves to clients, and on the inter-broker one to other brokers."""
    rows = _rows().items()
    return _with_api_versions(
        {key: row for key, row in rows if row.broker and (inter_broker or not row.private)}
    )


def controller_table() -> Mapping[ApiKey, Row]:
    """What a controller's listener serves."""
    rows = {key: row for key, row in _rows().items() if row.controller}
    rows[_Key.FETCH] = _row(
        _Key.FETCH,
        quorum.serve,
        _cluster(_Op.CLUSTER_ACTION),
        fail=failures.fetch,
        **_CONTROLLER,
    )
    rows[_Key.DESCRIBE_CLUSTER] = _row(
        _Key.DESCRIBE_CLUSTER, cluster.describe_controllers, _cluster(_Op.ALTER), **_CONTROLLER
    )
    return _with_api_versions(rows)


def _with_api_versions(rows: dict[ApiKey, Row]) -> Mapping[ApiKey, Row]:
    offered: list[ApiVersion] = []
    handler = cluster.api_versions(lambda: offered)
    rows[ApiKey.API_VERSIONS] = _row(ApiKey.API_VERSIONS, handler, None, controller=True)
    for key in sorted(key for key, row in rows.items() if not row.private and not row.unlisted):
        versions = rows[key].versions
        low = PRODUCE_OFFERED_FROM if key is ApiKey.PRODUCE else versions.low
        offered.append(ApiVersion(key, low, versions.high))
    return rows
