"""DescribeConfigs, AlterConfigs, IncrementalAlterConfigs, ListConfigResources, client quotas."""

from __future__ import annotations

from typing import Any

from skylog.wire.apis import ApiKey
from tests.interop.wire import Side, scenario, served

TOPIC, BROKER, LOGGER, METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE, APPEND, SUBTRACT = range(4)

# Settings whose values depend on the machine or the test.
LOCAL = {
    "advertised.listeners",
    "listeners",
    "log.dirs",
    "log.dir",
    "node.id",
    "broker.id",
    "controller.quorum.bootstrap.servers",
    "controller.quorum.voters",
    "metadata.log.dir",
}


def _results(answer: Any) -> Any:
    for result in answer["results"]:
        if result["error_code"]:
            # Kafka has a message for some errors only.
            result["error_message"] = "…"
        result["configs"].sort(key=lambda config: config["name"])
        for config in result["configs"]:
            # Our own descriptions, and not for every setting.
            config["documentation"] = None
            if config["name"] in LOCAL:
                config.update(value="", is_default=False, config_source=0, synonyms=[])
    return answer


def describe(
    side: Side, label: str, *asked: tuple[int, str, Any], version: int = 4, **more: Any
) -> None:
    resources = [
        {"resource_type": kind, "resource_name": name, "configuration_keys": keys}
        for kind, name, keys in asked
    ]
    side.call(
        ApiKey.DESCRIBE_CONFIGS, version, label=label, keep=_results, resources=resources, **more
    )


@scenario
def describe_topics(side: Side) -> None:
    name = side.create(retention_ms="1000", cleanup_policy="compact")
    for version in served(ApiKey.DESCRIBE_CONFIGS):
        describe(side, "all", (TOPIC, name, None), version=version)
        describe(
            side,
            "some",
            (TOPIC, name, ["retention.ms", "no.such", "segment.bytes"]),
            version=version,
        )
        describe(side, "none", (TOPIC, name, []), version=version)
        describe(side, "with synonyms", (TOPIC, name, None), version=version, include_synonyms=True)
        describe(side, "missing", (TOPIC, side.name("no"), None), version=version)
        if version >= 3:
            describe(
                side, "documented", (TOPIC, name, None), version=version, include_documentation=True
            )
    for odd in ("", "a b", "x" * 250):
        describe(side, f"{odd!r:.20}", (TOPIC, odd, None))
    # Not compared: a topic that is named twice, which Kafka describes twice.
    describe(side, "nothing asked")


@scenario
def describe_brokers(side: Side) -> None:
    """The settings that both have; settings without effect in skylog are not shown."""

    def shared(answer: Any) -> Any:
        return [
            (r["error_code"], r["resource_type"], r["resource_name"]) for r in answer["results"]
        ]

    for name in ("1", "", "2", "-1", "x", " 1", "01", "1.0", "99999999999"):
        side.call(
            ApiKey.DESCRIBE_CONFIGS,
            4,
            label=f"broker {name!r}",
            keep=shared,
            resources=[{"resource_type": BROKER, "resource_name": name}],
        )
        side.call(
            ApiKey.DESCRIBE_CONFIGS,
            4,
            label=f"logger {name!r}",
            keep=shared,
            resources=[{"resource_type": LOGGER, "resource_name": name}],
        )
    keys = [
        "log.retention.ms",
        "log.retention.hours",
        "num.partitions",
        "message.max.bytes",
        "compression.type",
        "auto.create.topics.enable",
        "min.insync.replicas",
        "log.segment.bytes",
        "default.replication.factor",
        "offsets.topic.num.partitions",
        "delete.topic.enable",
        "log.cleanup.policy",
        "group.initial.rebalance.delay.ms",
        "max.connections.per.ip",
        "log.message.timestamp.type",
        "ssl.keystore.password",
        "ssl.key.password",
    ]
    for synonyms in (False, True):
        describe(side, "broker", (BROKER, "1", keys), include_synonyms=synonyms)
        describe(side, "defaults", (BROKER, "", keys), include_synonyms=synonyms)


@scenario
def describe_other_kinds(side: Side) -> None:
    for kind in (0, 1, 3, 5, 7, -1, 64, 127):
        describe(side, f"kind {kind}", (kind, "x", None))
    describe(side, "client metrics", (METRICS, "some", None))
    describe(side, "client metrics, no name", (METRICS, "", None))
    describe(side, "group", (GROUP, "some", None))
    describe(side, "group, no name", (GROUP, "", None))


