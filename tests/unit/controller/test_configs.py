from __future__ import annotations

import pytest

from skylog.controller.image.configs import ConfigResourceType
from skylog.kernel.errors import ErrorCode
from skylog.wire.messages import alter_configs_request
from skylog.wire.messages.alter_configs_request import AlterConfigsRequest
from skylog.wire.messages.clear_elr_record import ClearElrRecord
from skylog.wire.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from tests.unit.controller.support import LEVELS, Bench, topic

SET, DELETE, APPEND, SUBTRACT = range(4)
TOPIC, BROKER = ConfigResourceType.TOPIC, ConfigResourceType.BROKER
NO_ELR = {**LEVELS, "eligible.leader.replicas.version": 0}


def bench_with_topic(**options: object) -> Bench:
    bench = Bench(brokers=1, **options)  # type: ignore[arg-type]
    bench.create(topic("t"))
    return bench


def alter(
    bench: Bench,
    *changes: tuple[str, int, str | None],
    resource: tuple[int, str] = (TOPIC, "t"),
    validate_only: bool = False,
) -> int:
    configs = [AlterableConfig(*change) for change in changes]
    request = IncrementalAlterConfigsRequest(
        [AlterConfigsResource(*resource, configs)], validate_only
    )
    (result,) = bench.ask(request).responses
    assert (result.resource_type, result.resource_name) == resource
    assert (result.error_message is None) == (result.error_code == 0)
    return int(result.error_code)


def test_values_are_set_and_deleted() -> None:
    bench = bench_with_topic()
    assert alter(bench, ("retention.ms", SET, "5"), ("cleanup.policy", SET, "compact")) == 0
    assert bench.image.topic_configs("t") == {"retention.ms": "5", "cleanup.policy": "compact"}
    assert alter(bench, ("retention.ms", DELETE, None)) == 0
    assert alter(bench, ("cleanup.policy", DELETE, "ignored")) == 0
    assert bench.image.topic_configs("t") == {}


def test_lists_are_appended_to_and_subtracted_from() -> None:
    bench = bench_with_topic()
    assert alter(bench, ("cleanup.policy", APPEND, "compact,delete")) == 0
    assert bench.image.topic_configs("t")["cleanup.policy"] == "delete,compact"
    assert alter(bench, ("cleanup.policy", SUBTRACT, "delete,none")) == 0
    assert bench.image.topic_configs("t")["cleanup.policy"] == "compact"


def test_a_topics_value_that_stays_is_not_written_but_a_brokers_is() -> None:
    bench = bench_with_topic()
    alter(bench, ("retention.ms", SET, "5"))
    before = len(bench.log)
    alter(bench, ("retention.ms", SET, "5"))
    assert len(bench.log) == before
    for _ in range(2):
        alter(bench, ("log.retention.ms", SET, "5"), resource=(BROKER, "1"))
    assert len(bench.log) == before + 2


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (("retention.ms", SET, "soon"), ErrorCode.INVALID_CONFIG),
        (("no.such.key", SET, "1"), ErrorCode.INVALID_CONFIG),
        (("retention.ms", APPEND, "1"), ErrorCode.INVALID_CONFIG),
        (("retention.ms", SUBTRACT, "1"), ErrorCode.INVALID_CONFIG),
        (("cleanup.policy", SET, "x" * 32_768), ErrorCode.INVALID_CONFIG),
        (("cleanup.policy", SET, "x" * 32_767), ErrorCode.NONE),
        (("retention.ms", SET, None), ErrorCode.INVALID_REQUEST),
        (("cleanup.policy", APPEND, None), ErrorCode.INVALID_REQUEST),
        (("retention.ms", 4, "1"), ErrorCode.INVALID_REQUEST),
    ],
)
def test_a_value_that_cannot_be_is_refused(
    change: tuple[str, int, str | None], code: ErrorCode
) -> None:
    bench = bench_with_topic()
    assert alter(bench, change) == code


