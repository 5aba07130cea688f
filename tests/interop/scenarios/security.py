"""ACLs without an authorizer, SCRAM credentials, SASL on a listener that has none."""

from __future__ import annotations

from typing import Any

from skylog.wire.apis import ApiKey
from tests.interop.wire import Side, scenario, served


@scenario
def acls_without_an_authorizer(side: Side) -> None:
    one = {
        "resource_type": 2,
        "resource_name": "t",
        "resource_pattern_type": 3,
        "principal": "User:a",
        "host": "*",
        "operation": 3,
        "permission_type": 3,
    }
    every = {
        "resource_type_filter": 1,
        "resource_name_filter": None,
        "principal_filter": None,
        "host_filter": None,
        "operation": 1,
        "permission_type": 1,
        "pattern_type_filter": 1,
    }
    for version in served(ApiKey.CREATE_ACLS):
        side.call(ApiKey.CREATE_ACLS, version, creations=[one])
        side.call(ApiKey.CREATE_ACLS, version, creations=[])
        side.call(ApiKey.DESCRIBE_ACLS, version, **every)
        side.call(ApiKey.DELETE_ACLS, version, filters=[every])
        side.call(ApiKey.DELETE_ACLS, version, filters=[every, every])


def scram(side: Side, label: str, upsertions: list[Any] = [], deletions: list[Any] = []) -> None:  # noqa: B006
    def ordered(answer: Any) -> Any:
        answer["results"].sort(key=str)
        return answer

    side.call(
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
        0,
        label=label,
        keep=ordered,
        upsertions=upsertions,
        deletions=deletions,
    )


@scenario
def scram_credentials(side: Side) -> None:
    alice, bob = side.name("alice"), side.name("bob")

    def put(name: str = alice, mechanism: int = 1, iterations: int = 4096, **more: Any) -> Any:
        return {
            "name": name,
            "mechanism": mechanism,
            "iterations": iterations,
            "salt": b"salt",
            "salted_password": b"password",
            **more,
        }

    scram(side, "sha 256", [put()])
    scram(side, "sha 512", [put(mechanism=2)])
    scram(side, "mechanism 0", [put(mechanism=0)])
    scram(side, "mechanism 3", [put(mechanism=3)])
    for iterations in (4095, 16384, 16385, 0, -1):
        scram(side, f"{iterations} iterations", [put(bob, iterations=iterations)])
    scram(side, "no name", [put("")])
    scram(side, "no salt", [put(bob, salt=b"")])
    # Not compared: an empty password, which makes Kafka fail (−1) where we refuse it (93).
    scram(side, "twice", [put(), put()])
    scram(side, "both mechanisms", [put(), put(mechanism=2)])
    scram(side, "put and delete", [put()], [{"name": alice, "mechanism": 1}])
    scram(side, "delete what is not", [], [{"name": side.name("no"), "mechanism": 1}])
    scram(side, "delete strangely", [], [{"name": alice, "mechanism": 9}])
    scram(side, "one good, one bad", [put(bob), put("", 1)])
    for users in ([alice], [alice, bob], [alice, alice], ["", side.name("no")], [side.name("no")]):
        side.call(
            ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, 0, users=[{"name": user} for user in users]
        )
    scram(side, "delete", [], [{"name": alice, "mechanism": 1}, {"name": alice, "mechanism": 2}])
    scram(side, "delete", [], [{"name": bob, "mechanism": 1}])
    side.call(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, 0, users=[{"name": alice}])


@scenario
def sasl_where_there_is_none(side: Side) -> None:
    for version in served(ApiKey.SASL_HANDSHAKE):
        for mechanism in ("PLAIN", "SCRAM-SHA-256", "", "nonsense"):
            side.call(ApiKey.SASL_HANDSHAKE, version, mechanism=mechanism)
    for version in served(ApiKey.SASL_AUTHENTICATE):
        side.call(ApiKey.SASL_AUTHENTICATE, version, auth_bytes=b"\0a\0b")
