"""What the dashboards of brokers, replication and controllers show, row by row."""

from __future__ import annotations

from typing import Final

from dashboard_panels import Board, Panel, gauge, largest, quantiles, rate, rates, totals

MANAGER: Final = "kafka_server_replicamanager"
FETCHERS: Final = "kafka_server_replicafetchermanager"
QUORUM: Final = "skylog_quorum"
CONTROLLER: Final = "kafka_controller"
TO_CONTROLLERS: Final = "BROKER_HEARTBEAT|BROKER_REGISTRATION|ALTER_PARTITION|CREATE_TOPICS"
ZERO: Final = "0 when all is well."


def of_api(name: str) -> str:
    return f', api="{name}"'


def slowest(title: str, more: str = "") -> Panel:
    buckets = rate("skylog_request_seconds_bucket", "le, api", more)
    return Panel(title, "s", (("{{api}}", f"histogram_quantile(0.99, {buckets})"),))


def errors(more: str = "") -> Panel:
    failed = rate("skylog_request_errors_total", "api, error", more)
    text = "Without errors of single topics or partitions in a response."
    return Panel("Requests that failed", "reqps", (("{{api}} {{error}}", failed),), text)


def in_flight() -> Panel:
    return Panel(
        "Memory of requests and answers",
        "bytes",
        (
            ("{{kind}} {{instance}}", "skylog_in_flight_bytes{$of}"),
            ("limit of {{kind}}", "max by (kind) (skylog_in_flight_limit_bytes{$of})"),
        ),
        "At the limit the oldest connections are closed.",
    )


def event_loop() -> Panel:
    text = "A node does almost all its work on one event loop: when this grows, everything is late."
    return quantiles("Lag of the event loop", "skylog_event_loop_lag_seconds", text=text)


def native() -> Panel:
    query = ("{{library}}", "min by (library) (skylog_native{$of})")
    return Panel("Libraries in C", "short", (query,), "0: the slow Python version is in use.")


BROKERS: Final = {
    "Requests": (
        rates("reqps", "Requests", api="skylog_requests_total/api"),
        errors(),
        slowest("Slowest requests (p99), without fetches", ', api!="FETCH"'),
        quantiles("Produce", "skylog_request_seconds", of_api("PRODUCE")),
        quantiles(
            "Fetch", "skylog_request_seconds", of_api("FETCH"), "Includes the wait for new records."
        ),
        rates("cps", "Batches refused", topic="skylog_topic_rejected_batches_total/topic"),
    ),
    "Traffic": (
        rates("Bps", "Bytes in", topic="skylog_topic_bytes_in_total/topic"),
        rates("Bps", "Bytes out", topic="skylog_topic_bytes_out_total/topic"),
        rates("cps", "Records in", topic="skylog_topic_messages_in_total/topic"),
    ),
    "Connections and memory": (
        Panel("Connections", "short", (("{{listener}} {{instance}}", "skylog_connections{$of}"),)),
        in_flight(),
        gauge("short", "Fetch sessions", "skylog_fetch_sessions"),
    ),
    "Process": (
        event_loop(),
        rates("percentunit", "Processor", node="process_cpu_seconds_total/instance"),
        gauge("bytes", "Memory", "process_resident_memory_bytes"),
        gauge("short", "Open files", "process_open_fds"),
        gauge("short", "Partitions", "skylog_partitions"),
        native(),
    ),
    "Compaction and transactions": (
        rates("Bps", "Bytes read and written", cleaner="skylog_log_cleaner_io_bytes_total"),
        gauge("percentunit", "Largest dirty ratio", "skylog_log_cleaner_dirty_ratio_max"),
        totals(
            "Trouble",
            ZERO,
            partitions_given_up="skylog_log_cleaner_uncleanable_partitions",
            transactions_unfinished="skylog_transactions_unfinished",
        ),
    ),
}

