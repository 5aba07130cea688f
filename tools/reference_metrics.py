"""docs/reference/metrics.md: every metric of a node, as its collectors describe it."""

from __future__ import annotations

from typing import Final

from node_metrics import Family, families

INTRODUCTION = """# Metrics

What `/metrics` of a node shows, in the text format of Prometheus. Names do not change without a
note in the changelog. A counter starts at 0 when the node starts; a histogram has `_bucket`,
`_sum` and `_count`. [monitoring.md](../monitoring.md) says what to watch.
"""
HEAD: Final = ("", "| Metric | Type | Labels | What it says |", "|---|---|---|---|")
# Sections, by collector. A collector that is not listed here is an error.
TITLES: Final = {
    "RequestsCollector": "Requests and connections (every node)",
    "LoopLag": "Event loop (every node)",
    "ProcessCollector": "Process (every node, on Linux)",
    "NativeCollector": "Native code (every node)",
    "QuorumCollector": "Metadata quorum (every node)",
    "ControllerCollector": "Cluster (the active controller)",
    "BrokerCollector": "Topics and partitions (brokers)",
    "ReplicaCollector": "Replicas, classic and diskless (brokers)",
    "ReplicationCollector": "Replication of classic topics (brokers)",
    "CleanerCollector": "Compaction (brokers)",
    "DisklessCollector": "Diskless topics (brokers)",
    "StoreCollector": "Object store (brokers)",
    "RoutingCollector": "Routing of clients (brokers)",
}


def metrics_page(generated: str) -> str:
    found = families()
    unplaced = found.keys() ^ TITLES.keys()
    if unplaced:
        raise SystemExit(f"{__file__} does not say where to put metrics of {sorted(unplaced)}")
    lines = [generated, "", INTRODUCTION]
    for collector, title in TITLES.items():
        lines += [
            f"## {title}",
            "",
            "| Metric | Type | Labels | What it says |",
            "|---|---|---|---|",
        ]
        lines += [row(family) for family in found[collector]]
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def row(family: Family) -> str:
    name = family.name if family.type == "histogram" else family.samples[0]
    labels = ", ".join(f"`{label}`" for label in family.labels)
    return f"| `{name}` | {family.type} | {labels} | {family.help} |"
