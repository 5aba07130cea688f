"""ACLs, SCRAM credentials and quotas."""

from __future__ import annotations

import math

import pytest

from skylog.controller.image.quotas import quota_entity
from skylog.controller.quotas import describe_client_quotas
from skylog.controller.scram import describe_user_scram_credentials
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.security.scram import ScramCredential, ScramMechanism
from skylog.wire.messages.alter_client_quotas_request import (
    AlterClientQuotasRequest,
    EntityData,
    EntryData,
    OpData,
)
from skylog.wire.messages.alter_user_scram_credentials_request import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from skylog.wire.messages.create_acls_request import AclCreation, CreateAclsRequest
from skylog.wire.messages.delete_acls_request import DeleteAclsFilter, DeleteAclsRequest
from skylog.wire.messages.describe_client_quotas_request import (
    ComponentData,
    DescribeClientQuotasRequest,
)
from skylog.wire.messages.describe_user_scram_credentials_request import (
    DescribeUserScramCredentialsRequest,
    UserName,
)
from tests.unit.controller.support import Bench

ANY, TOPIC, CLUSTER, LITERAL, PREFIXED, READ, WRITE, ALLOW, DENY = 1, 2, 4, 3, 4, 3, 4, 3, 2


def acl(
    name: str = "t",
    resource_type: int = TOPIC,
    pattern: int = LITERAL,
    principal: str = "User:alice",
    operation: int = READ,
    permission: int = ALLOW,
) -> AclCreation:
    return AclCreation(resource_type, name, pattern, principal, "*", operation, permission)


def create(bench: Bench, *acls: AclCreation) -> list[int]:
    response = bench.ask(CreateAclsRequest(list(acls)))
    return [result.error_code for result in response.results]


def test_an_acl_is_created_once() -> None:
    bench = Bench()
    before = len(bench.log)
    assert create(bench, acl(), acl(), acl("u")) == [0, 0, 0]
    assert create(bench, acl()) == [0]
    assert len(bench.log) == before + 2
    assert [one.resource_name for one in bench.image.acl_bindings()] == ["t", "u"]


@pytest.mark.parametrize(
    "wanted",
    [
        acl(""),
        acl(resource_type=0),
        acl(resource_type=ANY),
        acl(resource_type=99),
        acl("other", resource_type=CLUSTER),
        acl(pattern=ANY),
        acl(pattern=2),
        acl(operation=ANY),
        acl(operation=0),
        acl(permission=ANY),
        acl(principal="alice"),
    ],
)
def test_an_acl_that_cannot_be_is_refused(wanted: AclCreation) -> None:
    bench = Bench()
    assert create(bench, wanted, acl("good")) == [ErrorCode.INVALID_REQUEST, 0]
    assert [one.resource_name for one in bench.image.acl_bindings()] == ["good"]


def test_filters_choose_what_is_deleted() -> None:
    bench = Bench()
    create(bench, acl("t"), acl("te", pattern=PREFIXED), acl("u"), acl("t", permission=DENY))
    by_name = DeleteAclsFilter(TOPIC, "t", LITERAL, None, None, ANY, ANY)
    matching = DeleteAclsFilter(TOPIC, "test", 2, None, None, ANY, ANY)
    unknown = DeleteAclsFilter(0, None, ANY, None, None, ANY, ANY)
    response = bench.ask(DeleteAclsRequest([by_name, by_name, matching, unknown]))
    found = [(one.error_code, len(one.matching_acls)) for one in response.filter_results]
    assert found == [(0, 2), (0, 2), (0, 1), (ErrorCode.INVALID_REQUEST, 0)]
    assert [one.resource_name for one in bench.image.acl_bindings()] == ["u"]
    assert create(bench, acl("t")) == [0]


def test_filters_may_not_match_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("skylog.controller.acls.CONTROLLER_RECORDS_PER_REQUEST_MAX", 3)
    bench = Bench()
    create(bench, acl("a"), acl("b"))
    every = DeleteAclsFilter(TOPIC, None, LITERAL, None, None, ANY, ANY)
    assert bench.refused(DeleteAclsRequest([every] * 2)).code is ErrorCode.POLICY_VIOLATION
    assert len(bench.ask(DeleteAclsRequest([every])).filter_results[0].matching_acls) == 2


def upsert(
    name: str = "alice", mechanism: int = 1, iterations: int = 4096
) -> ScramCredentialUpsertion:
    return ScramCredentialUpsertion(name, mechanism, iterations, b"salt", b"salted")


