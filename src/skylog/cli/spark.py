"""``skylog spark``: the jobs of the bulk pipeline.

Spark is started only here, and only when a job runs: ``--help`` does not need it. The same commands
run under spark-submit, given this file (``skylog spark submit-file``).
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from skylog.cli import spark_copy, spark_epochs, spark_segments, spark_table
from skylog.cli.command_tree import examples, new_app
from skylog.cli.options import Bootstrap, ClientConfig, Json
from skylog.cli.output import print_json, print_table, say
from skylog.cli.spark_session import Master, Storage, job_cluster, session
from skylog.cli.times import format_time
from skylog.kernel.clock import SystemClock

app = new_app(group=True)


@app.command(
    "submit-file",
    epilog=examples('spark-submit --master yarn "$(skylog spark submit-file)" audit --json'),
)
def submit_file() -> None:
    """Print the file to pass to spark-submit: it takes the same jobs and options."""
    sys.stdout.write(f"{Path(__file__).resolve()}\n")


app.command(epilog=spark_segments.EXAMPLES)(spark_segments.segments)


@app.command(
    epilog=examples(
        "skylog spark audit --report ./audit",
        "skylog spark audit orders payments --json",
    )
)
def audit(
    topics: Annotated[
        list[str] | None,
        typer.Argument(metavar="TOPIC", help="Diskless topics (default: all)."),
    ] = None,
    report: Annotated[
        str | None,
        typer.Option(metavar="URL", help="A directory or bucket for audit.html and audit.json."),
    ] = None,
    bootstrap: Bootstrap = None,
    client_config: ClientConfig = None,
    storage: Storage = None,
    master: Master = None,
    json: Json = False,
) -> None:
    """Check that every committed batch is intact in the bucket, and that nothing else is there.

    Reads everything once. The exit code is 1 if something is damaged or missing; objects that only
    waste space are reported, but do not count as damage.
    """
    cluster = job_cluster(bootstrap, client_config, storage)
    with session("audit", master) as spark:
        from skylog.spark.jobs import audit as job  # noqa: PLC0415 - loads Spark
        from skylog.spark.jobs import audit_report as shown  # noqa: PLC0415
        from skylog.spark.jobs.folder import Folder  # noqa: PLC0415

        folder = Folder.of(report) if report is not None else None
        found = job.run(spark, job.AuditJob(cluster, tuple(topics or ())))
        document = shown.document(found, format_time(SystemClock().now_ms()))
        if folder is not None:
            folder.write("audit.html", [shown.html(found, document["at"]).encode()])
            folder.write_json("audit.json", document)
    if json:
        print_json(document)
    else:
        print_table(
            {"topic": "TOPIC", "partitions": "PARTITIONS", "batches": "BATCHES",
             "tiered_segments": "TIERED SEGMENTS", "records": "RECORDS", "bytes": "BYTES"},
            document["topics"],
        )  # fmt: skip
        for step in document["plan"]:
            say(f"{step['for']}: {step['count']}. {step['do']}")
        say("sound" if document["sound"] else "damaged")
    if report is not None:
        say(f"report in {report}/audit.html")
    if not document["sound"]:
        raise typer.Exit(1)


@app.command(
    epilog=examples(
        "skylog spark report --to ./report",
        "skylog spark report orders --hours 24 --metrics http://broker1:9644/metrics --json",
    )
)
def report(
    topics: Annotated[
        list[str] | None,
        typer.Argument(metavar="TOPIC", help="Diskless topics (default: all)."),
    ] = None,
    to: Annotated[
        str | None,
        typer.Option(
            "--to", metavar="URL", help="A directory or bucket for report.html and report.json."
        ),
    ] = None,
    hours: Annotated[
        int, typer.Option(min=0, help="Hours before the newest record; 0: all.")
    ] = 168,
    metrics: Annotated[
        list[str] | None,
        typer.Option(metavar="URL", help="A broker's metrics, to include its request counts."),
    ] = None,
    put_price: Annotated[float, typer.Option(min=0, help="Dollars for 1,000 uploads.")] = 0.005,
    get_price: Annotated[float, typer.Option(min=0, help="Dollars for 1,000 reads.")] = 0.0004,
    storage_price: Annotated[float, typer.Option(min=0, help="Dollars per GB and month.")] = 0.023,
    bootstrap: Bootstrap = None,
    client_config: ClientConfig = None,
    storage: Storage = None,
    master: Master = None,
    json: Json = False,
) -> None:
    """Show throughput, sizes, objects, uploads and cost, by topic and hour.

    Asks brokers for the positions of batches and reads none of them. Prices are list prices of S3
    Standard.
    """
    cluster = job_cluster(bootstrap, client_config, storage)
    with session("report", master) as spark:
        from skylog.spark.jobs import report as job  # noqa: PLC0415 - loads Spark
        from skylog.spark.jobs import report_page as shown  # noqa: PLC0415
        from skylog.spark.jobs.folder import Folder  # noqa: PLC0415
        from skylog.spark.jobs.metrics import counted_requests  # noqa: PLC0415

        folder = Folder.of(to) if to is not None else None
        requests = counted_requests(metrics or ())
        found = job.run(spark, job.ReportJob(cluster, tuple(topics or ()), hours))
        at = format_time(SystemClock().now_ms())
        prices = shown.Prices(put_price / 1000, get_price / 1000, storage_price)
        document = shown.document(found, at, prices, requests)
        if folder is not None:
            folder.write("report.html", [shown.html(found, at, prices, requests).encode()])
            folder.write_json("report.json", document)
    if json:
        print_json(document)
    else:
        print_table(
            {"topic": "TOPIC", "records": "RECORDS", "batches": "BATCHES", "bytes": "BYTES",
             "tiered_bytes": "TIERED BYTES",
             "uploads": "UPLOADS", "upload_dollars": "$ UPLOADS",
             "storage_dollars_per_month": "$ STORAGE/MONTH"},
            document["topics"],
        )  # fmt: skip
    if to is not None:
        say(f"report in {to}/report.html")


app.command(epilog=spark_table.EXAMPLES)(spark_table.table)
app.command(epilog=spark_copy.REPLAY_EXAMPLES)(spark_copy.replay)
app.command(epilog=spark_copy.LOAD_EXAMPLES)(spark_copy.load)
app.command(epilog=spark_epochs.EXAMPLES)(spark_epochs.epochs)


if __name__ == "__main__":
    from skylog.cli.main import main

    sys.argv[0:1] = ["skylog", "spark"]
    main()
