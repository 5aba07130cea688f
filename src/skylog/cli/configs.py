"""``skylog configs``."""

from __future__ import annotations

from collections.abc import Collection
from typing import Annotated, Any, Final

import typer

from skylog.cli.command_tree import examples, new_app
from skylog.cli.connect import call, require_topic
from skylog.cli.errors import raise_failures
from skylog.cli.options import (
    Bootstrap,
    ClientConfig,
    DryRun,
    Json,
    exactly_one,
    parse_pairs,
)
from skylog.cli.output import print_json, print_table
from skylog.client.admin import Admin
from skylog.client.admin.configs import (
    Change,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    ConfigType,
)
from skylog.client.cluster import Cluster
from skylog.kernel.config import Operation
from skylog.kernel.errors import ErrorCode, KafkaError

app = new_app(
    group=True,
    help="Show and change settings of a topic, one broker, all brokers, loggers or a group.",
    epilog=examples(
        "skylog configs describe --topic orders --all",
        "skylog configs set --topic orders retention.ms=3600000",
        "skylog configs unset --topic orders retention.ms",
    ),
)

Topic = Annotated[str | None, typer.Option("--topic", metavar="NAME", help="Of a topic.")]
Broker = Annotated[int | None, typer.Option("--broker", metavar="ID", help="One broker.")]
Brokers = Annotated[
    bool,
    typer.Option("--cluster", help="The default for all brokers without a value of their own."),
]
Loggers = Annotated[
    int | None, typer.Option("--loggers", metavar="ID", help="Log levels of a broker's loggers.")
]
Group = Annotated[str | None, typer.Option("--group", metavar="NAME", help="Of a group.")]

_COLUMNS: Final = {"name": "Name", "value": "Value", "source": "From", "read_only": "Read only"}
_SOURCES: Final = {
    ConfigSource.TOPIC: "topic",
    ConfigSource.BROKER: "broker",
    ConfigSource.DEFAULT_BROKER: "cluster",
    ConfigSource.STATIC_BROKER: "server.properties",
    ConfigSource.DEFAULT: "default",
    ConfigSource.BROKER_LOGGER: "logger",
    ConfigSource.GROUP: "group",
}
_LISTENER_PREFIX: Final = "listener.name."
_OWN: Final = frozenset({"topic", "broker", "cluster", "logger", "group"})


def _resource(
    topic: str | None, broker: int | None, brokers: bool, loggers: int | None, group: str | None
) -> ConfigResource:
    chosen = exactly_one(
        {
            "--topic": topic is not None,
            "--broker": broker is not None,
            "--cluster": brokers,
            "--loggers": loggers is not None,
            "--group": group is not None,
        }
    )
    return {
        "--topic": ConfigResource(ConfigType.TOPIC, topic or ""),
        "--broker": ConfigResource(ConfigType.BROKER, str(broker)),
        "--cluster": ConfigResource(ConfigType.BROKER, ""),
        "--loggers": ConfigResource(ConfigType.BROKER_LOGGER, str(loggers)),
        "--group": ConfigResource(ConfigType.GROUP, group or ""),
    }[chosen]


def _label(resource: ConfigResource) -> str:
    if resource.type is ConfigType.BROKER and not resource.name:
        return "all brokers"
    return f"{resource.type.name.lower().replace('_', ' ')} {resource.name}"


@app.command(
    epilog=examples(
        "skylog configs describe --topic orders",
        "skylog configs describe --broker 1 --all log.retention.hours",
        "skylog configs describe --loggers 1",
    )
)
def describe(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="NAME", help="Only these settings.")
    ] = None,
    topic: Topic = None,
    broker: Broker = None,
    brokers: Brokers = False,
    loggers: Loggers = None,
    group: Group = None,
    all_: Annotated[bool, typer.Option("--all", help="Also show defaults.")] = False,
    bootstrap: Bootstrap = None,
    client_config: ClientConfig = None,
    json: Json = False,
) -> None:
    """Show settings that were changed, or all of them, and where each value comes from."""
    resource = _resource(topic, broker, brokers, loggers, group)

    async def work(cluster: Cluster) -> list[ConfigEntry]:
        await _check_target(cluster, resource)
        found = await Admin(cluster).configs.describe([resource], names or None)
        raise_failures({_label(key): value for key, value in found.items()})
        entries = found.get(resource, [])
        return [] if isinstance(entries, KafkaError) else entries

    entries = call(work, bootstrap, client_config)
    rows = [_row(entry) for entry in sorted(entries, key=lambda entry: entry.name)]
    unknown = sorted(set(names or ()) - {row["name"] for row in rows})
    if unknown:
        raise_failures({name: _no_setting(name, resource) for name in unknown})
    rows = [row for row in rows if all_ or names or row["source"] in _OWN]
    if json:
        print_json(rows)
    elif rows:
        print_table(_COLUMNS, rows)
    else:
        print(f"{_label(resource)}: nothing differs from the defaults; --all shows them")


