"""``skylog spark segments``."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Final

import typer

from skylog.cli.command_tree import examples
from skylog.cli.errors import CommandError, counted
from skylog.cli.options import Bootstrap, ClientConfig, Json
from skylog.cli.output import print_json, say
from skylog.cli.spark_session import Master, Storage, job_cluster, session

if TYPE_CHECKING:
    from skylog.spark.jobs.cluster import JobCluster

EXAMPLES: Final = examples(
    "skylog spark segments orders --to ./segments",
    "skylog spark segments orders --to s3://bucket/segments --master spark://host:7077",
    "skylog spark segments orders payments --commit --tail",
)


def segments(
    topics: Annotated[
        list[str], typer.Argument(metavar="TOPIC", help="A diskless topic; several with --commit.")
    ],
    to: Annotated[
        str | None, typer.Option("--to", metavar="URL", help="A directory or a bucket.")
    ] = None,
    commit: Annotated[
        bool,
        typer.Option(
            "--commit",
            help="Make the topics' own remote segments, for diskless.tiering.assembler=external.",
        ),
    ] = False,
    take_over: Annotated[
        bool,
        typer.Option(
            "--take-over",
            help="With --commit: end the leases of a job that is gone, or still runs.",
        ),
    ] = False,
    bootstrap: Bootstrap = None,
    client_config: ClientConfig = None,
    storage: Storage = None,
    master: Master = None,
    segment_bytes: Annotated[
        int, typer.Option(min=1 << 16, max=(1 << 31) - 1, help="Approximate size of a segment.")
    ] = 128 * 1024 * 1024,
    tail: Annotated[
        bool, typer.Option("--tail", help="Include the last batches, which do not fill a segment.")
    ] = False,
    json: Json = False,
) -> None:
    """Assemble diskless topics' batches into segments of Kafka's format, with indexes.

    With --to they are copies, in a folder for each partition; a second run adds what is new. With
    --commit they take the place of the write-ahead log, as if the brokers had made them: their
    leaders check them, and then let go of what they replace. What a run that was stopped leaves
    behind is cleaned up by the brokers.
    """
    if commit == (to is not None):
        raise CommandError("one of --to and --commit is needed")
    if take_over and not commit:
        raise CommandError("--take-over is only for --commit")
    cluster = job_cluster(bootstrap, client_config, storage)
    if to is None:
        _commit(cluster, topics, segment_bytes, master, tail=tail, take_over=take_over, json=json)
        return
    if len(topics) > 1:
        raise CommandError("--to takes one topic at a time")
    with session("segments", master) as spark:
        from skylog.spark.jobs import segments as job  # noqa: PLC0415 - loads Spark

        done = job.run(spark, job.SegmentsJob(cluster, topics[0], to, segment_bytes, tail))
    if json:
        print_json(
            {"segments": done.segments, "bytes": done.bytes, "next_offsets": done.next_offsets}
        )
        return
    say(f"{counted(done.segments, 'segment')} of {done.bytes:,} bytes in {to}")
    if not done.segments and not tail:
        say("the last batches do not fill a segment yet; --tail includes them")


def _commit(
    cluster: JobCluster,
    topics: list[str],
    segment_bytes: int,
    master: str | None,
    *,
    tail: bool,
    take_over: bool,
    json: bool,
) -> None:
    with session("segments", master) as spark:
        from skylog.spark.jobs import commit_segments as job  # noqa: PLC0415 - loads Spark

        done = job.run(
            spark,
            job.CommitJob(cluster, tuple(topics), segment_bytes, tail, take_over),
            (lambda _: None) if json else say,
        )
    if json:
        print_json(asdict(done))
        return
    say(
        f"{counted(done.segments, 'segment')} of {done.bytes:,} bytes committed;"
        f" {counted(done.gets, 'read')} of {counted(done.objects, 'WAL object')}"
    )
    if done.waiting_bytes:
        say(f"{done.waiting_bytes:,} bytes do not fill a segment yet; --tail includes them")
