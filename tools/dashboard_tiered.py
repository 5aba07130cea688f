"""What the dashboard of tiered storage shows, row by row."""

from __future__ import annotations

from typing import Final

from dashboard_panels import Board, Panel, gauge, quantiles, rate, rates, totals

TOPICS: Final = "kafka_server_brokertopicmetrics"
OURS: Final = "skylog_tiered"
CONSOLIDATION: Final = "skylog_consolidation"
STAGES: Final = ("copy", "expire", "remote-read", "prune", "orphans")


def by_topic(unit: str, title: str, metric: str, text: str = "") -> Panel:
    query = ("{{topic}}", f"sum by (topic) ({TOPICS}_{metric}{{$of}})")
    return Panel(title, unit, (query,), text)


def lag(unit: str, title: str, metric: str, text: str = "") -> Panel:
    query = ("{{topic}}", f"sum by (topic) ({CONSOLIDATION}_lag_{metric}{{$of}})")
    return Panel(title, unit, (query,), text)


def oldest() -> Panel:
    """Of all partitions of a topic, each at its leader."""
    query = ("{{topic}}", f"max by (topic) ({CONSOLIDATION}_lag_seconds{{$of}})")
    text = "Grows up to segment.ms where segments are seldom full."
    return Panel("Age of the oldest record that is only in the WAL", "s", (query,), text)


def since_assembly() -> Panel:
    chosen = f'{CONSOLIDATION}_last_success_age_seconds{{$of, stage="assemble"}}'
    text = "Grows also while nothing is produced."
    return Panel("Since the last assembly", "s", (("{{instance}}", chosen),), text)


def segment_size() -> Panel:
    size, count = (
        f"sum by (topic) ({TOPICS}_{name}{{$of}})"
        for name in ("remotelogsizebytes", "remotelogmetadatacount")
    )
    text = "A segment costs three uploads and four records: below 4 MiB requests cost the most."
    queries = (("{{topic}}", f"{size} / {count}"),)
    return Panel("Mean size of a remote segment", "bytes", queries, text)


def cache_hits() -> Panel:
    hits, misses = rate(f"{OURS}_cache_hits_total"), rate(f"{OURS}_cache_misses_total")
    return Panel("Chunks from memory", "percentunit", (("hits", f"{hits} / ({hits} + {misses})"),))


def ages() -> Panel:
    chosen = f'{OURS}_last_success_age_seconds{{$of, stage=~"{"|".join(STAGES)}"}}'
    text = "Grows also while there is nothing to copy, to read or to delete."
    return Panel("Since the last success", "s", (("{{stage}} {{instance}}", chosen),), text)


def seconds(title: str, stage: str) -> Panel:
    return quantiles(title, f"{OURS}_stage_seconds", f', stage="{stage}"')


ROWS: Final = {
    "Copy": (
        rates("Bps", "Bytes copied", topic=f"{TOPICS}_remotecopybytes_total/topic"),
        by_topic("bytes", "Waiting to be copied", "remotecopylagbytes"),
        by_topic("short", "Segments waiting to be copied", "remotecopylagsegments"),
        seconds("Duration of a copy", "copy"),
        gauge(
            "ms",
            "Mean wait for the copy quota",
            "kafka_server_remotelogmanager_remote_copy_throttle_time_avg",
        ),
        ages(),
    ),
    "Consolidation of diskless topics": (
        oldest(),
        lag("short", "Records that are only in the WAL", "records"),
        lag("bytes", "Bytes that are only in the WAL", "bytes"),
        rates("Bps", "Bytes put together", bytes=f"{CONSOLIDATION}_assembled_bytes_total"),
        gauge("bytes", "Disk space of segments to be copied", f"{CONSOLIDATION}_disk_bytes"),
        since_assembly(),
        rates(
            "cps",
            "Segments put together",
            all=f"{CONSOLIDATION}_segments_total",
            cut_early_for_disk_space=f"{CONSOLIDATION}_segments_cut_early_total",
        ),
        seconds("Duration of a prune", "prune"),
        gauge(
            *("short", "Partitions whose WAL is kept, for a segment is not whole"),
            f"{OURS}_prunes_refused",
        ),
    ),
    "Remote data": (
        by_topic("bytes", "Remote bytes", "remotelogsizebytes"),
        by_topic("short", "Remote segments", "remotelogmetadatacount"),
        segment_size(),
    ),
    "Remote reads": (
        rates("Bps", "Bytes read", topic=f"{TOPICS}_remotefetchbytes_total/topic"),
        rates("reqps", "Reads", topic=f"{TOPICS}_remotefetchrequests_total/topic"),
        seconds("Duration of a read", "remote-read"),
        cache_hits(),
        gauge(
            "short",
            "Reads that wait for others",
            "kafka_log_remote_remotestoragethreadpool_remotelogreadertaskqueuesize",
        ),
        rates(
            "cps",
            "Not done in time",
            fetches="kafka_server_delayedremotefetchmetrics_expires_total",
            searches="kafka_server_delayedremotelistoffsetsmetrics_expires_total",
        ),
    ),
    "Deletion": (
        rates("cps", "Segments deleted", topic=f"{TOPICS}_remotedeleterequests_total/topic"),
        by_topic("bytes", "Waiting to be deleted", "remotedeletelagbytes"),
        rates("cps", "Orphans deleted", orphans=f"{OURS}_orphans_total"),
    ),
    "Errors": (
        rates(
            "cps",
            "Errors",
            copy=f"{TOPICS}_remotecopyerrors_total",
            read=f"{TOPICS}_remotefetcherrors_total",
            delete=f"{TOPICS}_remotedeleteerrors_total",
            follow=f"{TOPICS}_buildremotelogauxstateerrors_total",
        ),
        totals(
            "Data that is missing or wrong",
            "Each of these needs somebody to look: skylog tiered verify.",
            holes=f"{OURS}_holes_total",
            corrupt=f"{OURS}_corrupt_total",
            spoiled_on_disk=f"{CONSOLIDATION}_spoiled_total",
            disk_errors=f"{CONSOLIDATION}_disk_errors_total",
        ),
        rates(
            "cps",
            "Records that a newer leader's made void",
            void=f"{OURS}_void_records_total",
        ),
    ),
}
BOARD: Final = Board("tiered storage", f"{OURS}_holes_total", ROWS)
