"""Profiles of property tests, and the check for open connections.

Examples are the same on every run of the suite; ``make sim`` draws others.
"""

from __future__ import annotations

import gc

import pytest
from hypothesis import HealthCheck, settings

from skylog.kernel.native import native_libraries
from tests import leaks

_CALM = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow], "database": None}
settings.register_profile("steady", derandomize=True, **_CALM)
settings.register_profile("seeded", print_blob=True, **_CALM)
settings.load_profile("steady")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", f"{leaks.MARKER}: clients that leave connections open")
    config.pluginmanager.register(leaks)
    leaks.watch()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    missing = [library for library, built in native_libraries().items() if not built]
    if missing:
        terminalreporter.write_line(
            f"Python instead of C (run `make native`): {', '.join(missing)}"
        )


def pytest_unconfigure() -> None:
    # Readers freeze what a Spark worker has imported, and some tests run them in this process. What
    # is frozen is not freed at its end, and DuckDB would report its own functions as leaked.
    gc.unfreeze()
