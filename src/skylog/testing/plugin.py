"""Pytest fixtures: ``skylog_broker``, a broker for one test, and ``skylog_bootstrap``, its address."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from skylog.testing.broker import Broker


@pytest.fixture
def skylog_broker() -> Iterator[Broker]:
    """A fresh broker; its data goes with it."""
    with Broker() as broker:
        yield broker


@pytest.fixture
def skylog_bootstrap(skylog_broker: Broker) -> str:
    """``host:port`` for ``bootstrap.servers``."""
    return skylog_broker.bootstrap
