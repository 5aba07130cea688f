"""Brokers that put together, copy, prune and expire are killed before and after each of their
effects, or sleep there until another one has done everything.

Every request to the metadata topic, to the store and to the coordinator is one. Whoever leads next
brings all of it to its end, and every record can be read at every moment.
"""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from sim.consolidation import checks
from sim.consolidation.broker import SimBroker, State
from sim.consolidation.plan import CALM
from sim.consolidation.requests import Request
from sim.consolidation.world import World

# Asked again and again while nothing happens.
POLLS = ("find", "head", "log info")
# As many turns as a leader takes before it hears that it is none.
IGNORANT_TURNS = 4


class Interrupted(World):
    """Something happens to the leader at its nth request."""

    def __init__(self, directory: Path, what: str = "", number: int = -1) -> None:
        directory.mkdir()
        super().__init__(1, str(directory), replace(CALM, retention_bytes=400))
        self.names: list[str] = []
        self._what = what
        self._number = number
        self._held: Request | None = None
        self._ignorant = 0

    def arrived(self, request: Request) -> None:
        self.names.append(request.name)
        if len(self.names) - 1 != self._number:
            super().arrived(request)
            return
        leader = self.brokers[self.state.leader]
        if self._what == "sleeps":
            self._held, leader.paused = request, True
        else:
            if self._what == "killed after":
                super().arrived(request)
            leader.kill()
        self.state = State(1 - leader.node_id, self.state.epoch + 1)

    def informs(self, broker: SimBroker) -> bool:
        if self._held is None and self._ignorant > 0 and broker.node_id != self.state.leader:
            self._ignorant -= 1
            return False
        return True

    def wake(self) -> None:
        """The old leader goes on where it slept."""
        if self._held is not None:
            held, self._held = self._held, None
            held.sender.paused = False
            self._ignorant = IGNORANT_TURNS
            self.bucket.late.add(held.segment_id)
            held.arrive()
            self.quiesce()

    def play(self) -> None:
        try:
            for _ in range(2):
                for _ in range(4):
                    self.produce()
                self.quiesce()
            self.delete_to(self.log.high_watermark - 3)
            self.quiesce()
            self.wake()
            self.settle()
            checks.at_the_end(self)
        finally:
            for broker in self.brokers:
                broker.kill()


def names_of(directory: Path) -> list[str]:
    world = Interrupted(directory)
    world.play()
    return world.names


@pytest.mark.parametrize("what", ["killed before", "killed after", "sleeps"])
def test_at_each_request(what: str, tmp_path: Path) -> None:
    names = names_of(tmp_path / "whole")
    kinds = {"prune", "move start", "publish 1", "publish 2", "put log", "delete log", "find"}
    assert kinds <= set(names)
    for number, name in enumerate(names):
        if name in POLLS and names[number - 1 : number] == [name]:
            continue
        directory = tmp_path / str(number)
        try:
            Interrupted(directory, what, number).play()
        except AssertionError as failure:
            raise AssertionError(f"{what} at {number}, {name}: {failure}") from failure
        shutil.rmtree(directory)
