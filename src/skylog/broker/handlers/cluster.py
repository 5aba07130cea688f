"""ApiVersions, DescribeLogDirs, and requests that the controller answers alone."""

from __future__ import annotations

import re
import shutil
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from skylog.broker.net.context import RequestContext
from skylog.controller.image import ClusterImage
from skylog.kernel.acl import ResourceType
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.security.acls import CLUSTER_NAME
from skylog.wire.apis import ApiKey
from skylog.wire.messages.api_versions_request import ApiVersionsRequest
from skylog.wire.messages.api_versions_response import (
    ApiVersion,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)
from skylog.wire.messages.describe_cluster_request import DescribeClusterRequest
from skylog.wire.messages.describe_cluster_response import (
    DescribeClusterBroker,
    DescribeClusterResponse,
)
from skylog.wire.messages.describe_log_dirs_request import DescribeLogDirsRequest
from skylog.wire.messages.describe_log_dirs_response import (
    DescribeLogDirsPartition,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)

_SOFTWARE: Final = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")
BROKER_ENDPOINTS: Final = 1
CONTROLLER_ENDPOINTS: Final = 2

Offered = Callable[[], list[ApiVersion]]


def api_versions(offered: Offered) -> Callable[[RequestContext, Any], ApiVersionsResponse]:
    """The handler of ApiVersions for a listener that offers these APIs."""

    def handle(context: RequestContext, request: ApiVersionsRequest | None) -> ApiVersionsResponse:
        if request is None:
            # A version from the future: answer which versions of ApiVersions itself are supported.
            own = [api for api in offered() if api.api_key == ApiKey.API_VERSIONS]
            return ApiVersionsResponse(ErrorCode.UNSUPPORTED_VERSION, own)
        if context.version >= 3 and not _named_well(request):
            return ApiVersionsResponse(ErrorCode.INVALID_REQUEST)
        return _offer(context, offered())

    return handle


def _named_well(request: ApiVersionsRequest) -> bool:
    names = (request.client_software_name, request.client_software_version)
    return all(_SOFTWARE.fullmatch(name) for name in names)


def _offer(context: RequestContext, apis: list[ApiVersion]) -> ApiVersionsResponse:
    features = context.services.features
    supported = [
        SupportedFeatureKey(name, low, high)
        for name, (low, high) in features.supported().items()
        # Clients before version 4 take a lowest level of 0 for an invalid response.
        if high >= 1 and (low >= 1 or context.version >= 4)
    ]
    finalized = [
        FinalizedFeatureKey(name, level, level)
        for name, level in features.finalized().items()
        if level > 0
    ]
    return ApiVersionsResponse(
        api_keys=apis,
        supported_features=supported,
        finalized_features_epoch=features.epoch(),
        finalized_features=finalized,
    )


async def forward(context: RequestContext, request: Any) -> Any:
    """Let the controller answer; dispatch has already checked the row's permission."""
    return await context.forward(request)


def of_image(describe: Callable[[ClusterImage, Any], Any]) -> Callable[[RequestContext, Any], Any]:
    """The handler of a request that every node answers from its own metadata."""
    return lambda context, request: describe(context.services.image, request)


async def describe_log_dirs(
    context: RequestContext, request: DescribeLogDirsRequest
) -> DescribeLogDirsResponse:
    """Handle DescribeLogDirs; a disk that does not respond blocks no other request."""
    services = context.services
    wanted: set[tuple[str, int]] | None = None
    if request.topics is not None:
        wanted = {(t.topic, index) for t in request.topics for index in t.partitions}
    response = DescribeLogDirsResponse()
    for path, logs in services.logs.by_directory():
        topics: dict[str, list[DescribeLogDirsPartition]] = defaultdict(list)
        for log in logs:
            if wanted is None or (log.topic, log.partition) in wanted:
                lag = max(log.high_watermark - log.log_end_offset, 0)
                topics[log.topic].append(DescribeLogDirsPartition(log.partition, log.size, lag))
        result = DescribeLogDirsResult(
            log_dir=path,
            topics=[DescribeLogDirsTopic(name, found) for name, found in topics.items()],
        )
        response.results.append(result)
        try:
            usage = await services.executor.run(partial(shutil.disk_usage, path))
            result.total_bytes, result.usable_bytes = usage.total, usage.free
        except OSError:
            result.error_code, result.topics = ErrorCode.KAFKA_STORAGE_ERROR, []
    return response


def describe_controllers(
    context: RequestContext, request: DescribeClusterRequest
) -> DescribeClusterResponse:
    """Handle DescribeCluster on a controller's listener: list the controllers."""
    if request.endpoint_type != CONTROLLER_ENDPOINTS:
        known = request.endpoint_type == BROKER_ENDPOINTS
        raise KafkaError(
            ErrorCode.MISMATCHED_ENDPOINT_TYPE if known else ErrorCode.UNSUPPORTED_ENDPOINT_TYPE,
            "The request was sent to an endpoint of type CONTROLLER, but asked for another type.",
        )
    quorum = context.services.quorum
    response = DescribeClusterResponse(
        endpoint_type=CONTROLLER_ENDPOINTS,
        cluster_id=context.services.cluster_id,
        controller_id=quorum.leader_and_epoch.leader_id,
    )
    for voter in quorum.voters.voters:
        for listener in voter.endpoints:
            if listener.listener == context.listener:
                found = DescribeClusterBroker(voter.key.id, listener.host, listener.port)
                response.brokers.append(found)
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = context.authorized_operations(
            ResourceType.CLUSTER, CLUSTER_NAME
        )
    return response
