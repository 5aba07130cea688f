"""SASL exchanges and the ACL APIs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from skylog.broker.net.context import RequestContext
from skylog.kernel.errors import ErrorCode, KafkaError, ProtocolError
from skylog.security.acls import AclFilter
from skylog.wire.messages.create_acls_request import AclCreation, CreateAclsRequest
from skylog.wire.messages.create_acls_response import AclCreationResult, CreateAclsResponse
from skylog.wire.messages.delete_acls_request import DeleteAclsRequest
from skylog.wire.messages.delete_acls_response import DeleteAclsFilterResult, DeleteAclsResponse
from skylog.wire.messages.describe_acls_request import DescribeAclsRequest
from skylog.wire.messages.describe_acls_response import (
    AclDescription,
    DescribeAclsResource,
    DescribeAclsResponse,
)
from skylog.wire.messages.sasl_authenticate_request import SaslAuthenticateRequest
from skylog.wire.messages.sasl_authenticate_response import SaslAuthenticateResponse
from skylog.wire.messages.sasl_handshake_request import SaslHandshakeRequest
from skylog.wire.messages.sasl_handshake_response import SaslHandshakeResponse


async def sasl_handshake(
    context: RequestContext, request: SaslHandshakeRequest
) -> SaslHandshakeResponse:
    """Handle SaslHandshake."""
    authentication = context.connection.authentication
    return authentication.handshake(
        request.mechanism, context.version, context.services.clock.now_ms()
    )


async def sasl_authenticate(
    context: RequestContext, request: SaslAuthenticateRequest
) -> SaslAuthenticateResponse:
    """Handle SaslAuthenticate; a token that takes long to check is checked on a thread."""
    authentication, services = context.connection.authentication, context.services
    now_ms, token = services.clock.now_ms(), bytes(request.auth_bytes)
    if authentication.blocking:
        return await services.executor.run(lambda: authentication.authenticate(token, now_ms))
    return authentication.authenticate(token, now_ms)


def _require_authorizer(context: RequestContext) -> None:
    if context.services.authorizer is None:
        raise KafkaError(ErrorCode.SECURITY_DISABLED, "No Authorizer is configured on the broker")


def _refuse_unknown(items: Iterable[Any]) -> None:
    """Kafka cannot read a request in which a kind is UNKNOWN; neither can we."""
    for item in items:
        creation = isinstance(item, AclCreation)
        kinds = (
            item.resource_type if creation else item.resource_type_filter,
            item.resource_pattern_type if creation else item.pattern_type_filter,
            item.operation,
            item.permission_type,
        )
        if 0 in kinds:
            raise ProtocolError("an ACL of an unknown kind")


def describe_acls(context: RequestContext, request: DescribeAclsRequest) -> DescribeAclsResponse:
    """Handle DescribeAcls."""
    _refuse_unknown([request])
    _require_authorizer(context)
    authorizer = context.services.authorizer
    resources: dict[tuple[int, str, int], DescribeAclsResource] = {}
    for _, acl in authorizer.find(AclFilter.of(request)) if authorizer is not None else ():
        key = (acl.resource_type, acl.resource_name, acl.pattern_type)
        resource = resources.setdefault(key, DescribeAclsResource(*key))
        resource.acls.append(AclDescription(acl.principal, acl.host, acl.operation, acl.permission))
    return DescribeAclsResponse(error_message="", resources=list(resources.values()))


async def alter_acls(context: RequestContext, request: Any) -> Any:
    """Handle CreateAcls and DeleteAcls."""
    creations = isinstance(request, CreateAclsRequest)
    _refuse_unknown(request.creations if creations else request.filters)
    _require_authorizer(context)
    return await context.forward(request)


def create_acls_failed(request: CreateAclsRequest, error: KafkaError) -> CreateAclsResponse:
    message = error.message or error.code.name
    return CreateAclsResponse(
        results=[AclCreationResult(error.code, message) for _ in request.creations]
    )


def delete_acls_failed(request: DeleteAclsRequest, error: KafkaError) -> DeleteAclsResponse:
    message = error.message or error.code.name
    return DeleteAclsResponse(
        filter_results=[DeleteAclsFilterResult(error.code, message) for _ in request.filters]
    )
