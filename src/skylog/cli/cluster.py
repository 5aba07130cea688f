"""``skylog cluster``."""

from __future__ import annotations

from typing import Any, Final

import typer

from skylog.cli import local_cluster_commands
from skylog.cli.command_tree import examples, new_app
from skylog.cli.connect import call
from skylog.cli.options import Bootstrap, ClientConfig, Json
from skylog.cli.output import print_json, print_table
from skylog.client.admin import Admin
from skylog.client.admin.topics import ClusterDescription
from skylog.client.cluster import Cluster
from skylog.client.errors import check
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.wire.messages.api_versions_request import ApiVersionsRequest
from skylog.wire.messages.api_versions_response import ApiVersionsResponse
from skylog.wire.messages.describe_quorum_request import (
    DescribeQuorumRequest,
    PartitionData,
    TopicData,
)
from skylog.wire.messages.describe_quorum_response import DescribeQuorumResponse, ReplicaState

app = new_app()
app.command(
    epilog=examples(
        "skylog cluster up --brokers 3 --racks a,b,c",
        "skylog cluster up --controllers 3 --dir /tmp/trial --override num.partitions=6",
    )
)(local_cluster_commands.up)
app.command(epilog=examples("skylog cluster down", "skylog cluster down --delete"))(
    local_cluster_commands.down
)
app.command(epilog=examples("skylog cluster kill 2", "skylog cluster kill 101 --signal STOP"))(
    local_cluster_commands.kill
)
app.command(epilog=examples("skylog cluster status", "skylog cluster status --json"))(
    local_cluster_commands.status
)

_METADATA_TOPIC: Final = "__cluster_metadata"
_NODES: Final = {"id": "Node", "address": "Address", "rack": "Rack", "controller": "Controller"}
_REPLICAS: Final = {
    "id": "Node",
    "role": "Role",
    "end_offset": "End offset",
    "lag": "Lag",
    "directory_id": "Directory id",
}
_FEATURES: Final = {"name": "Feature", "level": "Level", "min": "Lowest", "max": "Highest"}
_DENIED: Final = (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, ErrorCode.UNSUPPORTED_VERSION)


@app.callback(
    invoke_without_command=True,
    epilog=examples(
        "skylog cluster", "skylog cluster --bootstrap broker1:9092,broker2:9092 --json"
    ),
)
def cluster(
    context: typer.Context,
    bootstrap: Bootstrap = None,
    client_config: ClientConfig = None,
    json: Json = False,
) -> None:
    """Show the nodes of a cluster, its controller, the metadata quorum and the features in use.

    The commands below run a cluster of processes on this machine, for evaluation.
    """
    if context.invoked_subcommand is not None:
        return
    found = call(_look, bootstrap, client_config)
    if json:
        print_json(found)
        return
    print(f"cluster {found['cluster_id']}, controller {found['controller_id']}")
    print_table(_NODES, found["nodes"])
    quorum = found["quorum"]
    if quorum is not None:
        print(
            f"metadata quorum: leader {quorum['leader_id']}, epoch {quorum['epoch']}, "
            f"high watermark {quorum['high_watermark']}"
        )
        print_table(_REPLICAS, quorum["replicas"])
    print_table(_FEATURES, found["features"])


async def _look(cluster: Cluster) -> dict[str, Any]:
    described: ClusterDescription = await Admin(cluster).topics.describe_cluster()
    return {
        "cluster_id": described.cluster_id,
        "controller_id": described.controller_id,
        "nodes": [
            {
                "id": broker.node_id,
                "address": str(broker.address),
                "rack": broker.rack,
                "controller": broker.node_id == described.controller_id,
            }
            for broker in described.brokers
        ],
        "quorum": await _quorum(cluster),
        "features": await _features(cluster),
    }


async def _quorum(cluster: Cluster) -> dict[str, Any] | None:
    """The state of the quorum; None if the principal may not describe it."""
    request = DescribeQuorumRequest([TopicData(_METADATA_TOPIC, [PartitionData(0)])])
    try:
        connection = await cluster.any_node()
        answer: DescribeQuorumResponse = await connection.request(request)
        check(answer.error_code, answer.error_message)
        found = answer.topics[0].partitions[0]
        check(found.error_code, found.error_message)
    except KafkaError as error:
        if error.code in _DENIED:
            return None
        raise
    ends = [replica.log_end_offset for replica in found.current_voters + found.observers]
    end = max(ends, default=0)
    voters = [_replica(replica, "voter", end) for replica in found.current_voters]
    observers = [_replica(replica, "observer", end) for replica in found.observers]
    return {
        "leader_id": found.leader_id,
        "epoch": found.leader_epoch,
        "high_watermark": found.high_watermark,
        "replicas": voters + observers,
    }


def _replica(replica: ReplicaState, role: str, end: int) -> dict[str, Any]:
    return {
        "id": replica.replica_id,
        "role": role,
        "end_offset": replica.log_end_offset,
        "lag": max(end - replica.log_end_offset, 0),
        "directory_id": str(replica.replica_directory_id),
    }


async def _features(cluster: Cluster) -> list[dict[str, Any]]:
    connection = await cluster.any_node()
    request = ApiVersionsRequest(client_software_name="skylog", client_software_version="0.1.0")
    answer: ApiVersionsResponse = await connection.request(request, version_min=3)
    check(answer.error_code, "features")
    levels = {feature.name: feature.max_version_level for feature in answer.finalized_features}
    return [
        {
            "name": feature.name,
            "level": levels.get(feature.name, 0),
            "min": feature.min_version,
            "max": feature.max_version,
        }
        for feature in sorted(answer.supported_features, key=lambda feature: feature.name)
    ]
