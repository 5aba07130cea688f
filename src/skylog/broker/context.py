"""What a handler knows of its request: who asks, in which version, and what they may do."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from skylog.kernel.errors import KafkaError
from skylog.security.acls import CLUSTER_NAME, AclOperation, ResourceType

if TYPE_CHECKING:
    from skylog.broker.connection import Connection
    from skylog.broker.dispatch import Permission, Row
    from skylog.broker.services import Services
    from skylog.wire.apis import ApiKey


class RequestContext:
    """One request. The row of the dispatch table that it matched says which permission it needs."""

    __slots__ = (
        "api_key",
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
        """Whether the client may do this; always, where no authorizer is configured."""
        authorizer = self.services.authorizer
        return authorizer is None or authorizer.authorize(
            self.principal, self.host, operation, resource, name, audit=audit
        )

    def allowed(self, name: str) -> bool:
        """Whether the permission of this request's row is given on ``name``."""
        permission = self.row.permission
        return self.authorize(permission.operation, permission.resource, name)

    def allowed_names(self, names: Iterable[str]) -> set[str]:
        return {name for name in set(names) if self.allowed(name)}

    def authorize_cluster(self, operation: AclOperation, *, audit: bool = True) -> bool:
        return self.authorize(operation, ResourceType.CLUSTER, CLUSTER_NAME, audit=audit)

    def require(self, permission: Permission, name: str) -> None:
        """Raise the permission's error unless it is given."""
        if not self.authorize(permission.operation, permission.resource, name):
            raise KafkaError(permission.denied)

    def authorized_operations(self, resource: ResourceType, name: str) -> int:
        """The bit field that Describe answers carry."""
        authorizer = self.services.authorizer
        if authorizer is None:
            return all_operations(resource)
        return authorizer.authorized_operations(self.principal, self.host, resource, name)


def all_operations(resource: ResourceType) -> int:
    """Every operation that makes sense on a resource, as Kafka answers without an authorizer."""
    from skylog.security.acls import SUPPORTED_OPERATIONS  # noqa: PLC0415

    return sum(1 << operation for operation in SUPPORTED_OPERATIONS[resource])
