"""Nodes whose diskless topics get remote segments, soon and small: settings, and one broker.

``with Broker({**SETTINGS, ...})`` or ``with consolidating_broker(bucket)``; topics are made with
``CONSOLIDATING`` (or are consolidated by default, as ``SETTINGS`` has it).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from skylog.testing import Broker
from tests.integration.tiered_topics import LOCAL
from tests.integration.tiered_topics import SETTINGS as TIERED

# Backups are off: a prune would have to wait for two of them.
SETTINGS = {
    **TIERED,
    "diskless.produce.commit.interval.ms": "5",
    "diskless.metadata.backup.interval.ms": "0",
    "diskless.tiering.prune.interval.ms": "100",
    "diskless.tiering.prune.delay.ms": "0",
}
# Segments of five records, as in ``tiered_topics``.
CONSOLIDATING = {**LOCAL, "diskless.enable": "true", "remote.storage.enable": "true"}


@contextmanager
def consolidating_broker(
    bucket: Path, *, directory: Path | None = None, **settings: str
) -> Iterator[Broker]:
    """``settings`` have underscores for dots."""
    more = {name.replace("_", "."): text for name, text in settings.items()}
    given = {**SETTINGS, "diskless.storage.url": bucket.as_uri(), **more}
    with Broker(given, directory=directory) as broker:
        yield broker
