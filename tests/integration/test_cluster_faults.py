"""Nodes of a cluster are killed, paused and stopped under load: nothing acknowledged is lost.

A few rounds of the campaign in ``tests/chaos``; ``make chaos SECONDS=…`` runs more.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.chaos.campaign import Campaign

SEED = 20
SESSION_SECONDS = 3.0
ACTIONS = ("kill", "pause", "all killed")


@pytest.mark.timeout(600)
def test_nothing_acknowledged_is_lost_while_nodes_fail(tmp_path: Path) -> None:
    cluster = tmp_path / "cluster"
    with Campaign(cluster, SEED, session_seconds=SESSION_SECONDS) as campaign:
        for action in ACTIONS:
            campaign.round(action)
        report = campaign.verify()
    assert report["rounds"] == len(ACTIONS)
    assert report["acknowledged"] > 100
    assert report["transactions"]["committed"] > 5
