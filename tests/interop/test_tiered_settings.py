"""Settings of tiered storage, beside a Kafka with its LocalTieredStorage."""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import product

import pytest

from skylog.kernel.settings.definitions import KAFKA_BROKER
from skylog.wire.apis import ApiKey
from tests.interop.scenarios.configs import BROKER, DELETE, SET, TOPIC, alter, describe
from tests.interop.scenarios.topics import create, topic
from tests.interop.support import Node
from tests.interop.tiered import tiered_pair
from tests.interop.wire import Side, differences

pytestmark = pytest.mark.interop

LIMITS = ("-2", "-1", "0", "5", "10", "9223372036854775807")
ON = {"remote.storage.enable": "true"}
# Kafka wraps the sentence of a check into another exception.
JAVAS_OWN = re.compile(
    r"Invalid value org\.apache\.kafka\.common\.config\.ConfigException: (.*)"
    r" for configuration Invalid dynamic configuration"
)
OURS = ("remote.", "log.local.", "follower.fetch.last")


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Node, Node]]:
    """A skylog and a Kafka with tiered storage on the same kind of store."""
    with tiered_pair(tmp_path_factory.mktemp("ours"), tmp_path_factory.mktemp("kafkas")) as made:
        yield made


def create_with(side: Side, number: int, settings: dict[str, str]) -> None:
    configs = [{"name": name, "value": value} for name, value in settings.items()]
    made = create(side, topic(side.name(str(number)), configs=configs), validate_only=True)
    side.note("its message", [made.topics[0].error_message])


def altered(
    side: Side,
    kind: int,
    name: str,
    changes: list[tuple[str, int, str | None]],
    *,
    validate_only: bool,
) -> None:
    """Unlike elsewhere the texts of errors are compared."""
    given = [{"name": key, "config_operation": what, "value": v} for key, what, v in changes]
    resources = [{"resource_type": kind, "resource_name": name, "configs": given}]
    answer = side.quiet(
        ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, resources=resources, validate_only=validate_only
    )
    found = answer.responses[0]
    message = JAVAS_OWN.sub(r"\1", found.error_message or "")
    side.note(f"{changes} {validate_only}", [found.error_code, message])


def creations(side: Side) -> None:
    cases: list[dict[str, str]] = [
        {**ON, f"local.retention.{unit}": local, f"retention.{unit}": total}
        for unit, local, total in product(("ms", "bytes"), LIMITS, LIMITS)
    ]
    cases += [
        {**ON, "cleanup.policy": policy} for policy in ("delete", "", "compact", "compact,delete")
    ]
    cases += [
        {**ON, "remote.log.copy.disable": "true", f"local.retention.{unit}": local}
        for unit, local in product(("ms", "bytes"), ("-2", "-1", "5", "604800000"))
    ]
    cases += [
        {"local.retention.ms": "10", "retention.ms": "5"},
        {"remote.storage.enable": "TRUE"},
        {"remote.storage.enable": "maybe"},
        {"remote.log.copy.disable": "true"},
        {"remote.log.delete.on.disable": "true"},
        {**ON, "local.retention.ms": "-3"},
        {**ON, "local.retention.bytes": "x"},
    ]
    for number, settings in enumerate(cases):
        create_with(side, number, settings)