def alter_users(
    bench: Bench, *changes: ScramCredentialUpsertion | ScramCredentialDeletion
) -> dict[str, int]:
    deletions = [one for one in changes if isinstance(one, ScramCredentialDeletion)]
    upsertions = [one for one in changes if isinstance(one, ScramCredentialUpsertion)]
    response = bench.ask(AlterUserScramCredentialsRequest(deletions, upsertions))
    return {one.user: one.error_code for one in response.results}


def test_a_credential_is_stored_without_the_password() -> None:
    bench = Bench()
    assert alter_users(bench, upsert()) == {"alice": 0}
    expected = ScramCredential.from_salted(ScramMechanism.SHA_256, b"salt", b"salted", 4096)
    assert bench.image.scram_credential("alice", 1) == expected
    assert bench.image.scram_credential("alice", 2) is None
    assert alter_users(bench, ScramCredentialDeletion("alice", 1)) == {"alice": 0}
    assert bench.image.scram_credential("alice", 1) is None
    assert bench.image.scram.by_user == {}


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (upsert(""), ErrorCode.UNACCEPTABLE_CREDENTIAL),
        (upsert(mechanism=0), ErrorCode.UNSUPPORTED_SASL_MECHANISM),
        (upsert(mechanism=3), ErrorCode.UNSUPPORTED_SASL_MECHANISM),
        (upsert(iterations=4095), ErrorCode.UNACCEPTABLE_CREDENTIAL),
        (upsert(iterations=16_385), ErrorCode.UNACCEPTABLE_CREDENTIAL),
        (upsert(iterations=16_384), ErrorCode.NONE),
        (ScramCredentialDeletion("nobody", 1), ErrorCode.RESOURCE_NOT_FOUND),
        (ScramCredentialDeletion("", 1), ErrorCode.UNACCEPTABLE_CREDENTIAL),
        (ScramCredentialDeletion("alice", 7), ErrorCode.UNSUPPORTED_SASL_MECHANISM),
    ],
)
def test_credentials_are_checked(
    change: ScramCredentialUpsertion | ScramCredentialDeletion, code: ErrorCode
) -> None:
    assert alter_users(Bench(), change) == {change.name: code}


def test_a_user_is_changed_once_per_request() -> None:
    bench = Bench()
    results = alter_users(bench, upsert(), upsert(mechanism=2), upsert("bob"))
    assert results == {"alice": ErrorCode.DUPLICATE_RESOURCE, "bob": 0}
    assert list(bench.image.scram.by_user) == ["bob"]


def test_users_are_described_without_secrets() -> None:
    bench = Bench()
    alter_users(bench, upsert(), upsert("bob", 2, 5000))
    alter_users(bench, upsert(mechanism=2))

    def described(*users: str) -> list[tuple[str, int, list[tuple[int, int]]]]:
        request = DescribeUserScramCredentialsRequest([UserName(user) for user in users])
        return [
            (one.user, one.error_code, [(i.mechanism, i.iterations) for i in one.credential_infos])
            for one in describe_user_scram_credentials(bench.image, request).results
        ]

    assert described() == [("alice", 0, [(1, 4096), (2, 4096)]), ("bob", 0, [(2, 5000)])]
    assert described("bob", "bob", "eve") == [
        ("bob", ErrorCode.DUPLICATE_RESOURCE, []),
        ("eve", ErrorCode.RESOURCE_NOT_FOUND, []),
    ]


USER = EntityData("user", "alice")
CLIENT = EntityData("client-id", "app")


def quota(*entity: EntityData, **values: float | None) -> EntryData:
    ops = [OpData(key, value or 0.0, value is None) for key, value in values.items()]
    return EntryData(list(entity), ops)


def alter_quotas(bench: Bench, *entries: EntryData, validate_only: bool = False) -> list[int]:
    response = bench.ask(AlterClientQuotasRequest(list(entries), validate_only))
    return [one.error_code for one in response.entries]


def test_quotas_are_set_and_removed() -> None:
    bench = Bench()
    assert alter_quotas(bench, quota(USER, CLIENT, producer_byte_rate=10, request_percentage=0.5))
    entity = quota_entity([("user", "alice"), ("client-id", "app")])
    assert bench.image.quotas.of(entity) == {"producer_byte_rate": 10, "request_percentage": 0.5}
    assert alter_quotas(bench, quota(CLIENT, USER, producer_byte_rate=None)) == [0]
    assert bench.image.quotas.of(entity) == {"request_percentage": 0.5}
    before = len(bench.log)
    alter_quotas(bench, quota(CLIENT, USER, request_percentage=0.5, consumer_byte_rate=None))
    alter_quotas(bench, quota(CLIENT, USER, request_percentage=None), validate_only=True)
    assert len(bench.log) == before
    alter_quotas(bench, quota(CLIENT, USER, request_percentage=None))
    assert bench.image.quotas.by_entity == {}