REPLICATION: Final = {
    "Partitions": (
        totals(
            "Partitions in danger",
            ZERO,
            offline=f"{CONTROLLER}_kafkacontroller_offlinepartitionscount",
            under_min_isr=f"{MANAGER}_underminisrpartitioncount",
            under_replicated=f"{MANAGER}_underreplicatedpartitions",
            at_min_isr=f"{MANAGER}_atminisrpartitioncount",
        ),
        gauge("short", "Under-replicated, by leader", f"{MANAGER}_underreplicatedpartitions"),
        gauge("short", "Leaders", f"{MANAGER}_leadercount"),
    ),
    "In-sync replicas": (
        rates(
            "cps",
            "Changes of ISRs",
            shrinks=f"{MANAGER}_isrshrinks_total",
            expands=f"{MANAGER}_isrexpands_total",
            refused=f"{MANAGER}_failedisrupdates_total",
        ),
        gauge("short", "Partitions being reassigned", f"{MANAGER}_reassigningpartitions"),
        gauge(
            "short",
            "Partitions with late transactions",
            f"{MANAGER}_partitionswithlatetransactionscount",
            ZERO,
        ),
    ),
    "Followers": (
        gauge("short", "Largest lag, in records", f"{FETCHERS}_maxlag"),
        gauge("short", "Partitions followed", f"{FETCHERS}_partitioncount"),
        gauge("short", "Partitions given up", f"{FETCHERS}_failedpartitionscount", ZERO),
        rates("Bps", "Bytes fetched", topic="skylog_topic_replication_bytes_in_total/topic"),
        rates("Bps", "Bytes sent", topic="skylog_topic_replication_bytes_out_total/topic"),
    ),
}


def lag_of_metadata() -> Panel:
    end = f"scalar(max({QUORUM}_high_watermark{{$of}}))"
    query = ("{{instance}}", f"{end} - {QUORUM}_high_watermark{{$of}}")
    text = "Committed records that a node does not know of yet."
    return Panel("Lag of metadata", "short", (query,), text)


def uncommitted() -> Panel:
    behind = f"{QUORUM}_end_offset{{$of}} - {QUORUM}_high_watermark{{$of}}"
    text = "Records in a node's metadata log beyond what it knows to be committed."
    return Panel("Uncommitted metadata", "short", (("{{instance}}", behind),), text)


def written() -> Panel:
    rising = f"max (deriv({QUORUM}_high_watermark{{$of}}[$__rate_interval]))"
    return Panel("Metadata records", "cps", (("committed", rising),))


def elections() -> Panel:
    raised = f"max (changes({QUORUM}_epoch{{$of}}[$__rate_interval]))"
    return Panel("Elections", "short", (("elections", raised),), "How often the epoch changed.")


CONTROLLERS: Final = {
    "Quorum": (
        Panel(
            "Active controllers",
            "short",
            (("active", f"sum ({QUORUM}_is_leader{{$of}})"),),
            "1 when all is well.",
        ),
        gauge("none", "Active controller, as each node knows it", f"{QUORUM}_leader_id"),
        elections(),
        gauge("none", "Leader epoch", f"{QUORUM}_epoch"),
        gauge("short", "Voters", f"{QUORUM}_voters"),
    ),
    "Metadata log": (written(), lag_of_metadata(), uncommitted()),
    "Brokers and partitions": (
        largest("short", "Brokers", "skylog_brokers", "state"),
        totals(
            "Partitions and replicas that are offline",
            ZERO,
            partitions_without_a_leader=f"{CONTROLLER}_kafkacontroller_offlinepartitionscount",
            diskless_replicas=f"{CONTROLLER}_diskless_offline_replicas_total",
        ),
        rates(
            "cps",
            "Diskless replicas given to other brokers",
            reassigned=f"{CONTROLLER}_diskless_replicas_reassigned_total",
        ),
        totals(
            "Placement of diskless topics",
            "Topics with partitions of a single replica; partitions with several in one rack.",
            topics_with_one_replica=f"{CONTROLLER}_diskless_rf1_topics_total",
            not_rack_aware=f"{CONTROLLER}_diskless_non_rack_aware_partitions_total",
        ),
    ),
    "Requests": (
        rates("reqps", "Requests", api="skylog_requests_total/api"),
        slowest("Of brokers to controllers (p99)", f', api=~"{TO_CONTROLLERS}"'),
        errors(),
        event_loop(),
        rates("percentunit", "Processor", node="process_cpu_seconds_total/instance"),
        gauge("bytes", "Memory", "process_resident_memory_bytes"),
    ),
}

BOARDS: Final = {
    "brokers": Board("brokers", "skylog_partitions", BROKERS),
    "replication": Board("replication", f"{QUORUM}_epoch", REPLICATION),
    "controllers": Board("controllers", f"{QUORUM}_epoch", CONTROLLERS),
}
