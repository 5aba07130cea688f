"""ACLs: validation, filters, parsing of principals and super users."""

from __future__ import annotations

from copy import copy
from dataclasses import replace

import pytest

from skylog.kernel.acl import AclOperation, AclPermissionType, PatternType, ResourceType
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.security.acls import (
    AclBinding,
    AclFilter,
    all_operations,
    validate,
)
from skylog.security.principal import parse_super_users, principal_name
from skylog.wire.messages.access_control_entry_record import AccessControlEntryRecord
from skylog.wire.messages.create_acls_request import AclCreation
from skylog.wire.messages.describe_acls_request import DescribeAclsRequest

ACL = AclBinding(
    ResourceType.TOPIC,
    "orders",
    PatternType.LITERAL,
    "User:alice",
    "*",
    AclOperation.READ,
    AclPermissionType.ALLOW,
)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"resource_type": ResourceType.CLUSTER}, "CLUSTER resource is kafka-cluster"),
        ({"resource_name": ""}, "empty resource name"),
        ({"resource_type": ResourceType.ANY}, "Invalid resourceType ANY"),
        ({"resource_type": ResourceType.UNKNOWN}, "Invalid resourceType UNKNOWN"),
        ({"pattern_type": PatternType.MATCH}, "Invalid patternType MATCH"),
        ({"pattern_type": PatternType.ANY}, "Invalid patternType ANY"),
        ({"operation": AclOperation.ANY}, "Invalid operation ANY"),
        ({"operation": AclOperation.UNKNOWN}, "Invalid operation UNKNOWN"),
        ({"permission": AclPermissionType.ANY}, "Invalid permissionType ANY"),
        ({"principal": "alice"}, "no colon"),
    ],
)
def test_acls_that_are_not_stored(change: dict[str, object], said: str) -> None:
    validate(ACL)
    with pytest.raises(KafkaError, match=said) as refused:
        validate(replace(ACL, **change))  # type: ignore[arg-type]
    assert refused.value.code is ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize(
    ("pattern", "name", "chosen"),
    [
        (PatternType.LITERAL, "orders", {"literal"}),
        (PatternType.LITERAL, "*", {"wildcard"}),
        (PatternType.PREFIXED, "ord", {"prefixed"}),
        (PatternType.PREFIXED, "orders", set()),
        (PatternType.ANY, "orders", {"literal"}),
        (PatternType.ANY, None, {"literal", "wildcard", "prefixed"}),
        (PatternType.MATCH, "orders", {"literal", "wildcard", "prefixed"}),
        (PatternType.MATCH, "ordinary", {"wildcard", "prefixed"}),
        (PatternType.MATCH, "or", {"wildcard"}),
        (PatternType.MATCH, None, {"literal", "wildcard", "prefixed"}),
    ],
)
def test_patterns_that_filters_choose(
    pattern: PatternType, name: str | None, chosen: set[str]
) -> None:
    acls = {
        "literal": ACL,
        "wildcard": replace(ACL, resource_name="*"),
        "prefixed": replace(ACL, resource_name="ord", pattern_type=PatternType.PREFIXED),
    }
    wanted = AclFilter(ResourceType.TOPIC, name, pattern)
    assert {key for key, acl in acls.items() if wanted.matches(acl)} == chosen


@pytest.mark.parametrize(
    "wanted",
    [
        AclFilter(resource_type=ResourceType.GROUP),
        AclFilter(principal="User:bob"),
        AclFilter(host="1.2.3.4"),
        AclFilter(operation=AclOperation.WRITE),
        AclFilter(operation=AclOperation.ALL),
        AclFilter(permission=AclPermissionType.DENY),
    ],
)
def test_every_part_of_a_filter_counts(wanted: AclFilter) -> None:
    assert AclFilter().matches(ACL)
    assert not wanted.matches(ACL)


def test_requests_and_records_are_read() -> None:
    record = AccessControlEntryRecord(
        resource_type=2,
        resource_name="orders",
        pattern_type=3,
        principal="User:alice",
        host="*",
        operation=3,
        permission_type=3,
    )
    assert AclBinding.of(record) == ACL
    creation = AclCreation(
        resource_type=2,
        resource_name="orders",
        resource_pattern_type=3,
        principal="User:alice",
        host="*",
        operation=99,
        permission_type=3,
    )
    assert AclBinding.of_creation(creation) == replace(ACL, operation=AclOperation.UNKNOWN)
    request = DescribeAclsRequest(
        resource_type_filter=2,
        resource_name_filter=None,
        pattern_type_filter=1,
        principal_filter=None,
        host_filter=None,
        operation=1,
        permission_type=1,
    )
    assert AclFilter.of(request) == AclFilter(ResourceType.TOPIC)
    for field, said in (
        ("resource_type_filter", "patternFilter"),
        ("pattern_type_filter", "patternFilter"),
        ("operation", "entryFilter"),
        ("permission_type", "entryFilter"),
    ):
        unknown = copy(request)
        setattr(unknown, field, 77)
        with pytest.raises(KafkaError, match=said):
            AclFilter.of(unknown)


def test_the_bit_fields_that_kafka_answers_without_acls() -> None:
    known = {
        ResourceType.TOPIC: 0b1101_1111_1000,
        ResourceType.GROUP: 0b1101_0100_1000,
        ResourceType.CLUSTER: 0b1_1111_1010_0000,
    }
    for resource_type, bits in known.items():
        assert all_operations(resource_type) == bits


def test_super_users_are_read() -> None:
    assert parse_super_users("") == frozenset()
    assert parse_super_users("User:alice; User:CN=a,O=b;;Group:x:y") == {
        "User:alice",
        "User:CN=a,O=b",
        "Group:x:y",
    }
    assert principal_name("Group:x:y") == "x:y"
    for wrong in ("alice", "User:", ":x"):
        with pytest.raises(ValueError, match="principalType:principalName"):
            parse_super_users(wrong)