@pytest.mark.parametrize(
    "entry",
    [
        quota(producer_byte_rate=1),
        quota(EntityData("group", "g"), producer_byte_rate=1),
        quota(EntityData("user", ""), producer_byte_rate=1),
        quota(USER, EntityData("ip", "10.0.0.1"), connection_creation_rate=1),
        quota(EntityData("ip", "no address"), connection_creation_rate=1),
        quota(EntityData("ip", "256.1.1.1"), connection_creation_rate=1),
        quota(EntityData("ip", "10.0.0.1"), producer_byte_rate=1),
        quota(EntityData("ip", "10.0.0.1"), connection_creation_rate=2**31),
        quota(USER, connection_creation_rate=1),
        quota(USER, no_such_key=1),
        quota(USER, producer_byte_rate=-1),
        quota(USER, producer_byte_rate=math.nan),
        quota(USER, producer_byte_rate=math.inf),
        quota(USER, producer_byte_rate=1.5),
        EntryData([USER], [OpData("producer_byte_rate", 0.0)]),
        EntryData([USER], [OpData("producer_byte_rate", 1.0), OpData("producer_byte_rate", 2.0)]),
    ],
)
def test_quotas_that_cannot_be_are_refused(entry: EntryData) -> None:
    bench = Bench()
    before = len(bench.log)
    assert alter_quotas(bench, entry) == [ErrorCode.INVALID_REQUEST]
    assert len(bench.log) == before


@pytest.mark.parametrize("address", ["10.0.0.1", "::1", "fe80::1", None])
def test_addresses_have_quotas_of_their_own(address: str | None) -> None:
    bench = Bench()
    assert alter_quotas(bench, quota(EntityData("ip", address), connection_creation_rate=5)) == [0]


def test_an_entity_is_altered_once_per_request() -> None:
    bench = Bench()
    entries = [quota(USER, CLIENT, producer_byte_rate=1), quota(CLIENT, USER, producer_byte_rate=2)]
    assert alter_quotas(bench, *entries) == [0, ErrorCode.INVALID_REQUEST]


EXACT, DEFAULT, SPECIFIED = range(3)


def test_quotas_are_listed_by_filter() -> None:
    bench = Bench()
    alter_quotas(
        bench,
        quota(USER, producer_byte_rate=1),
        quota(USER, CLIENT, producer_byte_rate=2),
        quota(EntityData("user", None), producer_byte_rate=3),
        quota(EntityData("ip", None), connection_creation_rate=4),
    )

    def listed(*components: ComponentData, strict: bool = False) -> list[float]:
        request = DescribeClientQuotasRequest(list(components), strict)
        response = describe_client_quotas(bench.image, request)
        return sorted(entry.values[0].value for entry in response.entries)

    alice = ComponentData("user", EXACT, "alice")
    assert listed() == [1, 2, 3, 4]
    assert listed(strict=True) == []
    assert listed(alice) == [1, 2]
    assert listed(alice, strict=True) == [1]
    assert listed(ComponentData("user", DEFAULT, None)) == [3]
    assert listed(ComponentData("user", SPECIFIED, None)) == [1, 2, 3]
    assert listed(alice, ComponentData("client-id", SPECIFIED, None)) == [2]
    assert listed(ComponentData("ip", DEFAULT, None)) == [4]


@pytest.mark.parametrize(
    ("components", "code"),
    [
        ([ComponentData("", EXACT, "x")], ErrorCode.INVALID_REQUEST),
        ([ComponentData("user", EXACT, None)], ErrorCode.INVALID_REQUEST),
        ([ComponentData("user", DEFAULT, "x")], ErrorCode.INVALID_REQUEST),
        ([ComponentData("user", SPECIFIED, "x")], ErrorCode.INVALID_REQUEST),
        ([ComponentData("user", 3, None)], ErrorCode.INVALID_REQUEST),
        ([ComponentData("user", EXACT, "x")] * 2, ErrorCode.INVALID_REQUEST),
        (
            [ComponentData("user", EXACT, "x"), ComponentData("ip", EXACT, "x")],
            ErrorCode.INVALID_REQUEST,
        ),
        ([ComponentData("group", EXACT, "x")], ErrorCode.UNSUPPORTED_VERSION),
    ],
)
def test_a_filter_that_makes_no_sense_is_refused(
    components: list[ComponentData], code: ErrorCode
) -> None:
    with pytest.raises(KafkaError) as refused:
        describe_client_quotas(Bench().image, DescribeClientQuotasRequest(components))
    assert refused.value.code is code
