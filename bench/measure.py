"""Measurements: figures of several rounds, a goal, a verdict."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import psutil

MEGABYTE = 1_000_000
GIGABYTE = 1_000_000_000
IDLE_SECONDS_MAX = 60
# In a second.
IDLE_CPU_SECONDS = 0.1


class Usage(NamedTuple):
    """CPU and memory of a process and all its descendants so far."""

    cpu_seconds: float
    resident_bytes: int


def usage(pid: int) -> Usage:
    """CPU and memory of a whole process tree."""
    cpu, resident = 0.0, 0
    root = psutil.Process(pid)
    for process in (root, *root.children(recursive=True)):
        try:
            times = process.cpu_times()
            resident += process.memory_info().rss
        except psutil.NoSuchProcess:
            continue
        cpu += times.user + times.system + times.children_user + times.children_system
    return Usage(cpu, resident)


def await_idle(pid: int) -> None:
    """Wait until earlier work is done, or a generous timeout has passed."""
    deadline = time.monotonic() + IDLE_SECONDS_MAX
    while time.monotonic() < deadline:
        before = usage(pid).cpu_seconds
        time.sleep(1)
        if usage(pid).cpu_seconds - before < IDLE_CPU_SECONDS:
            return


class Spent(NamedTuple):
    """What an action took: seconds, and the broker's CPU."""

    seconds: float
    cpu_seconds: float


def spent(pid: int, action: Callable[[], None]) -> Spent:
    before, started = usage(pid), time.perf_counter()
    action()
    seconds = time.perf_counter() - started
    return Spent(seconds, usage(pid).cpu_seconds - before.cpu_seconds)


@dataclass(frozen=True, slots=True)
class Goal:
    """``limit`` is a ratio to Kafka, or a plain value where only skylog is measured."""

    limit: float
    higher_is_better: bool = False
    ratio: bool = True

    def met(self, value: float) -> bool:
        return value >= self.limit if self.higher_is_better else value <= self.limit

    def __str__(self) -> str:
        sign = "≥" if self.higher_is_better else "≤"
        return f"{sign} {self.limit:g}{' ×' if self.ratio else ''}"


@dataclass(slots=True)
class Figure:
    """One row: the values of all rounds, on both sides."""

    what: str
    unit: str
    # None if there is no goal.
    goal: Goal | None
    skylog: list[float] = field(default_factory=list)
    kafka: list[float] = field(default_factory=list)
    # Settings other than defaults, and anything else needed to read the row.
    note: str = ""

    @property
    def ratio(self) -> float | None:
        """Our median by Kafka's."""
        if not self.kafka or not self.skylog:
            return None
        return statistics.median(self.skylog) / max(statistics.median(self.kafka), 1e-12)

    @property
    def met(self) -> bool | None:
        if self.goal is None:
            return None
        value = self.ratio if self.goal.ratio else statistics.median(self.skylog)
        return value is not None and self.goal.met(value)

    def add(self, side: str, value: float) -> None:
        (self.skylog if side == "skylog" else self.kafka).append(value)


def spread(values: list[float]) -> float:
    """Half of the range, as a share of the median."""
    middle = statistics.median(values)
    return (max(values) - min(values)) / 2 / middle if middle else 0.0
