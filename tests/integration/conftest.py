"""Fixtures of most tests here: one broker for all tests of a module, and a connection to it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from skylog.testing import Broker
from tests.integration.broker_client import Client


@pytest.fixture(scope="module")
def broker(request: pytest.FixtureRequest) -> Iterator[Broker]:
    """With the module's SETTINGS."""
    with Broker(getattr(request.module, "SETTINGS", None)) as running:
        yield running


@pytest.fixture
def client(broker: Broker) -> Iterator[Client]:
    with Client(broker.bootstrap) as connected:
        yield connected
