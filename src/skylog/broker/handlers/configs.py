"""DescribeConfigs, AlterConfigs, IncrementalAlterConfigs, ListConfigResources."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Final

from skylog.broker.net.context import RequestContext
from skylog.controller.image.configs import ConfigResourceType
from skylog.kernel import limits
from skylog.kernel.acl import AclOperation, ResourceType
from skylog.kernel.errors import ConfigError, ErrorCode, KafkaError
from skylog.security.acls import CLUSTER_NAME
from skylog.wire.messages import alter_configs_response as legacy
from skylog.wire.messages import incremental_alter_configs_response as incremental
from skylog.wire.messages.alter_configs_request import AlterConfigsRequest
from skylog.wire.messages.describe_configs_request import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from skylog.wire.messages.describe_configs_response import (
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from skylog.wire.messages.incremental_alter_configs_request import (
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from skylog.wire.messages.list_config_resources_request import ListConfigResourcesRequest
from skylog.wire.messages.list_config_resources_response import (
    ConfigResource,
    ListConfigResourcesResponse,
)

DELETE: Final = 1
SUPPORTED: Final = (
    ConfigResourceType.TOPIC,
    ConfigResourceType.BROKER,
    ConfigResourceType.BROKER_LOGGER,
    ConfigResourceType.CLIENT_METRICS,
    ConfigResourceType.GROUP,
)
_CLUSTER_KINDS: Final = (
    ConfigResourceType.BROKER,
    ConfigResourceType.BROKER_LOGGER,
    ConfigResourceType.CLIENT_METRICS,
)


def _authorize(
    context: RequestContext, kind: ConfigResourceType, name: str, operation: AclOperation
) -> None:
    """Raise the error of the resource's kind unless the client may access its settings this way."""
    if kind in _CLUSTER_KINDS:
        resource, shown, code = (
            ResourceType.CLUSTER,
            CLUSTER_NAME,
            ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        )
    elif kind is ConfigResourceType.TOPIC:
        resource, shown, code = ResourceType.TOPIC, name, ErrorCode.TOPIC_AUTHORIZATION_FAILED
    elif kind is ConfigResourceType.GROUP:
        resource, shown, code = ResourceType.GROUP, name, ErrorCode.GROUP_AUTHORIZATION_FAILED
    else:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unexpected resource type {kind.name}.")
    if not context.authorize(operation, resource, shown):
        raise KafkaError(code)


async def describe_configs(
    context: RequestContext, request: DescribeConfigsRequest
) -> DescribeConfigsResponse:
    """Handle DescribeConfigs; each resource once, since its answer is much longer than its name."""
    response = DescribeConfigsResponse()
    seen: set[tuple[int, str]] = set()
    for number, resource in enumerate(request.resources, 1):
        key = (resource.resource_type, resource.resource_name)
        response.results.append(_describe(context, request, resource, again=key in seen))
        seen.add(key)
        if number % limits.CONFIGS_DESCRIBED_PER_TURN == 0:
            await asyncio.sleep(0)  # yield to other tasks
    return response


def _describe(
    context: RequestContext,
    request: DescribeConfigsRequest,
    resource: DescribeConfigsResource,
    *,
    again: bool,
) -> DescribeConfigsResult:
    kind = ConfigResourceType.of(resource.resource_type)
    answer = DescribeConfigsResult(
        error_message="",
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )
    try:
        _authorize(context, kind, resource.resource_name, AclOperation.DESCRIBE_CONFIGS)
        if again:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
        answer.configs = context.services.configs.describe(
            kind,
            resource.resource_name,
            resource.configuration_keys,
            synonyms=request.include_synonyms,
            documentation=request.include_documentation,
        )
    except KafkaError as error:
        answer.error_code = error.code
        answer.error_message = error.message or error.code.name
    return answer


async def incremental_alter_configs(
    context: RequestContext, request: IncrementalAlterConfigsRequest
) -> incremental.IncrementalAlterConfigsResponse:
    """Handle IncrementalAlterConfigs: log levels here, everything else in the controller."""
    asked = list(request.resources)
    answers: dict[tuple[int, str], KafkaError | None] = {}
    twice = _twice(asked)
    passed_on = []
    for resource in asked:
        key = (resource.resource_type, resource.resource_name)
        if key in answers:
            continue
        try:
            if key in twice:
                raise KafkaError(
                    ErrorCode.INVALID_REQUEST, "Each resource must appear at most once."
                )
            if _prepare(context, resource, validate_only=request.validate_only):
                passed_on.append(resource)
            else:
                answers[key] = None
        except KafkaError as error:
            answers[key] = error
    if passed_on:
        request.resources = passed_on
        for answer in (await context.forward(request)).responses:
            failed = ErrorCode(answer.error_code)
            answers[answer.resource_type, answer.resource_name] = (
                KafkaError(failed, answer.error_message) if failed else None
            )
    response = incremental.IncrementalAlterConfigsResponse()
    for resource in asked:
        key = (resource.resource_type, resource.resource_name)
        code, message = _outcome(answers.get(key, KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)))
        response.responses.append(incremental.AlterConfigsResourceResponse(code, message, *key))
    return response