@pytest.mark.parametrize(
    ("resource", "code"),
    [
        ((TOPIC, "none"), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ((TOPIC, ""), ErrorCode.INVALID_REQUEST),
        ((TOPIC, "!"), ErrorCode.INVALID_TOPIC_EXCEPTION),
        ((BROKER, "7"), ErrorCode.BROKER_ID_NOT_REGISTERED),
        ((BROKER, "x"), ErrorCode.INVALID_REQUEST),
        ((BROKER, "-1"), ErrorCode.INVALID_REQUEST),
        ((BROKER, "1"), ErrorCode.NONE),
        ((BROKER, ""), ErrorCode.NONE),
        ((ConfigResourceType.GROUP, ""), ErrorCode.INVALID_REQUEST),
        ((ConfigResourceType.GROUP, "g"), ErrorCode.NONE),
        ((ConfigResourceType.CLIENT_METRICS, "m"), ErrorCode.NONE),
        ((ConfigResourceType.BROKER_LOGGER, "1"), ErrorCode.INVALID_REQUEST),
        ((3, "x"), ErrorCode.INVALID_REQUEST),
    ],
)
def test_a_resource_must_be_there(resource: tuple[int, str], code: ErrorCode) -> None:
    bench = bench_with_topic()
    assert alter(bench, ("retention.ms", SET, "5"), resource=resource) == code


def test_one_bad_value_spoils_its_resource_and_no_other() -> None:
    bench = bench_with_topic()
    bench.create(topic("u"))
    good = AlterableConfig("retention.ms", SET, "5")
    bad = AlterableConfig("no.such.key", SET, "5")
    response = bench.ask(
        IncrementalAlterConfigsRequest(
            [
                AlterConfigsResource(TOPIC, "t", [good, bad]),
                AlterConfigsResource(TOPIC, "u", [good]),
            ]
        )
    )
    assert [one.error_code for one in response.responses] == [ErrorCode.INVALID_CONFIG, 0]
    assert bench.image.topic_configs("t") == {}
    assert bench.image.topic_configs("u") == {"retention.ms": "5"}


def test_what_is_named_twice_is_refused() -> None:
    bench = bench_with_topic()
    one = AlterableConfig("retention.ms", SET, "5")
    twice = IncrementalAlterConfigsRequest([AlterConfigsResource(TOPIC, "t", [one])] * 2)
    codes = [result.error_code for result in bench.ask(twice).responses]
    assert codes == [ErrorCode.INVALID_REQUEST] * 2
    assert alter(bench, ("retention.ms", SET, "1"), ("retention.ms", SET, "2")) == (
        ErrorCode.INVALID_REQUEST
    )


def test_validation_alone_changes_no_value() -> None:
    bench = bench_with_topic()
    assert alter(bench, ("retention.ms", SET, "5"), validate_only=True) == 0
    assert bench.image.topic_configs("t") == {}


def test_the_old_request_replaces_everything() -> None:
    bench = bench_with_topic()
    alter(bench, ("retention.ms", SET, "5"), ("cleanup.policy", SET, "compact"))

    def replace(**configs: str | None) -> int:
        entries = [
            alter_configs_request.AlterableConfig(name.replace("_", "."), value)
            for name, value in configs.items()
        ]
        resource = alter_configs_request.AlterConfigsResource(TOPIC, "t", entries)
        (result,) = bench.ask(AlterConfigsRequest([resource])).responses
        return int(result.error_code)

    assert replace(retention_ms="7") == 0
    assert bench.image.topic_configs("t") == {"retention.ms": "7"}
    assert replace(retention_ms=None) == ErrorCode.INVALID_REQUEST
    assert replace(retention_ms="soon") == ErrorCode.INVALID_CONFIG
    assert bench.image.topic_configs("t") == {"retention.ms": "7"}


def test_the_minimum_isr_is_the_clusters_while_leaders_are_eligible() -> None:
    bench = bench_with_topic()
    key = "min.insync.replicas"
    assert alter(bench, (key, SET, "1"), resource=(BROKER, "1")) == ErrorCode.INVALID_CONFIG
    assert alter(bench, (key, DELETE, None), resource=(BROKER, "")) == ErrorCode.INVALID_CONFIG
    assert alter(bench, (key, SET, "2"), resource=(BROKER, "")) == 0
    assert bench.log[-1] == ClearElrRecord("")
    assert alter(bench, (key, SET, "2")) == 0
    assert bench.log[-1] == ClearElrRecord("t")
    plain = bench_with_topic(levels=NO_ELR)
    assert alter(plain, (key, SET, "1"), resource=(BROKER, "1")) == 0


def test_another_minimum_clears_the_eligible_leaders() -> None:
    bench = Bench(brokers=1)
    bench.create(topic("t"))
    bench.expire(1)
    assert bench.partition("t").elr == (1,)
    alter(bench, ("min.insync.replicas", SET, "2"))
    assert (bench.partition("t").elr, bench.partition("t").last_known_elr) == ((), ())
