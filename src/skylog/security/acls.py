"""ACL bindings and filters: Kafka's numbers, Kafka's checks, Kafka's matching."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Final, Protocol, TypeVar

from skylog.kernel.acl import (
    CLUSTER_RESOURCE_NAME,
    WILDCARD_RESOURCE,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourceType,
)
from skylog.kernel.errors import ErrorCode, KafkaError

WILDCARD_PRINCIPAL: Final = "User:*"
CLUSTER_NAME: Final = CLUSTER_RESOURCE_NAME

SUPPORTED_OPERATIONS: Final[dict[ResourceType, tuple[AclOperation, ...]]] = {
    ResourceType.TOPIC: (
        AclOperation.READ,
        AclOperation.WRITE,
        AclOperation.CREATE,
        AclOperation.DESCRIBE,
        AclOperation.DELETE,
        AclOperation.ALTER,
        AclOperation.DESCRIBE_CONFIGS,
        AclOperation.ALTER_CONFIGS,
    ),
    ResourceType.GROUP: (
        AclOperation.READ,
        AclOperation.DESCRIBE,
        AclOperation.DELETE,
        AclOperation.DESCRIBE_CONFIGS,
        AclOperation.ALTER_CONFIGS,
    ),
    ResourceType.CLUSTER: (
        AclOperation.CREATE,
        AclOperation.CLUSTER_ACTION,
        AclOperation.DESCRIBE_CONFIGS,
        AclOperation.ALTER_CONFIGS,
        AclOperation.IDEMPOTENT_WRITE,
        AclOperation.ALTER,
        AclOperation.DESCRIBE,
    ),
    ResourceType.TRANSACTIONAL_ID: (
        AclOperation.DESCRIBE,
        AclOperation.WRITE,
        AclOperation.TWO_PHASE_COMMIT,
    ),
    ResourceType.DELEGATION_TOKEN: (AclOperation.DESCRIBE,),
    ResourceType.USER: (AclOperation.CREATE_TOKENS, AclOperation.DESCRIBE_TOKENS),
}


def supported_operations(resource_type: ResourceType) -> tuple[AclOperation, ...]:
    """The operations that are valid on a resource of this type."""
    return SUPPORTED_OPERATIONS[resource_type]


def all_operations(resource_type: ResourceType) -> int:
    """The bit field of every supported operation: the response of a cluster without ACLs."""
    return operation_bits(SUPPORTED_OPERATIONS[resource_type])


def operation_bits(operations: tuple[AclOperation, ...] | list[AclOperation]) -> int:
    """Kafka's 32-bit field: one bit per operation number."""
    bits = 0
    for operation in operations:
        bits |= 1 << operation
    return bits


class AclEntry(Protocol):
    """An ACL in numbers and text, as in Kafka's metadata record."""

    @property
    def resource_type(self) -> int: ...
    @property
    def resource_name(self) -> str: ...
    @property
    def pattern_type(self) -> int: ...
    @property
    def principal(self) -> str: ...
    @property
    def host(self) -> str: ...
    @property
    def operation(self) -> int: ...
    @property
    def permission_type(self) -> int: ...


E = TypeVar("E", bound=IntEnum)


def _member(kind: type[E], number: int) -> E:
    """The enum value of a number; numbers of later versions are UNKNOWN, as in Kafka."""
    return kind(number) if number in kind._value2member_map_ else kind(0)


@dataclass(frozen=True, slots=True)
class AclBinding:
    """Which principal may, or may not, do what to which resources, and from where."""

    resource_type: ResourceType
    resource_name: str
    pattern_type: PatternType
    principal: str
    host: str
    operation: AclOperation
    permission: AclPermissionType

    @classmethod
    def of_numbers(
        cls,
        resource_type: int,
        resource_name: str,
        pattern_type: int,
        principal: str,
        host: str,
        operation: int,
        permission_type: int,
    ) -> AclBinding:
        """From the wire."""
        return cls(
            _member(ResourceType, resource_type),
            resource_name,
            _member(PatternType, pattern_type),
            principal,
            host,
            _member(AclOperation, operation),
            _member(AclPermissionType, permission_type),
        )

    @classmethod
    def of(cls, entry: AclEntry) -> AclBinding:
        """From a metadata record."""
        return cls.of_numbers(
            entry.resource_type,
            entry.resource_name,
            entry.pattern_type,
            entry.principal,
            entry.host,
            entry.operation,
            entry.permission_type,
        )

    @classmethod
    def of_creation(cls, creation: AclCreationEntry) -> AclBinding:
        """From an element of CreateAcls."""
        return cls.of_numbers(
            creation.resource_type,
            creation.resource_name,
            creation.resource_pattern_type,
            creation.principal,
            creation.host,
            creation.operation,
            creation.permission_type,
        )

    @property
    def is_wildcard(self) -> bool:
        return self.resource_name == WILDCARD_RESOURCE and self.pattern_type is PatternType.LITERAL