def alterations(side: Side) -> None:
    name = side.create(remote_storage_enable="true", retention_ms="1000")
    plain = side.create("plain")
    changes: list[list[tuple[str, int, str | None]]] = [
        [("local.retention.ms", SET, "1001")],
        [("local.retention.ms", SET, "-1")],
        [("local.retention.ms", SET, "1000")],
        [("retention.ms", SET, "999")],
        [("remote.storage.enable", SET, "false")],
        [("remote.storage.enable", DELETE, None)],
        [("cleanup.policy", SET, "compact")],
        [("remote.log.copy.disable", SET, "true"), ("local.retention.ms", SET, "5")],
        [("remote.log.copy.disable", SET, "true")],
        [("remote.log.copy.disable", SET, "false")],
        [("remote.log.delete.on.disable", SET, "true"), ("remote.storage.enable", SET, "false")],
        [("remote.storage.enable", SET, "true")],
    ]
    for number, change in enumerate(changes):
        for validate_only in (True, False):
            altered(side, TOPIC, name, change, validate_only=validate_only)
        side.settle()
        describe(side, f"after {number}", (TOPIC, name, None), include_synonyms=True)
    alter(side, "later", (TOPIC, plain, [("remote.storage.enable", SET, "true")]))
    alter(side, "and compact", (TOPIC, plain, [("cleanup.policy", SET, "compact")]))
    side.settle()
    describe(side, "plain", (TOPIC, plain, None))


def broker_settings(side: Side) -> None:
    names = [
        name for name, key in KAFKA_BROKER.items() if name.startswith(OURS) and not key.internal
    ]
    given = {"remote.log.storage.manager.class.name", "remote.log.metadata.manager.listener.name"}
    for synonyms in (False, True):
        shown = [name for name in names if name not in given]
        describe(side, "broker", (BROKER, "1", shown), include_synonyms=synonyms)
        describe(side, "below a prefix", (BROKER, "1", ["rsm.config.dir"]))
    cases: list[tuple[str, str]] = [
        ("remote.log.storage.system.enable", "false"),
        ("remote.log.manager.task.interval.ms", "5"),
        ("remote.log.reader.threads", "4"),
        ("remote.log.reader.threads", "21"),
        ("remote.log.reader.threads", "0"),
        ("remote.log.reader.threads", "20"),
        ("remote.log.manager.copier.thread.pool.size", "4"),
        ("remote.log.manager.expiration.thread.pool.size", "99"),
        ("remote.log.manager.follower.thread.pool.size", "5"),
        ("remote.log.manager.copy.max.bytes.per.second", "0"),
        ("remote.log.manager.copy.max.bytes.per.second", "1000000"),
        ("remote.log.index.file.cache.total.size.bytes", "-1"),
        ("remote.fetch.max.wait.ms", "700"),
        ("remote.list.offsets.request.timeout.ms", "0"),
        ("log.local.retention.ms", "604800001"),
        ("log.local.retention.ms", "-1"),
        ("log.local.retention.ms", "604800000"),
        ("log.local.retention.bytes", "5"),
        ("log.retention.bytes", "4"),
        ("follower.fetch.last.tiered.offset.enable", "true"),
    ]
    for name, value in cases:
        for validate_only in (True, False):
            altered(side, BROKER, "", [(name, SET, value)], validate_only=validate_only)
        side.settle()
    for synonyms in (False, True):
        describe(side, "changed", (BROKER, "1", names), include_synonyms=synonyms)
    one = side.create("one")
    describe(side, "a topic below", (TOPIC, one, None), include_synonyms=True)
    # Other scenarios start with the defaults again.
    changed = {name: (name, DELETE, None) for name, _ in cases}
    alter(side, "undone", (BROKER, "", list(changed.values())))
    side.settle()


SCENARIOS = {function.__name__: function for function in (creations, alterations, broker_settings)}


def traced(name: str, node: Node) -> list[tuple[str, object]]:
    side = Side(node.address, name.replace("_", "-"))
    try:
        SCENARIOS[name](side)
    finally:
        side.close()
    return side.trace


@pytest.mark.parametrize("name", SCENARIOS)
def test_settings_are_kafkas(name: str, pair: tuple[Node, Node]) -> None:
    with ThreadPoolExecutor(2) as threads:
        runs = [threads.submit(traced, name, node) for node in pair]
    ours, kafkas = (run.result() for run in runs)
    assert ours, "nothing was compared"
    different = differences(ours, kafkas)
    assert not different, "\n" + "\n".join(different)