def alter(
    side: Side,
    label: str,
    *asked: tuple[int, str, list[tuple[str, int, str | None]]],
    validate_only: bool = False,
    version: int = 1,
) -> None:
    resources = [
        {
            "resource_type": kind,
            "resource_name": name,
            "configs": [
                {"name": key, "config_operation": operation, "value": value}
                for key, operation, value in changes
            ],
        }
        for kind, name, changes in asked
    ]

    def ordered(answer: Any) -> Any:
        answer["responses"].sort(key=str)
        return answer

    side.call(
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        version,
        label=label,
        keep=ordered,
        resources=resources,
        validate_only=validate_only,
    )


@scenario
def alter_topics(side: Side) -> None:
    name = side.create()

    def change(*changes: tuple[str, int, str | None], **more: Any) -> None:
        alter(side, f"{changes}", (TOPIC, name, list(changes)), **more)

    change(("retention.ms", SET, "5000"), version=0)
    change(("retention.ms", SET, "x"))
    change(("retention.ms", SET, None))
    change(("retention.ms", SET, ""))
    change(("retention.ms", APPEND, "5"))
    # Not compared: an invalid operation, which makes Kafka fail (−1) where we name the error.
    change(("no.such", SET, "5"))
    change(("no.such", DELETE, None))
    change(("segment.ms", DELETE, None))
    change(("retention.ms", DELETE, "ignored"))
    change(("cleanup.policy", APPEND, "compact"))
    change(("cleanup.policy", APPEND, "compact"))
    change(("cleanup.policy", SUBTRACT, "delete"))
    change(("cleanup.policy", SUBTRACT, "nonsense"))
    change(("cleanup.policy", SUBTRACT, "compact"))
    change(("cleanup.policy", APPEND, None))
    change(("retention.ms", SET, "1"), ("retention.ms", SET, "2"))
    change(("retention.ms", SET, "1"), ("retention.ms", DELETE, None))
    change(("retention.ms", SET, "7"), ("no.such", SET, "8"))
    change(("segment.bytes", SET, "1"), validate_only=True)
    change(("segment.bytes", SET, "2000000"), validate_only=True)
    change(("min.insync.replicas", SET, "3"))
    change(("min.insync.replicas", DELETE, None))
    change()
    side.settle()
    describe(side, "after all", (TOPIC, name, None), include_synonyms=True)
    nope = side.name("no")
    alter(side, "missing", (TOPIC, nope, [("retention.ms", SET, "1")]))
    alter(side, "no name", (TOPIC, "", [("retention.ms", SET, "1")]))
    alter(side, "bad name", (TOPIC, "a b", [("retention.ms", SET, "1")]))
    alter(side, "twice", *[(TOPIC, name, [("retention.ms", SET, "1")])] * 2)
    alter(
        side,
        "one of two",
        (TOPIC, name, [("retention.ms", SET, "1")]),
        (TOPIC, nope, [("retention.ms", SET, "1")]),
    )


@scenario
def alter_brokers(side: Side) -> None:
    cases = [
        ("1", "log.retention.ms", SET, "86400000"),
        ("", "log.retention.ms", SET, "96400000"),
        ("1", "log.retention.ms", SET, "x"),
        ("1", "num.partitions", SET, "3"),
        ("", "num.partitions", SET, "3"),
        ("1", "no.such.setting", SET, "3"),
        ("", "no.such.setting", SET, "3"),
        ("1", "message.max.bytes", SET, "2000000"),
        ("1", "message.max.bytes", SET, "-1"),
        ("2", "log.retention.ms", SET, "1"),
        ("x", "log.retention.ms", SET, "1"),
        ("-1", "log.retention.ms", SET, "1"),
        ("1", "max.connections.per.ip", SET, "7"),
        ("", "max.connections.per.ip", SET, "7"),
        ("", "max.connections.per.ip", DELETE, None),
        ("1", "max.connections.per.ip", DELETE, None),
        ("1", "log.cleaner.threads", SET, "2"),
        ("1", "min.insync.replicas", SET, "2"),
        ("", "min.insync.replicas", SET, "1"),
        ("", "min.insync.replicas", DELETE, None),
        ("1", "unclean.leader.election.enable", SET, "true"),
        ("", "unclean.leader.election.enable", SET, "false"),
        ("1", "listener.security.protocol.map", SET, "A:PLAINTEXT"),
        ("1", "node.id", SET, "7"),
        ("", "compression.type", SET, "lz4"),
        ("", "compression.type", SET, "brotli"),
        ("", "compression.type", DELETE, None),
        ("1", "follower.replication.throttled.rate", SET, "1000"),
        ("", "leader.replication.throttled.rate", SET, "0"),
    ]
    for name, key, operation, value in cases:
        alter(
            side, f"{name!r} {key} {operation} {value}", (BROKER, name, [(key, operation, value)])
        )
    side.settle()
    keys = [key for _, key, _, _ in cases if key not in LOCAL]
    keys.remove("log.cleaner.threads")
    for name in ("1", ""):
        describe(side, f"then {name!r}", (BROKER, name, sorted(set(keys))), include_synonyms=True)
    topic = side.create()
    describe(side, "and a topic", (TOPIC, topic, None), include_synonyms=True)
    undo = {(name, key) for name, key, _, _ in cases if name in ("", "1")}
    for name, key in sorted(undo):
        alter(side, f"undo {name!r} {key}", (BROKER, name, [(key, DELETE, None)]))
    side.settle()
    describe(side, "as before", (TOPIC, topic, None), include_synonyms=True)