def _no_setting(name: str, resource: ConfigResource) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_CONFIG, f"{_label(resource)} has no setting {name}")


def _row(entry: ConfigEntry) -> dict[str, Any]:
    source = _SOURCES.get(ConfigSource(entry.source)) if entry.source in _SOURCES else None
    return {
        "name": entry.name,
        "value": "[hidden]" if entry.sensitive else entry.value,
        "source": source or "unknown",
        "read_only": entry.read_only,
    }


async def _check_target(cluster: Cluster, resource: ConfigResource) -> None:
    """Report a topic or broker that does not exist; a broker is asked at its own address."""
    if resource.type is ConfigType.TOPIC:
        await require_topic(cluster, resource.name)
    if resource.type in (ConfigType.BROKER, ConfigType.BROKER_LOGGER) and resource.name:
        known = sorted(cluster.metadata.brokers)
        if int(resource.name) not in known:
            there = ", ".join(map(str, known))
            raise KafkaError(
                ErrorCode.INVALID_REQUEST, f"there is no broker {resource.name}; there are: {there}"
            )


@app.command(
    "set",
    epilog=examples(
        "skylog configs set --topic orders retention.ms=3600000 cleanup.policy=compact,delete",
        "skylog configs set --cluster log.cleaner.threads=2",
        "skylog configs set --loggers 1 broker=DEBUG",
    ),
)
def set_(
    settings: Annotated[list[str], typer.Argument(metavar="NAME=VALUE", help="New values.")],
    topic: Topic = None,
    broker: Broker = None,
    brokers: Brokers = False,
    loggers: Loggers = None,
    group: Group = None,
    dry_run: DryRun = False,
    bootstrap: Bootstrap = None,
    client_config: ClientConfig = None,
    json: Json = False,
) -> None:
    """Set values at run time. If one cannot be set, none is."""
    resource = _resource(topic, broker, brokers, loggers, group)
    pairs = parse_pairs(settings, "NAME=VALUE")
    changes = [Change(name, value) for name, value in pairs.items()]
    call(lambda cluster: _alter(cluster, resource, changes, dry_run), bootstrap, client_config)
    _report(resource, sorted(pairs), "set", dry_run=dry_run, json=json)


@app.command(
    epilog=examples(
        "skylog configs unset --topic orders retention.ms cleanup.policy",
        "skylog configs unset --broker 1 log.cleaner.threads",
    )
)
def unset(
    names: Annotated[list[str], typer.Argument(metavar="NAME", help="Settings to reset.")],
    topic: Topic = None,
    broker: Broker = None,
    brokers: Brokers = False,
    loggers: Loggers = None,
    group: Group = None,
    dry_run: DryRun = False,
    bootstrap: Bootstrap = None,
    client_config: ClientConfig = None,
    json: Json = False,
) -> None:
    """Reset settings to their defaults. If one cannot be reset, none is."""
    resource = _resource(topic, broker, brokers, loggers, group)
    changes = [Change(name, None, Operation.DELETE) for name in names]
    call(lambda cluster: _alter(cluster, resource, changes, dry_run), bootstrap, client_config)
    _report(resource, sorted(names), "unset", dry_run=dry_run, json=json)


async def _check_names(cluster: Cluster, resource: ConfigResource, names: list[str]) -> None:
    """Brokers accept any name, because plugins may define it; here it is most likely a typing
    error."""
    plain = [name for name in names if not name.startswith(_LISTENER_PREFIX)]
    node = resource.name or str(min(cluster.metadata.brokers))
    asked = ConfigResource(ConfigType.BROKER, node)
    found = (await Admin(cluster).configs.describe([asked], plain or None))[asked]
    if not isinstance(found, KafkaError):
        known = {entry.name for entry in found}
        unknown = [name for name in plain if name not in known]
        raise_failures({name: _no_setting(name, asked) for name in unknown})


async def _alter(
    cluster: Cluster, resource: ConfigResource, changes: Collection[Change], dry_run: bool
) -> None:
    await _check_target(cluster, resource)
    if resource.type is ConfigType.BROKER:
        added = [change.name for change in changes if change.operation is Operation.SET]
        await _check_names(cluster, resource, added)
    results = await Admin(cluster).configs.alter({resource: changes}, validate_only=dry_run)
    raise_failures({_label(key): error for key, error in results.items()})


def _report(
    resource: ConfigResource, names: list[str], verb: str, *, dry_run: bool, json: bool
) -> None:
    if json:
        print_json({"target": _label(resource), "names": names, "done": not dry_run})
    else:
        could = "could be " if dry_run else ""
        print(f"{_label(resource)}: {', '.join(names)} {could}{verb}")
