"""StandardAuthorizer's rules, with an index that stays fast with many thousands of ACLs.

Super users may do anything. Of the ACLs whose pattern covers the resource, whose principal is the
caller's or ``User:*`` and whose host is the caller's or ``*``: one DENY refuses, else one ALLOW
allows, else access is refused — or ``allow.everyone.if.no.acl.found`` applies if no ACL covers the
resource.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from skylog.kernel.acl import (
    WILDCARD_RESOURCE,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourceType,
)
from skylog.kernel.ids import Uuid
from skylog.security.acls import (
    WILDCARD_PRINCIPAL,
    AclBinding,
    AclEntry,
    AclFilter,
    operation_bits,
    supported_operations,
)

# Cached decisions; dropping all of them costs one lookup each.
DECISIONS_MAX: Final = 65_536
# Longer names cannot be topics; caching them would let a caller fill the memory.
_REMEMBERED_NAME_LENGTH_MAX: Final = 255
# A name that Kafka also uses to find out what holds for any name.
_ANY_NAME: Final = "hardcode"

_IMPLIED_BY: Final = {
    AclOperation.DESCRIBE: frozenset(
        {AclOperation.READ, AclOperation.WRITE, AclOperation.DELETE, AclOperation.ALTER}
    ),
    AclOperation.DESCRIBE_CONFIGS: frozenset({AclOperation.ALTER_CONFIGS}),
}
_NONE: Final[frozenset[AclOperation]] = frozenset()

_Bucket = dict[str, list[AclBinding]]  # by principal
OnDenied = Callable[[str, str, AclOperation, ResourceType, str], None]


class Authorizer:
    """The ACLs of a cluster, updated from its metadata, and the resulting decisions.

    ``on_denied(principal, host, operation, resource_type, name)`` is called for each actual
    refusal: the audit log.
    """

    def __init__(
        self,
        super_users: Iterable[str] = (),
        *,
        allow_if_no_acl: bool = False,
        on_denied: OnDenied | None = None,
    ) -> None:
        self._super_users = frozenset(super_users)
        self._allow_if_no_acl = allow_if_no_acl
        self._on_denied = on_denied
        self._acls: dict[Uuid, AclBinding] = {}
        self._literal: dict[tuple[ResourceType, str], _Bucket] = {}
        self._prefixed: dict[tuple[ResourceType, str], _Bucket] = {}
        # The number of ACLs with a prefix of each length: only these lengths are looked up.
        self._lengths: dict[ResourceType, dict[int, int]] = defaultdict(dict)
        self._decisions: dict[tuple[str, str, AclOperation, ResourceType, str | None], bool] = {}

    def __len__(self) -> int:
        return len(self._acls)

    def add(self, acl_id: Uuid, entry: AclEntry | AclBinding) -> None:
        """Add an ACL; replaces one with the same id."""
        self.remove(acl_id)
        acl = entry if isinstance(entry, AclBinding) else AclBinding.of(entry)
        self._acls[acl_id] = acl
        key = (acl.resource_type, acl.resource_name)
        if acl.pattern_type is PatternType.PREFIXED:
            lengths = self._lengths[acl.resource_type]
            lengths[len(acl.resource_name)] = lengths.get(len(acl.resource_name), 0) + 1
        self._index(acl).setdefault(key, {}).setdefault(acl.principal, []).append(acl)
        self._decisions.clear()

    def remove(self, acl_id: Uuid) -> None:
        """Remove an ACL, if it is known."""
        acl = self._acls.pop(acl_id, None)
        if acl is None:
            return
        index, key = self._index(acl), (acl.resource_type, acl.resource_name)
        bucket = index[key]
        bucket[acl.principal].remove(acl)
        if not bucket[acl.principal]:
            del bucket[acl.principal]
        if not bucket:
            del index[key]
        if acl.pattern_type is PatternType.PREFIXED:
            lengths = self._lengths[acl.resource_type]
            lengths[len(acl.resource_name)] -= 1
            if not lengths[len(acl.resource_name)]:
                del lengths[len(acl.resource_name)]
        self._decisions.clear()

    def find(self, chosen: AclFilter) -> Iterator[tuple[Uuid, AclBinding]]:
        """The ACLs that a filter matches, for DescribeAcls and DeleteAcls."""
        return (item for item in self._acls.items() if chosen.matches(item[1]))

    def authorize(
        self,
        principal: str,
        host: str,
        operation: AclOperation,
        resource_type: ResourceType,
        name: str,
        *,
        audit: bool = True,
    ) -> bool:
        """Whether the caller may do this to the one resource; ``audit`` is off for mere listing."""
        if principal in self._super_users:
            return True
        key = (principal, host, operation, resource_type, name)
        allowed = self._decisions.get(key)
        if allowed is None:
            allowed = self._remember(
                key, self._decide(principal, host, operation, resource_type, name)
            )
        if not allowed and audit and self._on_denied is not None:
            self._on_denied(principal, host, operation, resource_type, name)
        return allowed

    def authorize_by_resource_type(
        self, principal: str, host: str, operation: AclOperation, resource_type: ResourceType
    ) -> bool:
        """Whether the caller may do this to any resource of the type."""
        if self.authorize(principal, host, operation, resource_type, _ANY_NAME, audit=False):
            return True
        key = (principal, host, operation, resource_type, None)
        allowed = self._decisions.get(key)
        if allowed is None:
            allowed = self._remember(
                key, self._decide_any(principal, host, operation, resource_type)
            )
        return allowed

    def authorized_operations(
        self, principal: str, host: str, resource_type: ResourceType, name: str
    ) -> int:
        """The bit field of the operations that the caller may do on the resource."""
        return operation_bits(
            [
                operation
                for operation in supported_operations(resource_type)
                if self.authorize(principal, host, operation, resource_type, name, audit=False)
            ]
        )

    def _index(self, acl: AclBinding) -> dict[tuple[ResourceType, str], _Bucket]:
        return self._prefixed if acl.pattern_type is PatternType.PREFIXED else self._literal

    def _remember(
        self, key: tuple[str, str, AclOperation, ResourceType, str | None], allowed: bool
    ) -> bool:
        if len(key[4] or "") > _REMEMBERED_NAME_LENGTH_MAX:
            return allowed
        if len(self._decisions) >= DECISIONS_MAX:
            self._decisions.clear()
        self._decisions[key] = allowed
        return allowed

    def _covering(self, resource_type: ResourceType, name: str) -> Iterator[_Bucket]:
        for literal in {name, WILDCARD_RESOURCE}:
            if (bucket := self._literal.get((resource_type, literal))) is not None:
                yield bucket
        for length in self._lengths.get(resource_type, ()):
            if length <= len(name):
                bucket = self._prefixed.get((resource_type, name[:length]))
                if bucket is not None:
                    yield bucket

    def _decide(
        self, who: str, host: str, operation: AclOperation, resource_type: ResourceType, name: str
    ) -> bool:
        found = allowed = False
        for bucket in self._covering(resource_type, name):
            found = True
            for holder in {who, WILDCARD_PRINCIPAL}:
                for acl in bucket.get(holder, ()):
                    if acl.host in (WILDCARD_RESOURCE, host) and _speaks_of(acl, operation):
                        if acl.permission is not AclPermissionType.ALLOW:
                            return False
                        allowed = True
        return allowed if found else self._allow_if_no_acl

    def _decide_any(
        self, who: str, host: str, operation: AclOperation, resource_type: ResourceType
    ) -> bool:
        """Some ALLOW that no DENY of a wider or the same pattern overrides, as in Kafka."""
        relevant = [
            acl
            for acl in self._acls.values()
            if acl.resource_type is resource_type
            and acl.principal in (who, WILDCARD_PRINCIPAL)
            and acl.host in (WILDCARD_RESOURCE, host)
            and acl.operation in (operation, AclOperation.ALL)
        ]
        denied = {
            (acl.pattern_type, acl.resource_name)
            for acl in relevant
            if acl.permission is AclPermissionType.DENY
        }
        if (PatternType.LITERAL, WILDCARD_RESOURCE) in denied:
            return False
        return any(
            acl.is_wildcard or not _dominated(acl, denied)
            for acl in relevant
            if acl.permission is AclPermissionType.ALLOW
        )


def _speaks_of(acl: AclBinding, operation: AclOperation) -> bool:
    """Only an ALLOW implies the weaker operations: DENY of READ does not deny DESCRIBE."""
    if acl.operation in (AclOperation.ALL, operation):
        return True
    implying = _IMPLIED_BY.get(operation, _NONE)
    return acl.permission is AclPermissionType.ALLOW and acl.operation in implying


def _dominated(acl: AclBinding, denied: set[tuple[PatternType, str]]) -> bool:
    name = acl.resource_name
    if acl.pattern_type is PatternType.LITERAL and (PatternType.LITERAL, name) in denied:
        return True
    return any(
        (PatternType.PREFIXED, name[:length]) in denied for length in range(1, len(name) + 1)
    )
