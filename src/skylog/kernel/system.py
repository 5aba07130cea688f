"""What a process takes from its system: time, randomness and threads.

Code that decides or waits gets it as an argument, so that tests and simulations can replace it.
"""

from __future__ import annotations

from dataclasses import dataclass

from skylog.kernel.clock import Clock, SystemClock
from skylog.kernel.executor import Executor, InlineExecutor
from skylog.kernel.rng import Random, system_random


@dataclass(frozen=True, slots=True)
class System:
    clock: Clock
    rng: Random
    # For work that takes long or waits for a disk.
    executor: Executor


def real_system() -> System:
    """The system's own clock and randomness; long work is done where it is asked for."""
    return System(SystemClock(), system_random(), InlineExecutor())
