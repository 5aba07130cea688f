"""What a topic may be called."""

from __future__ import annotations

from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.topics import topic_name_fault


def check_topic_name(name: str) -> None:
    """INVALID_TOPIC_EXCEPTION where Kafka allows no topic of this name."""
    fault = topic_name_fault(name)
    if fault is not None:
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, fault)
