from __future__ import annotations

from skylog.log.config import LONG_MAX, LogConfig


def test_a_topics_settings_are_taken_typed_or_as_text() -> None:
    config = LogConfig.from_mapping(
        {
            "segment.bytes": "1000",
            "retention.ms": -1,
            "cleanup.policy": "compact, delete",
            "flush.messages": None,
            "message.timestamp.type": "LogAppendTime",
        }
    )
    assert (config.segment_bytes, config.retention_ms, config.flush_messages) == (
        1000,
        -1,
        LONG_MAX,
    )
    assert config.deletes
    assert config.compacts
    assert LogConfig.from_mapping({}) == LogConfig()


def test_a_topic_may_keep_everything() -> None:
    config = LogConfig.from_mapping({"cleanup.policy": ""})
    assert not config.deletes
    assert not config.compacts
    assert LogConfig.from_mapping({"cleanup.policy": ["delete"]}).deletes


def test_compaction_has_its_own_deadline_to_roll() -> None:
    config = LogConfig(segment_ms=1000, max_compaction_lag_ms=10)
    assert config.segment_ms_max == 1000
    compacted = LogConfig(
        segment_ms=1000, max_compaction_lag_ms=10, cleanup_policy=frozenset({"compact"})
    )
    assert compacted.segment_ms_max == 10
