"""docs/reference/metrics.md: every metric of a node, as its collectors describe it."""

from __future__ import annotations

from typing import Final

from node_metrics import Family, families

INTRODUCTION = """# Metrics

The metrics that a node serves at `/metrics`, in Prometheus' text format. The changelog notes every
change of a name. Counters start at 0 when the node starts; histograms have `_bucket`, `_sum` and
`_count`. [monitoring.md](../monitoring.md) says what to watch.
"""
HEAD: Final = ("", "| Metric | Type | Labels | Description |", "|---|---|---|---|")
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
    "TieredCollector": "Tiered storage (brokers with remote.log.storage.system.enable)",
    "ConsolidationCollector": "Consolidation of diskless topics (brokers, likewise)",
    "StoreCollector": "Object store (brokers)",
    "RoutingCollector": "Routing of clients (brokers)",
}


def metrics_page(generated: str) -> str:
    found = families()
    unplaced = found.keys() ^ TITLES.keys()
    if unplaced:
        raise SystemExit(f"{__file__} has no section for the metrics of {sorted(unplaced)}")
    lines = [generated, "", INTRODUCTION]
    for collector, title in TITLES.items():
        lines += [
            f"## {title}",
            "",
            "| Metric | Type | Labels | Description |",
            "|---|---|---|---|",
        ]
        lines += [row(family) for family in found[collector]]
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def row(family: Family) -> str:
    name = family.name if family.type == "histogram" else family.samples[0]
    labels = ", ".join(f"`{label}`" for label in family.labels)
    return f"| `{name}` | {family.type} | {labels} | {family.help} |"
