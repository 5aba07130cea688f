"""Plants bugs in the in-memory plane, one at a time, and runs the check that must find each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from skylog.diskless.planes.memory import MemoryPlane
from skylog.kernel.clock import ManualClock
from skylog.kernel.errors import KafkaError
from tests.contract.support import CHECKS, RULES, Scene

# How a check fails; any other error means that the bug was planted badly.
FOUND = (AssertionError, pytest.fail.Exception, TimeoutError, KafkaError, RuntimeError)
Patch = pytest.MonkeyPatch
Plant = Callable[[Patch], None]
Bugs = dict[str, tuple[Plant, str]]


def planted_in(bugs: Bugs) -> Callable[[str], Callable[[Plant], Plant]]:
    """A decorator for bugs: ``@caught_by("the name of a check")``."""

    def caught_by(check: str) -> Callable[[Plant], Plant]:
        def add(plant: Plant) -> Plant:
            bugs[plant.__name__] = (plant, check)
            return plant

        return add

    return caught_by


def wrap(patch: Patch, owner: Any, name: str, change: Callable[..., Any]) -> None:
    """Replace ``owner.name``; ``change`` gets the original first."""
    original = getattr(owner, name)
    patch.setattr(owner, name, lambda *args, **more: change(original, *args, **more))


async def failure_of(check: str) -> BaseException | None:
    clock = ManualClock()
    plane = MemoryPlane(clock, RULES)

    async def another() -> MemoryPlane:
        return plane

    scene = Scene(plane, clock, another)
    await scene.create()
    try:
        await CHECKS[check](scene)
    except FOUND as failure:
        return failure
    return None


async def require_found(bugs: Bugs, name: str, patch: Patch) -> None:
    plant, check = bugs[name]
    assert await failure_of(check) is None
    plant(patch)
    assert await failure_of(check) is not None, f"{check} does not find that {name}"
