"""``skylog topics``."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Annotated, Any, Final

import typer

from skylog.cli.command_tree import examples, new_app
from skylog.cli.connect import call
from skylog.cli.errors import CommandError, counted, raise_failures
from skylog.cli.options import (
    Bootstrap,
    ClientConfig,
    DryRun,
    Json,
    TopicName,
    TopicNames,
    Yes,
    parse_pairs,
)
from skylog.cli.output import confirm, print_json, print_table, say
from skylog.client.admin import Admin
from skylog.client.admin.configs import (
    Change,
    ConfigResource,
    ConfigSource,
    ConfigType,
)
from skylog.client.admin.topics import CreatedTopic, NewTopic
from skylog.client.cluster import Cluster
from skylog.client.metadata import PartitionInfo, TopicInfo, TopicPartition
from skylog.client.offsets import EARLIEST, LATEST, OffsetAtTime
from skylog.kernel.config import Operation
from skylog.kernel.errors import ErrorCode, KafkaError

app = new_app(
    group=True,
    help="Create, list, describe, alter and delete topics.",
    epilog=examples("skylog topics create orders --partitions 6", "skylog topics list"),
)

Configs = Annotated[
    list[str] | None,
    typer.Option("--config", metavar="NAME=VALUE", help="A setting of the topic; repeatable."),
]


@app.command(
    epilog=examples(
        "skylog topics create orders",
        "skylog topics create orders invoices --partitions 6 --if-not-exists",
        "skylog topics create users --config cleanup.policy=compact --config segment.ms=3600000",
    )
)
def create(
    topics: TopicNames,
    partitions: Annotated[
        int,
        typer.Option(
            "--partitions", "-p", help="Number of partitions; -1 uses the broker's default."
        ),
    ] = -1,
    replication_factor: Annotated[
        int,
        typer.Option(
            "--replication-factor",
            "-r",
            help="Replicas per partition; -1 uses the broker's default.",
        ),
    ] = -1,
    config: Configs = None,
    if_not_exists: Annotated[
        bool, typer.Option("--if-not-exists", help="Accept topics that already exist.")
    ] = False,
    dry_run: DryRun = False,
    bootstrap: Bootstrap = None,
    client_config: ClientConfig = None,
    json: Json = False,
) -> None:
    """Create topics. If one of them cannot be created, none is."""
    configs = parse_pairs(config or (), "--config")
    wanted = [
        NewTopic(name, partitions, replication_factor, configs=configs)
        for name in dict.fromkeys(topics)
    ]

    async def work(cluster: Cluster) -> dict[str, CreatedTopic | None]:
        return await _create(Admin(cluster), wanted, if_not_exists, dry_run)

    made = call(work, bootstrap, client_config)
    rows = [
        {
            "topic": name,
            "created": topic is not None and not dry_run,
            "partitions": topic.partitions if topic else None,
            "replication_factor": topic.replication_factor if topic else None,
            "topic_id": str(topic.topic_id) if topic and not dry_run else None,
        }
        for name, topic in made.items()
    ]
    if json:
        print_json(rows)
        return
    verb = "could be created" if dry_run else "created"
    for name, topic in made.items():
        if topic is None:
            print(f"{name} already exists")
        else:
            count = counted(topic.partitions, "partition")
            print(f"{name} {verb}: {count}, replication factor {topic.replication_factor}")


async def _create(
    admin: Admin, wanted: list[NewTopic], if_not_exists: bool, dry_run: bool
) -> dict[str, CreatedTopic | None]:
    """What was created; None for topics that existed before."""
    checked = await admin.topics.create(wanted, validate_only=True)
    present = {
        name
        for name, result in checked.items()
        if isinstance(result, KafkaError)
        and result.code is ErrorCode.TOPIC_ALREADY_EXISTS
        and if_not_exists
    }
    raise_failures({name: result for name, result in checked.items() if name not in present})
    missing = [topic for topic in wanted if topic.name not in present]
    made: Mapping[str, CreatedTopic | KafkaError] = checked
    if missing and not dry_run:
        made = await admin.topics.create(missing)
        raise_failures({topic.name: made.get(topic.name) for topic in missing})
    found = {topic.name: made.get(topic.name) for topic in wanted}
    return {name: got if isinstance(got, CreatedTopic) else None for name, got in found.items()}


@app.command("list", epilog=examples("skylog topics list", "skylog topics list --internal --json"))
def list_(
    internal: Annotated[
        bool, typer.Option("--internal", help="Also show internal topics.")
    ] = False,
    bootstrap: Bootstrap = None,
    client_config: ClientConfig = None,
    json: Json = False,
) -> None:
    """List topics."""

    async def work(cluster: Cluster) -> list[TopicInfo]:
        return await Admin(cluster).topics.list_all()

    found = call(work, bootstrap, client_config)
    rows = [
        {
            "topic": topic.name,
            "partitions": len(topic.partitions),
            "replication_factor": _replication_factor(topic),
            "topic_id": str(topic.topic_id),
            "internal": topic.internal,
        }
        for topic in found
        if internal or not topic.internal
    ]
    if json:
        print_json(rows)
        return
    columns = {
        "topic": "Topic",
        "partitions": "Partitions",
        "replication_factor": "Replicas",
        "topic_id": "Id",
    }
    print_table(columns, rows)
    if not rows:
        say("there are no topics yet; `skylog topics create NAME` creates one")


def _replication_factor(topic: TopicInfo) -> int:
    return max((len(part.replicas) for part in topic.partitions.values()), default=0)


@app.command(epilog=examples("skylog topics describe orders", "skylog topics describe --json a b"))
def describe(
    topics: TopicNames,
    bootstrap: Bootstrap = None,
    client_config: ClientConfig = None,
    json: Json = False,
) -> None:
    """Show partitions with leader, replicas and offsets, and settings other than defaults."""

    async def work(cluster: Cluster) -> list[dict[str, Any]]:
        found = await _existing(cluster, topics)
        return [await _description(Admin(cluster), topic) for topic in found]

    described = call(work, bootstrap, client_config)
    if json:
        print_json(described)
        return
    for topic in described:
        count = counted(len(topic["partitions"]), "partition")
        print(f"{topic['topic']}: id {topic['topic_id']}, {count}")
        for name, value in topic["configs"].items():
            print(f"  {name}={value}")
        print_table(_PARTITION_COLUMNS, topic["partitions"])


_PARTITION_COLUMNS: Final = {
    "partition": "Partition",
    "leader": "Leader",
    "replicas": "Replicas",
    "in_sync": "In sync",
    "offline": "Offline",
    "first_offset": "First offset",
    "end_offset": "End offset",
    "bytes": "Bytes",
}


async def _existing(cluster: Cluster, names: Collection[str]) -> list[TopicInfo]:
    """The topics, or an error that names every missing one."""
    found = await Admin(cluster).topics.describe(list(dict.fromkeys(names)))
    raise_failures(found)
    return [topic for topic in found.values() if isinstance(topic, TopicInfo)]


async def _description(admin: Admin, topic: TopicInfo) -> dict[str, Any]:
    keys = [TopicPartition(topic.name, index) for index in topic.partitions]
    first = await admin.partitions.offsets(dict.fromkeys(keys, EARLIEST))
    end = await admin.partitions.offsets(dict.fromkeys(keys, LATEST))
    sizes = await _sizes(admin, keys)
    resource = ConfigResource(ConfigType.TOPIC, topic.name)
    entries = (await admin.configs.describe([resource]))[resource]
    configs = {}
    if not isinstance(entries, KafkaError):
        own = [entry for entry in entries if entry.source == ConfigSource.TOPIC]
        configs = {entry.name: entry.value for entry in own}
    return {
        "topic": topic.name,
        "topic_id": str(topic.topic_id),
        "internal": topic.internal,
        "configs": configs,
        "partitions": [
            {
                **_partition_row(part),
                "first_offset": _offset(first.get(TopicPartition(topic.name, part.index))),
                "end_offset": _offset(end.get(TopicPartition(topic.name, part.index))),
                "bytes": sizes.get(part.index),
            }
            for part in topic.partitions.values()
        ],
    }


def _partition_row(part: PartitionInfo) -> dict[str, Any]:
    return {
        "partition": part.index,
        "leader": part.leader if part.leader >= 0 else None,
        "leader_epoch": part.leader_epoch,
        "replicas": list(part.replicas),
        "in_sync": list(part.isr),
        "offline": list(part.offline),
    }


def _offset(found: OffsetAtTime | KafkaError | None) -> int | None:
    return found.offset if isinstance(found, OffsetAtTime) else None


async def _sizes(admin: Admin, keys: Collection[TopicPartition]) -> dict[int, int]:
    """The largest replica of each partition; empty if the principal may not ask for sizes."""
    sizes: dict[int, int] = {}
    for directories in (await admin.partitions.log_dirs(partitions=keys)).values():
        if isinstance(directories, KafkaError):
            continue
        for directory in directories:
            for key, replica in directory.replicas.items():
                sizes[key.partition] = max(sizes.get(key.partition, 0), replica.size)
    return sizes


@app.command(epilog=examples("skylog topics delete orders", "skylog topics delete a b --yes"))
def delete(
    topics: TopicNames,
    if_exists: Annotated[
        bool, typer.Option("--if-exists", help="Accept topics that do not exist.")
    ] = False,
    yes: Yes = False,
    bootstrap: Bootstrap = None,
    client_config: ClientConfig = None,
    json: Json = False,
) -> None:
    """Delete topics with all their records. If one of them does not exist, none is deleted."""
    names = list(dict.fromkeys(topics))
    confirm(f"Delete {', '.join(names)} with all records?", yes=yes)

    async def work(cluster: Cluster) -> list[str]:
        found = await Admin(cluster).topics.describe(names)
        absent = {
            name
            for name, result in found.items()
            if isinstance(result, KafkaError)
            and result.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            and if_exists
        }
        present = [name for name in names if name not in absent]
        raise_failures({name: found.get(name) for name in present})
        if present:
            raise_failures(await Admin(cluster).topics.delete(present))
        return present

    deleted = call(work, bootstrap, client_config)
    if json:
        print_json([{"topic": name, "deleted": name in deleted} for name in names])
        return
    for name in names:
        print(f"{name} deleted" if name in deleted else f"{name} does not exist")


@app.command(
    epilog=examples(
        "skylog topics alter orders --partitions 12",
        "skylog topics alter orders --config retention.ms=3600000 --unset segment.ms",
    )
)
def alter(
    topic: TopicName,
    partitions: Annotated[
        int | None, typer.Option("--partitions", "-p", help="Increase to this many partitions.")
    ] = None,
    config: Configs = None,
    unset: Annotated[
        list[str] | None,
        typer.Option("--unset", metavar="NAME", help="Reset a setting to its default; repeatable."),
    ] = None,
    dry_run: DryRun = False,
    bootstrap: Bootstrap = None,
    client_config: ClientConfig = None,
    json: Json = False,
) -> None:
    """Add partitions, change settings. Everything is validated before anything changes."""
    changes = [Change(name, text) for name, text in parse_pairs(config or (), "--config").items()]
    changes += [Change(name, None, Operation.DELETE) for name in unset or ()]
    if partitions is None and not changes:
        raise typer.BadParameter("nothing to change: give --partitions, --config or --unset")

    async def work(cluster: Cluster) -> None:
        await _existing(cluster, [topic])
        admin = Admin(cluster)
        await _alter(admin, topic, partitions, changes, validate_only=True)
        if not dry_run:
            await _alter(admin, topic, partitions, changes, validate_only=False)

    call(work, bootstrap, client_config)
    if json:
        print_json({"topic": topic, "altered": not dry_run})
    else:
        print(f"{topic} could be altered" if dry_run else f"{topic} altered")


async def _alter(
    admin: Admin,
    topic: str,
    partitions: int | None,
    changes: Collection[Change],
    *,
    validate_only: bool,
) -> None:
    if partitions is not None:
        counts = {topic: partitions}
        raise_failures(await admin.topics.create_partitions(counts, validate_only=validate_only))
    if changes:
        resource = ConfigResource(ConfigType.TOPIC, topic)
        results = await admin.configs.alter({resource: changes}, validate_only=validate_only)
        if not results:
            raise CommandError(f"no response about the settings of {topic}")
        raise_failures({key.name: error for key, error in results.items()})