def _twice(resources: list[AlterConfigsResource]) -> set[tuple[int, str]]:
    counts = Counter((r.resource_type, r.resource_name) for r in resources)
    return {key for key, count in counts.items() if count > 1}


def _outcome(error: KafkaError | None) -> tuple[int, str | None]:
    return (0, None) if error is None else (error.code, error.message or error.code.name)


def _prepare(
    context: RequestContext, resource: AlterConfigsResource, *, validate_only: bool
) -> bool:
    """Check what this broker must check itself; False when nothing is left for the controller."""
    names = [config.name for config in resource.configs]
    if len(set(names)) < len(names):
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Error due to duplicate config keys")
    nulls = [c.name for c in resource.configs if c.value is None and c.config_operation != DELETE]
    if nulls:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"Null value not supported for : {', '.join(nulls)}"
        )
    kind = ConfigResourceType.of(resource.resource_type)
    if kind not in SUPPORTED:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"Unknown resource type {resource.resource_type}"
        )
    _authorize(context, kind, resource.resource_name, AclOperation.ALTER_CONFIGS)
    configs = context.services.configs
    changes = [(c.name, c.config_operation, c.value) for c in resource.configs]
    try:
        if kind is ConfigResourceType.BROKER_LOGGER:
            configs.alter_loggers(resource.resource_name, changes, validate_only=validate_only)
            return False
        if kind is ConfigResourceType.BROKER and _is_ours(context, resource.resource_name):
            configs.check_broker_change(resource.resource_name, changes)
    except ConfigError as error:
        raise KafkaError(ErrorCode.INVALID_REQUEST, str(error)) from error
    return True


def _is_ours(context: RequestContext, name: str) -> bool:
    """A controller accepts changes of any broker from that broker, which has validated them."""
    return not (context.at_controller and name)


async def alter_configs(
    context: RequestContext, request: AlterConfigsRequest
) -> legacy.AlterConfigsResponse:
    """Handle AlterConfigs, which replaces all settings of a resource."""
    response = legacy.AlterConfigsResponse()
    counts = Counter((r.resource_type, r.resource_name) for r in request.resources)
    accepted = []
    for resource in request.resources:
        key = (resource.resource_type, resource.resource_name)
        kind = ConfigResourceType.of(resource.resource_type)
        try:
            if counts[key] > 1:
                raise KafkaError(
                    ErrorCode.INVALID_REQUEST, "Each resource must appear at most once."
                )
            nulls = [config.name for config in resource.configs if config.value is None]
            if nulls:
                why = f"Null value not supported for : {', '.join(nulls)}"
                raise KafkaError(ErrorCode.INVALID_REQUEST, why)
            if kind not in SUPPORTED or kind is ConfigResourceType.BROKER_LOGGER:
                why = f"Unknown resource type {resource.resource_type}"
                raise KafkaError(ErrorCode.INVALID_REQUEST, why)
            _authorize(context, kind, resource.resource_name, AclOperation.ALTER_CONFIGS)
            if kind is ConfigResourceType.BROKER and _is_ours(context, resource.resource_name):
                changes = [(c.name, 0, c.value) for c in resource.configs]
                context.services.configs.check_broker_change(resource.resource_name, changes)
            accepted.append(resource)
        except KafkaError as error:
            code, message = _outcome(error)
            response.responses.append(legacy.AlterConfigsResourceResponse(code, message, *key))
        except ConfigError as error:
            code, message = _outcome(KafkaError(ErrorCode.INVALID_REQUEST, str(error)))
            response.responses.append(legacy.AlterConfigsResourceResponse(code, message, *key))
    if accepted:
        request.resources = accepted
        response.responses += (await context.forward(request)).responses
    return response


def list_config_resources(
    context: RequestContext, request: ListConfigResourcesRequest
) -> ListConfigResourcesResponse:
    """Handle ListConfigResources (the first version lists client metrics only)."""
    services = context.services
    supported = SUPPORTED if context.version > 0 else (ConfigResourceType.CLIENT_METRICS,)
    wanted = request.resource_types or [int(kind) for kind in supported]
    if any(kind not in supported for kind in wanted):
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
    names: dict[ConfigResourceType, list[str]] = {
        ConfigResourceType.TOPIC: services.image.topic_names(),
        ConfigResourceType.BROKER: [str(n.id) for n in services.image.nodes(context.listener)],
    }
    names[ConfigResourceType.BROKER_LOGGER] = names[ConfigResourceType.BROKER]
    for kind in (ConfigResourceType.GROUP, ConfigResourceType.CLIENT_METRICS):
        names[kind] = services.configs.configured(kind)
    return ListConfigResourcesResponse(
        config_resources=[
            ConfigResource(name, kind)
            for kind in supported
            if kind in wanted
            for name in names[kind]
        ]
    )
