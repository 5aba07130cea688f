"""Valid topic names."""

from __future__ import annotations

from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.topics import topic_name_fault


def check_topic_name(name: str) -> None:
    """INVALID_TOPIC_EXCEPTION if Kafka does not allow this topic name."""
    fault = topic_name_fault(name)
    if fault is not None:
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, fault)
