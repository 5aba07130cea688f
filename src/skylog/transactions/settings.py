"""Operator settings of transactions, under Kafka's names."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TransactionSettings:
    """Kafka's defaults; each field's comment is its key in ``server.properties``."""

    timeout_ms_max: int = 900_000  # transaction.max.timeout.ms
    id_expiration_ms: int = 604_800_000  # transactional.id.expiration.ms
    topic_partitions: int = 50  # transaction.state.log.num.partitions
    add_wait_ms_max: int = 100  # add.partitions.to.txn.retry.backoff.max.ms
