"""The committed facts about Kafka's settings are those of the real Kafka."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.interop
def test_facts_are_kafkas() -> None:
    cache = Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")).expanduser()
    jars = os.environ.get("SKYLOG_KAFKA_JARS", str(cache / "skylog" / "kafka-4.3.1" / "lib"))
    command = [sys.executable, str(ROOT / "tools" / "generate_kafka_facts.py"), jars, "--check"]
    assert subprocess.run(command, check=False).returncode == 0
