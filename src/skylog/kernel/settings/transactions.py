"""Settings of transactions and their topic."""

from __future__ import annotations

from dataclasses import dataclass

from skylog.kernel.settings.fields import setting


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionSettings:
    """Transactions."""

    timeout_ms_max: int = setting(
        "transaction.max.timeout.ms", "Longest transaction time-out a producer may ask for."
    )
    abort_check_interval_ms: int = setting(
        "transaction.abort.timed.out.transaction.cleanup.interval.ms",
        "Interval of checks for timed-out transactions.",
    )
    id_expiration_ms: int = setting(
        "transactional.id.expiration.ms",
        "A transactional id that is not used for this long is forgotten.",
    )
    expiry_check_interval_ms: int = setting(
        "transaction.remove.expired.transaction.cleanup.interval.ms",
        "Interval of checks for expired transactional ids.",
    )
    verification_enable: bool = setting(
        "transaction.partition.verification.enable",
        "Ask the coordinator whether a partition is in the transaction before writing to it.",
    )
    add_wait_ms_max: int = setting(
        "add.partitions.to.txn.retry.backoff.max.ms",
        "Longest wait of a write for the end of the producer's previous transaction.",
    )
    topic_partitions: int = setting(
        "transaction.state.log.num.partitions", "Number of partitions of __transaction_state."
    )
    topic_replication_factor: int = setting(
        "transaction.state.log.replication.factor",
        "Replicas of __transaction_state; 1 by default where one node is the whole cluster.",
    )
    topic_isr_min: int = setting(
        "transaction.state.log.min.isr",
        "In-sync replicas of __transaction_state that a write needs; 1 by default where one node "
        "is the whole cluster.",
    )
    topic_segment_bytes: int = setting(
        "transaction.state.log.segment.bytes", "Segment size of __transaction_state."
    )
