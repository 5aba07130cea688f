"""Compaction of the broker's local logs, by the current settings."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Final

from skylog.log.cleaner import CleanerSettings, LogCleaner

if TYPE_CHECKING:
    from skylog.broker.background.tasks import Background
    from skylog.broker.services import Services

# If it fails, it is restarted.
RESTART_MS: Final = 1_000


def start_cleaner(services: Services, background: Background) -> LogCleaner:
    """Compact from now on, by the settings that are current at each pass."""
    cleaner = LogCleaner(
        services.logs,
        services.clock,
        services.executor,
        services.rng,
        lambda: CleanerSettings(**asdict(services.configs.current.log_cleaner)),
    )
    background.every(RESTART_MS, "compaction", cleaner.run, first_ms=0)
    return cleaner
