from __future__ import annotations

from pathlib import Path

from skylog.log.config import LogConfig
from tests.unit.log.support import fill, open_log


def test_settings_that_are_known_late_apply_to_the_last_segment(tmp_path: Path) -> None:
    """A broker opens its logs before it has read the settings of their topics."""
    log = open_log(tmp_path)
    fill(log, [b"value"] * 20)
    assert len(log.segments) == 1
    log.configure(LogConfig(segment_index_bytes=48, index_interval_bytes=1))
    fill(log, [b"value"] * 20)
    assert len(log.segments) > 2
