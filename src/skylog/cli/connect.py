"""Connects a command's options to a cluster."""

from __future__ import annotations

import asyncio
import re
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final, TypeVar

import uvloop

from skylog.cli.errors import CommandError
from skylog.cli.options import BOOTSTRAP_DEFAULT
from skylog.client.admin.configs import ConfigAdmin, ConfigResource, ConfigType
from skylog.client.cluster import Cluster
from skylog.client.metadata import TopicInfo, TopicPartition
from skylog.client.offsets import list_offsets
from skylog.client.settings import ClientSettings
from skylog.kernel.errors import ConfigError, ErrorCode, KafkaError
from skylog.kernel.limits import SETTINGS_FILE_BYTES_MAX
from skylog.kernel.properties import parse_properties

T = TypeVar("T")

# The prefix that the operating system puts before its error messages.
_NUMBER: Final = re.compile(r"\[Errno -?\d+\] ")
_BOOTSTRAP: Final = "bootstrap.servers"
DISKLESS: Final = "diskless.enable"
# Short, because a user is waiting at a terminal.
CONNECT_TIMEOUT_MS: Final = 5_000
API_TIMEOUT_MS: Final = 30_000


def client_settings(bootstrap: str | None, client_config: Path | None) -> ClientSettings:
    """The client's settings from the options; ConfigError names what cannot be used."""
    properties = read_properties(client_config) if client_config is not None else {}
    if bootstrap is not None or _BOOTSTRAP not in properties:
        properties[_BOOTSTRAP] = bootstrap or BOOTSTRAP_DEFAULT
    if "client.id" not in properties:
        properties["client.id"] = "skylog-cli"
    try:
        settings = ClientSettings.of(properties)
    except ConfigError as error:
        where = f"{client_config}: " if client_config is not None else ""
        raise ConfigError(f"{where}{error}") from error
    return ClientSettings(
        settings.bootstrap,
        settings.client_id,
        settings.tls,
        settings.sasl,
        connect_timeout_ms=CONNECT_TIMEOUT_MS,
        api_timeout_ms=API_TIMEOUT_MS,
    )


def read_properties(path: Path) -> dict[str, str]:
    """The contents of a properties file, which must be of reasonable size."""
    try:
        with path.open("rb") as file:
            data = file.read(SETTINGS_FILE_BYTES_MAX + 1)
        if len(data) > SETTINGS_FILE_BYTES_MAX:
            raise ConfigError(f"{path} is too large for a properties file")
        return parse_properties(data.decode())
    except OSError as error:
        raise ConfigError(f"--client-config {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"--client-config {path} is not text") from error


def call(
    work: Callable[[Cluster], Awaitable[T]], bootstrap: str | None, client_config: Path | None
) -> T:
    """Run work that needs a cluster; Ctrl-C and SIGTERM end it cleanly."""
    settings = client_settings(bootstrap, client_config)
    return uvloop.run(_call(work, settings))


async def _call(work: Callable[[Cluster], Awaitable[T]], settings: ClientSettings) -> T:
    received: list[signal.Signals] = []
    _end_on_signals(received)
    cluster = Cluster(settings)
    try:
        await _first_contact(cluster)
        return await work(cluster)
    except asyncio.CancelledError:
        if signal.SIGINT in received:
            raise KeyboardInterrupt from None
        raise
    finally:
        await cluster.close()


def _end_on_signals(received: list[signal.Signals]) -> None:
    """End the work cleanly on the first signal, and at once on the second.

    The handlers belong to the event loop: while it waits for the network, no other code would run.
    """
    task = asyncio.current_task()

    def stop(number: signal.Signals) -> None:
        if received:
            raise KeyboardInterrupt
        received.append(number)
        if task is not None:
            task.cancel()

    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop, number)


async def _first_contact(cluster: Cluster) -> None:
    """Check the connection without retries: if no broker listens now, none will in a second."""
    try:
        await cluster.any_node()
    except KafkaError as error:
        if error.code is not ErrorCode.NETWORK_EXCEPTION:
            raise
        addresses = ", ".join(map(str, cluster.settings.bootstrap))
        why = _NUMBER.sub("", error.message or str(error))
        raise CommandError(
            f"cannot reach a broker: {why}. Is one running at {addresses}? "
            "Start one with `skylog server`, or give its address with --bootstrap"
        ) from error
    await cluster.refresh(())


async def require_topic(cluster: Cluster, name: str, *, allow_create: bool = False) -> TopicInfo:
    """A topic that exists, or (if allowed, and the broker agrees) is being created."""
    await cluster.refresh((name,), allow_create=allow_create)
    if name not in cluster.metadata.topics and allow_create:
        error = cluster.metadata.errors.get(name)
        if error is None or error.retriable:
            return await _created_topic(cluster, name)
    found = cluster.metadata.topics.get(name)
    if found is None:
        raise _unknown(cluster, name)
    return found


async def _created_topic(cluster: Cluster, name: str) -> TopicInfo:
    """A topic that is being created is unknown for a moment."""
    try:
        return await cluster.retry(lambda: cluster.topic(name), timeout_ms=CONNECT_TIMEOUT_MS)
    except KafkaError as error:
        if error.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise _unknown(cluster, name) from error
        raise


def _unknown(cluster: Cluster, name: str) -> KafkaError | CommandError:
    error = cluster.metadata.errors.get(name)
    if error is None or error.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        return CommandError(
            f"topic {name} does not exist; create it with `skylog topics create {name}`"
        )
    return error


async def topic_configs(cluster: Cluster, topic: str, *names: str) -> dict[str, str | None]:
    """The effective values of some settings of a topic; None for those that a broker has not."""
    resource = ConfigResource(ConfigType.TOPIC, topic)
    (found,) = (await ConfigAdmin(cluster).describe([resource], names)).values()
    if isinstance(found, KafkaError):
        raise found
    return {**dict.fromkeys(names), **{entry.name: entry.value for entry in found}}


async def offsets_at(
    cluster: Cluster, keys: list[TopicPartition], time: int, committed_only: bool = False
) -> dict[TopicPartition, int]:
    """Offsets by time, or EARLIEST or LATEST, for partitions that must all answer."""
    found = {}
    times = dict.fromkeys(keys, time)
    for key, outcome in (await list_offsets(cluster, times, int(committed_only))).items():
        if isinstance(outcome, KafkaError):
            raise outcome
        found[key] = outcome.offset
    return found
