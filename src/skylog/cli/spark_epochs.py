"""``skylog spark epochs``."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from skylog.cli.command_tree import examples
from skylog.cli.errors import counted
from skylog.cli.options import Bootstrap, ClientConfig, Json, Yes
from skylog.cli.output import confirm, print_json, print_table, say
from skylog.cli.spark_session import Storage, job_cluster
from skylog.cli.times import format_time
from skylog.kernel.clock import SystemClock

if TYPE_CHECKING:
    from skylog.bulk.open_epochs import Found, OpenEpoch
    from skylog.bulk.staging import StagingArea
    from skylog.spark.jobs.cluster import JobCluster

EXAMPLES: Final = examples(
    "skylog spark epochs",
    "skylog spark epochs --finish stream-3f0c0a4e-5d7b-4a39-9a0b-52b9c3a1f0de/12",
)
_COLUMNS: Final = {
    "epoch": "EPOCH",
    "topics": "TOPICS",
    "objects": "OBJECTS",
    "committed": "COMMITTED",
    "bytes": "BYTES",
    "expires": "EXPIRES",
}


def _choice(help_: str) -> Any:
    return typer.Option(metavar="EPOCH", help=help_)


def epochs(
    finish: Annotated[
        str | None, _choice("Commit the rest of it, and mark it done: WRITER/NUMBER.")
    ] = None,
    skip: Annotated[
        str | None, _choice("Mark it done as it is; the uncommitted rest is never written.")
    ] = None,
    again: Annotated[
        str | None, _choice("Forget it, so that its query writes it again; committed rows stay.")
    ] = None,
    bootstrap: Bootstrap = None,
    client_config: ClientConfig = None,
    storage: Storage = None,
    yes: Yes = False,
    json: Json = False,
) -> None:
    """Show incomplete writes to diskless topics.

    A restarted query completes its epoch itself. This is for queries that are not restarted, or
    only after more than seven days. It shows the epochs of this user. COMMITTED needs DESCRIBE on
    the cluster, and does not count what retention has deleted.
    """
    wanted = {"--finish": finish, "--skip": skip, "--again": again}
    given = [(option, name) for option, name in wanted.items() if name is not None]
    if len(given) > 1:
        raise typer.BadParameter(
            f"{' and '.join(option for option, _ in given)}: give only one of them"
        )
    cluster = job_cluster(bootstrap, client_config, storage)
    if given:
        _end(cluster, *given[0], yes=yes)
        return
    found = cluster.run(_find(cluster))
    now_ms = SystemClock().now_ms()
    rows = [_row(one, now_ms) for one in found.epochs]
    bad = [{"manifest": key, "why": why} for key, why in found.unreadable]
    if json:
        print_json({"epochs": rows, "unreadable": bad})
        return
    if rows:
        print_table(_COLUMNS, [{**row, "topics": ", ".join(row["topics"])} for row in rows])
    else:
        say("no epoch is incomplete")
    for row in rows:
        say(f"{row['epoch']}: {row['advice']}")
    for one in bad:
        say(f"{one['manifest']}: {one['why']}")


def _row(one: OpenEpoch, now_ms: int) -> dict[str, Any]:
    return {
        "epoch": one.name,
        "topics": one.topics,
        "objects": one.objects,
        "committed": "?" if one.committed is None else one.committed,
        "bytes": one.bytes,
        "expires": format_time(one.manifest.expires_ms),
        "advice": one.advice(now_ms),
    }


async def _area(cluster: JobCluster) -> StagingArea:
    from skylog.bulk.writer import WriteContext, open_area  # noqa: PLC0415 - loads Arrow

    context = WriteContext(cluster.properties, cluster.storage)
    return await open_area(await cluster.connections(), context)


async def _find(cluster: JobCluster) -> Found:
    from skylog.bulk.open_epochs import open_epochs  # noqa: PLC0415 - loads Arrow

    return await open_epochs(await cluster.cluster(), await _area(cluster))


def _end(cluster: JobCluster, option: str, name: str, *, yes: bool) -> None:
    from skylog.bulk import open_epochs as ways  # noqa: PLC0415 - loads Arrow

    one = ways.chosen(cluster.run(_find(cluster)).epochs, name)
    end, question, done = {
        "--finish": (ways.finish, "", "is committed and done"),
        "--skip": (ways.skip, "and the uncommitted rest is never written", "is done as it is"),
        "--again": (ways.begin_again, "and committed rows may be written twice", "is forgotten"),
    }[option]
    if question:
        known = "?" if one.committed is None else one.committed
        told = f"{known} of {counted(one.objects, 'object')} committed"
        confirm(f"{option[2:]} {name} ({told}), {question}? Its query must not run.", yes=yes)
    cluster.run(_ended(cluster, one, end))
    say(f"{name} {done}")


async def _ended(
    cluster: JobCluster,
    one: OpenEpoch,
    end: Callable[[StagingArea, OpenEpoch], Awaitable[None]],
) -> None:
    await end(await _area(cluster), one)
