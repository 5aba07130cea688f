"""A handler's view of its request: the caller, the version, and the caller's permissions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from skylog.groups.requests import ClientContext
from skylog.kernel.acl import AclOperation, ResourceType
from skylog.security.acls import CLUSTER_NAME, all_operations

if TYPE_CHECKING:
    from skylog.broker.net.connection import Connection
    from skylog.broker.net.dispatch import Row
    from skylog.broker.services import Services
    from skylog.wire.apis import ApiKey
    from skylog.wire.schema import Message


class RequestContext:
    """One request. The row of the dispatch table that it matched says which permission it needs."""

    __slots__ = (
        "api_key",
        "began",
        "client_id",
        "connection",
        "correlation_id",
        "request_bytes",
        "row",
        "services",
        "throttle_ms",
        "version",
    )

    def __init__(
        self,
        services: Services,
        connection: Connection,
        row: Row,
        header: tuple[ApiKey, int, int, str | None],
        request_bytes: int,
    ) -> None:
        self.services = services
        self.connection = connection
        self.row = row
        self.api_key, self.version, self.correlation_id, self.client_id = header
        self.request_bytes = request_bytes
        self.throttle_ms = 0
        self.began = services.clock.monotonic()

    @property
    def listener(self) -> str:
        return self.connection.listener.name

    @property
    def principal(self) -> str:
        return self.connection.authentication.principal

    @property
    def host(self) -> str:
        return self.connection.address

    def authorize(
        self, operation: AclOperation, resource: ResourceType, name: str, *, audit: bool = True
    ) -> bool:
        """Whether the client may do this; always True if no authorizer is configured."""
        authorizer = self.services.authorizer
        return authorizer is None or authorizer.authorize(
            self.principal, self.host, operation, resource, name, audit=audit
        )

    def allowed(self, name: str) -> bool:
        """Whether the client has the permission of this request's row on ``name``."""
        permission = self.row.permission
        return permission is None or self.authorize(permission.operation, permission.resource, name)

    def authorize_cluster(self, operation: AclOperation, *, audit: bool = True) -> bool:
        return self.authorize(operation, ResourceType.CLUSTER, CLUSTER_NAME, audit=audit)

    def authorize_any(self, operation: AclOperation, resource: ResourceType) -> bool:
        """Whether the client may do this on at least one resource of this kind."""
        authorizer = self.services.authorizer
        return authorizer is None or authorizer.authorize_by_resource_type(
            self.principal, self.host, operation, resource
        )

    def authorized_operations(self, resource: ResourceType, name: str) -> int:
        """The bit field that Describe responses carry."""
        authorizer = self.services.authorizer
        if authorizer is None:
            return all_operations(resource)
        return authorizer.authorized_operations(self.principal, self.host, resource, name)

    def group_client(self) -> ClientContext:
        """The client as the group coordinator knows it."""
        return ClientContext(self.version, self.client_id, self.host)

    @property
    def at_controller(self) -> bool:
        """Whether the request came to a controller's listener: it is not forwarded then."""
        return self.connection.listener.dispatcher.of_controller

    async def forward(self, request: Message, version: int | None = None) -> Any:
        """The controller's answer to a request, in the version in which it came."""
        controller, chosen = self.services.controller, self.version if version is None else version
        if self.at_controller:
            return await controller.decide(request, chosen)
        return await controller.pass_on(self, request, chosen)

    def charge_mutations(self, count: int, strict_from: int) -> None:
        """Count topic mutations; beyond the quota newer clients are refused, older ones
        throttled."""
        self.services.quotas.mutated(self, count, strict=self.version >= strict_from)


class ForwardedContext(RequestContext):
    """A forwarded request: the caller is the client, not the broker."""

    __slots__ = ("_host", "_principal")

    def __init__(
        self,
        envelope: RequestContext,
        row: Row,
        header: tuple[ApiKey, int, int, str | None],
        request_bytes: int,
        client: tuple[str, str],
    ) -> None:
        """``client`` is the principal and the address."""
        super().__init__(envelope.services, envelope.connection, row, header, request_bytes)
        self._principal, self._host = client

    @property
    def principal(self) -> str:
        return self._principal

    @property
    def host(self) -> str:
        return self._host
