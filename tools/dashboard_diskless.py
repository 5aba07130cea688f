"""What the dashboard of diskless topics shows, row by row."""

from __future__ import annotations

from typing import Final

from dashboard_panels import Board, Panel, gauge, largest, quantiles, rate, rates, totals

WRITER: Final = "skylog_diskless_writer"
READER: Final = "skylog_diskless_reader"
LOCAL: Final = "skylog_diskless_local"
COORDINATOR: Final = "skylog_diskless_coordinator"
PASSES: Final = ("retention", "cleaner", "topics", "orphans", "backup")


def seconds(title: str, stage: str) -> Panel:
    """Quantiles of a stage's durations."""
    return quantiles(title, "skylog_diskless_stage_seconds", f', stage="{stage}"')


def ages(title: str, *stages: str) -> Panel:
    chosen = f'skylog_diskless_last_success_age_seconds{{$of, stage=~"{"|".join(stages)}"}}'
    text = "An age of more than a few intervals is the first sign of trouble."
    return Panel(title, "s", (("{{stage}} {{instance}}", chosen),), text)


def mean_pass() -> Panel:
    chosen = f', stage=~"{"|".join(PASSES)}"'
    total, count = (
        rate(f"skylog_diskless_stage_seconds_{part}", "stage", chosen) for part in ("sum", "count")
    )
    return Panel("Mean duration of passes", "s", (("{{stage}}", f"{total} / {count}"),))


def cache_hits() -> Panel:
    hits, misses = rate(f"{READER}_cache_hits_total"), rate(f"{READER}_cache_misses_total")
    return Panel("Reads from memory", "percentunit", (("hits", f"{hits} / ({hits} + {misses})"),))


def file_size() -> Panel:
    mean = f"{rate(f'{WRITER}_bytes_total')} / {rate(f'{WRITER}_files_total')}"
    return Panel("Bytes per file", "bytes", (("mean", mean),))


def cost() -> Panel:
    month = f"{rate('skylog_objects_cost_dollars_total')} * 2592000"
    text = "At list prices of S3 Standard, without storage and traffic."
    return Panel("Requests per month at this rate", "currencyUSD", (("estimate", month),), text)


def log_records() -> Panel:
    held = f"{COORDINATOR}_high_watermark{{$of}} - {COORDINATOR}_log_start_offset{{$of}}"
    query = ("{{coordinator}}", f"max by (coordinator) ({held})")
    return Panel("Records in the log", "short", (query,))


ROWS: Final = {
    "Produce": (
        rates("Bps", "Bytes in", topic="skylog_topic_bytes_in_total/topic"),
        rates("cps", "Records in", topic="skylog_topic_messages_in_total/topic"),
        seconds("Files, from their first request to their closing", "rotate"),
    ),
    "Files and PUTs": (
        seconds("Uploads", "upload"),
        rates("reqps", "Requests to the store", store="skylog_objects_requests_total/operation"),
        cost(),
        file_size(),
        rates(
            "cps",
            "Files and batches committed",
            files=f"{WRITER}_files_total",
            batches=f"{WRITER}_batches_total",
        ),
        rates("Bps", "Bytes to and from the store", store="skylog_objects_bytes_total/operation"),
    ),
    "Commit": (
        seconds("Commits", "commit"),
        rates("cps", "Commits per second", commits=f"{WRITER}_commits_total"),
        ages("Since the last success", "rotate", "upload", "commit"),
    ),
    "Fetch and cache": (
        seconds("Fetches", "fetch"),
        seconds("Finding batches", "find"),
        ages("Since the last success", "find", "fetch", "cache"),
        cache_hits(),
        rates(
            "reqps",
            "Reads from the store",
            reads=f"{READER}_gets_total",
            asked_for_twice=f"{READER}_hedged_total",
        ),
        rates("Bps", "Bytes served from objects", bytes=f"{READER}_bytes_total"),
        gauge("bytes", "Memory of the cache", f"{READER}_cache_bytes"),
    ),
    "Local segments": (
        rates(
            "Bps",
            "Bytes copied and served",
            copied=f"{LOCAL}_bytes_total",
            served=f"{LOCAL}_bytes_read_total",
        ),
        gauge("short", "Records that are not copied yet", f"{LOCAL}_records_behind"),
        ages("Since the last copy", "local"),
    ),
    "Coordinators": (
        gauge("short", "Coordinators that serve", f"{COORDINATOR}_active"),
        largest("short", "Lag of the database", f"{COORDINATOR}_lag", "coordinator"),
        log_records(),
        largest("bytes", "Size of the log", f"{COORDINATOR}_log_bytes", "coordinator"),
        seconds("Snapshots", "snapshot"),
        ages("Since the last snapshot", "snapshot"),
    ),
    "Cleaner, orphans, backup": (
        ages("Since the last success", *PASSES),
        mean_pass(),
        rates(
            "cps",
            "Files deleted",
            cleaner="skylog_diskless_cleaner_files_deleted_total",
            orphans="skylog_diskless_orphans_deleted_total",
        ),
        rates("Bps", "Retention", bytes="skylog_diskless_retention_bytes_deleted_total"),
        gauge(
            "percentunit", "Progress of the scan for orphans", "skylog_diskless_orphans_progress"
        ),
        rates("Bps", "Backups", bytes="skylog_diskless_backup_bytes_total"),
    ),
    "Errors": (
        rates("cps", "Stages", failed="skylog_diskless_stage_errors_total/stage"),
        rates(
            "reqps",
            "Store",
            failed="skylog_objects_failures_total/operation",
            throttled="skylog_objects_throttled_total/operation",
        ),
        totals(
            "Records not written or not served",
            "If this is not 0, see the node's log.",
            failed_files=f"{WRITER}_failed_files_total",
            corrupt_batches=f"{READER}_corrupt_total",
            missing_objects=f"{READER}_missing_total",
            errors_of_local_disks=f"{LOCAL}_disk_errors_total",
            deletions_refused="skylog_diskless_cleaner_files_refused_total",
        ),
    ),
}
BOARD: Final = Board("diskless topics", "skylog_diskless_stage_runs_total", ROWS)