class AclCreationEntry(Protocol):
    """An element of CreateAcls, whose pattern type has a longer field name."""

    @property
    def resource_type(self) -> int: ...
    @property
    def resource_name(self) -> str: ...
    @property
    def resource_pattern_type(self) -> int: ...
    @property
    def principal(self) -> str: ...
    @property
    def host(self) -> str: ...
    @property
    def operation(self) -> int: ...
    @property
    def permission_type(self) -> int: ...


def validate(acl: AclBinding) -> None:
    """Kafka's checks on a new ACL; INVALID_REQUEST says which failed."""
    is_cluster = acl.resource_type is ResourceType.CLUSTER
    if is_cluster and acl.resource_name != CLUSTER_NAME:
        _refuse(f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}")
    if not acl.resource_name:
        _refuse("Invalid empty resource name")
    if acl.resource_type in (ResourceType.UNKNOWN, ResourceType.ANY):
        _refuse(f"Invalid resourceType {acl.resource_type.name}")
    if acl.pattern_type not in (PatternType.LITERAL, PatternType.PREFIXED):
        _refuse(f"Invalid patternType {acl.pattern_type.name}")
    if acl.operation in (AclOperation.UNKNOWN, AclOperation.ANY):
        _refuse(f"Invalid operation {acl.operation.name}")
    if acl.permission not in (AclPermissionType.DENY, AclPermissionType.ALLOW):
        _refuse(f"Invalid permissionType {acl.permission.name}")
    if ":" not in acl.principal:
        _refuse(
            f"Could not parse principal from `{acl.principal}` (no colon is present separating "
            "the principal type from the principal name)"
        )


def _refuse(why: str) -> None:
    raise KafkaError(ErrorCode.INVALID_REQUEST, why)


class AclFilterEntry(Protocol):
    """The filter of DescribeAcls and of each element of DeleteAcls."""

    @property
    def resource_type_filter(self) -> int: ...
    @property
    def resource_name_filter(self) -> str | None: ...
    @property
    def pattern_type_filter(self) -> int: ...
    @property
    def principal_filter(self) -> str | None: ...
    @property
    def host_filter(self) -> str | None: ...
    @property
    def operation(self) -> int: ...
    @property
    def permission_type(self) -> int: ...


@dataclass(frozen=True, slots=True)
class AclFilter:
    """Selects bindings; None and ANY select all."""

    resource_type: ResourceType = ResourceType.ANY
    resource_name: str | None = None
    pattern_type: PatternType = PatternType.ANY
    principal: str | None = None
    host: str | None = None
    operation: AclOperation = AclOperation.ANY
    permission: AclPermissionType = AclPermissionType.ANY

    @classmethod
    def of(cls, entry: AclFilterEntry) -> AclFilter:
        """From a request; INVALID_REQUEST for an unknown number."""
        found = cls(
            _member(ResourceType, entry.resource_type_filter),
            entry.resource_name_filter,
            _member(PatternType, entry.pattern_type_filter),
            entry.principal_filter,
            entry.host_filter,
            _member(AclOperation, entry.operation),
            _member(AclPermissionType, entry.permission_type),
        )
        if not found.resource_type or not found.pattern_type:
            _refuse("Unknown patternFilter.")
        if not found.operation or not found.permission:
            _refuse("Unknown entryFilter.")
        return found

    def matches(self, acl: AclBinding) -> bool:
        return (
            self.resource_type in (ResourceType.ANY, acl.resource_type)
            and self._matches_pattern(acl)
            and self.principal in (None, acl.principal)
            and self.host in (None, acl.host)
            and self.operation in (AclOperation.ANY, acl.operation)
            and self.permission in (AclPermissionType.ANY, acl.permission)
        )

    def _matches_pattern(self, acl: AclBinding) -> bool:
        """MATCH selects every pattern that would apply to a resource of this name."""
        if self.pattern_type not in (PatternType.ANY, PatternType.MATCH, acl.pattern_type):
            return False
        if self.resource_name is None or self.resource_name == acl.resource_name:
            return True
        if self.pattern_type is not PatternType.MATCH:
            return False
        if acl.pattern_type is PatternType.LITERAL:
            return acl.is_wildcard
        return self.resource_name.startswith(acl.resource_name)