@scenario
def alter_the_old_way(side: Side) -> None:
    name = side.create(retention_ms="9000")

    def change(label: str, *asked: tuple[int, str, dict[str, str | None]], **more: Any) -> None:
        resources = [
            {
                "resource_type": kind,
                "resource_name": who,
                "configs": [{"name": k, "value": v} for k, v in configs.items()],
            }
            for kind, who, configs in asked
        ]
        side.call(
            ApiKey.ALTER_CONFIGS, more.pop("version", 2), label=label, resources=resources, **more
        )

    for version in served(ApiKey.ALTER_CONFIGS):
        change("replaces all", (TOPIC, name, {"segment.ms": f"{version + 50}"}), version=version)
        side.settle()
        describe(side, "then", (TOPIC, name, ["segment.ms", "retention.ms"]))
    change("a bad value", (TOPIC, name, {"segment.ms": "x"}))
    change("null", (TOPIC, name, {"segment.ms": None}))
    change("no such key", (TOPIC, name, {"no.such": "1"}))
    change("missing", (TOPIC, side.name("no"), {"segment.ms": "1"}))
    # Not compared: a resource twice, which Kafka never answers.
    change("validated only", (TOPIC, name, {"segment.ms": "77"}), validate_only=True)
    change("a strange kind", (1, name, {"segment.ms": "77"}))
    change("nothing left", (TOPIC, name, {}))
    side.settle()
    describe(side, "at last", (TOPIC, name, ["segment.ms", "retention.ms"]))


@scenario
def alter_other_kinds(side: Side) -> None:
    name = side.name()
    for kind in (0, 1, 3, -1, 99):
        alter(side, f"kind {kind}", (kind, name, [("a", SET, "b")]))
    alter(side, "metrics", (METRICS, name, [("interval.ms", SET, "1000"), ("metrics", SET, "a,b")]))
    alter(side, "metrics, bad", (METRICS, name, [("interval.ms", SET, "1")]))
    alter(side, "metrics, bad key", (METRICS, name, [("nope", SET, "1")]))
    alter(side, "metrics, no name", (METRICS, "", [("metrics", SET, "1")]))
    side.settle()
    describe(side, "metrics then", (METRICS, name, None))
    alter(side, "group", (GROUP, name, [("consumer.session.timeout.ms", SET, "50000")]))
    alter(side, "group, bad", (GROUP, name, [("consumer.session.timeout.ms", SET, "1")]))
    alter(side, "group, bad key", (GROUP, name, [("nope", SET, "1")]))
    side.settle()
    describe(side, "group then", (GROUP, name, None))
    for resource in ([], [METRICS], [GROUP], [TOPIC], [BROKER], [LOGGER], [99]):

        def ours(answer: Any) -> Any:
            found = answer["config_resources"]
            answer["config_resources"] = sorted(
                (f for f in found if f["resource_type"] != TOPIC), key=str
            )
            return answer

        side.call(ApiKey.LIST_CONFIG_RESOURCES, 1, keep=ours, resource_types=resource)
    side.call(ApiKey.LIST_CONFIG_RESOURCES, 0, keep=ours)
    for kind in (METRICS, GROUP):
        keys = ("interval.ms", "metrics") if kind == METRICS else ("consumer.session.timeout.ms",)
        alter(side, "undo", (kind, name, [(key, DELETE, None) for key in keys]))


@scenario
def alter_loggers(side: Side) -> None:
    root = "root"
    for name, key, operation, value in [
        ("1", root, SET, "INFO"),
        ("1", root, SET, "nonsense"),
        ("1", "no.such.logger", SET, "DEBUG"),
        ("1", root, DELETE, None),
        ("1", root, APPEND, "INFO"),
        ("2", root, SET, "INFO"),
        ("", root, SET, "INFO"),
        ("x", root, SET, "INFO"),
    ]:
        alter(
            side, f"{name!r} {key} {operation} {value}", (LOGGER, name, [(key, operation, value)])
        )


