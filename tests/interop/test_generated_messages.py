"""The committed message classes are those that Kafka's own schemas give."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.interop
def test_message_classes_are_kafkas() -> None:
    cache = Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")).expanduser()
    jars = Path(os.environ.get("SKYLOG_KAFKA_JARS", cache / "skylog" / "kafka-4.3.1" / "lib"))
    schemas = jars.parent / "json"
    command = [
        sys.executable,
        str(ROOT / "tools" / "generate_messages.py"),
        str(schemas),
        "--check",
    ]
    assert subprocess.run(command, check=False).returncode == 0
