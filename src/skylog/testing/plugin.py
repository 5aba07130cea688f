"""Pytest fixtures: a broker for one test, and its address."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from skylog.testing.broker import Broker


@pytest.fixture
def skylog_broker() -> Iterator[Broker]:
    """A new broker; its data is deleted with it."""
    from skylog.testing.broker import Broker  # noqa: PLC0415 - slow to import, not always used

    with Broker() as broker:
        yield broker


@pytest.fixture
def skylog_bootstrap(skylog_broker: Broker) -> str:
    """``host:port`` for ``bootstrap.servers``."""
    return skylog_broker.bootstrap