def quota(
    side: Side, label: str, entity: list[tuple[str, str | None]], *ops: Any, **more: Any
) -> None:
    entry = {
        "entity": [{"entity_type": kind, "entity_name": name} for kind, name in entity],
        "ops": [{"key": key, "value": value, "remove": remove} for key, value, remove in ops],
    }
    version = more.pop("version", 1)
    side.call(ApiKey.ALTER_CLIENT_QUOTAS, version, label=label, entries=[entry], **more)


def quotas(
    side: Side, label: str, *components: tuple[str, int, str | None], strict: bool = False
) -> None:
    asked = [{"entity_type": k, "match_type": t, "match": m} for k, t, m in components]

    def ordered(answer: Any) -> Any:
        for entry in answer["entries"] or []:
            entry["entity"].sort(key=str)
            entry["values"].sort(key=str)
        (answer["entries"] or []).sort(key=str)
        return answer

    side.call(
        ApiKey.DESCRIBE_CLIENT_QUOTAS, 1, label=label, keep=ordered, components=asked, strict=strict
    )


@scenario
def client_quotas(side: Side) -> None:
    user, client = side.name("user"), side.name("client")
    rate = ("producer_byte_rate", 1000.0, False)
    for version in served(ApiKey.ALTER_CLIENT_QUOTAS):
        quota(side, "user", [("user", user)], rate, version=version)
    quota(side, "client", [("client-id", client)], ("consumer_byte_rate", 2.5, False))
    quota(
        side, "both", [("user", user), ("client-id", client)], ("request_percentage", 12.5, False)
    )
    quota(side, "default user", [("user", None)], rate, validate_only=True)
    quota(side, "ip", [("ip", "127.0.0.9")], ("connection_creation_rate", 100.0, False))
    quota(side, "ip, wrong key", [("ip", "127.0.0.9")], rate)
    quota(side, "ip, not one", [("ip", "a b")], ("connection_creation_rate", 100.0, False))
    quota(side, "user, ip's key", [("user", user)], ("connection_creation_rate", 100.0, False))
    quota(side, "ip and user", [("ip", "127.0.0.9"), ("user", user)], rate)
    quota(side, "no entity", [], rate)
    quota(side, "strange entity", [("planet", "mars")], rate)
    quota(side, "entity twice", [("user", user), ("user", user)], rate)
    quota(side, "empty name", [("user", "")], rate)
    quota(side, "strange key", [("user", user)], ("no_such", 1.0, False))
    for value in (0.0, -1.0, 0.5, 1e30):
        quota(side, f"value {value}", [("user", user)], ("producer_byte_rate", value, False))
        quota(side, f"percent {value}", [("user", user)], ("request_percentage", value, False))
    quota(side, "mutations", [("user", user)], ("controller_mutation_rate", 5.0, False))
    quota(side, "remove what is not", [("user", user)], ("consumer_byte_rate", 0.0, True))
    quota(side, "set and remove", [("user", user)], rate, ("producer_byte_rate", 0.0, True))
    quota(side, "no ops", [("user", user)])
    exact, default, anyone = 0, 1, 2
    quotas(side, "user exactly", ("user", exact, user))
    quotas(side, "user exactly, strictly", ("user", exact, user), strict=True)
    quotas(side, "client exactly", ("client-id", exact, client))
    quotas(side, "both", ("user", exact, user), ("client-id", exact, client))
    quotas(side, "any ip", ("ip", anyone, None))
    quotas(side, "default ip", ("ip", default, None))
    quotas(side, "strange type", ("planet", exact, "mars"))
    quotas(side, "strange match", ("user", 7, user))
    quotas(side, "null", ("user", exact, None))
    quotas(side, "default with a name", ("user", default, "x"))
    quotas(side, "type twice", ("user", exact, user), ("user", exact, user))
    quotas(side, "ip and user", ("user", exact, user), ("ip", exact, "127.0.0.9"))
    quotas(side, "empty type", ("", exact, user))
    for entity in (
        [("user", user)],
        [("client-id", client)],
        [("user", user), ("client-id", client)],
    ):
        keys = (
            "producer_byte_rate",
            "consumer_byte_rate",
            "request_percentage",
            "controller_mutation_rate",
        )
        quota(side, "undo", entity, *[(key, 0.0, True) for key in keys])
    quota(side, "undo", [("ip", "127.0.0.9")], ("connection_creation_rate", 0.0, True))
    quotas(side, "all gone", ("user", exact, user))
