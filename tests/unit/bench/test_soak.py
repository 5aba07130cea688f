"""The verdict on whether a node grows."""

from __future__ import annotations

import random

import pytest

from bench.soak import MEBIBYTE, Sample, growth


def samples(resident_per_minute: float, files_per_minute: float, minutes: float) -> list[Sample]:
    """A steep warm-up, noise that garbage makes, and a slope."""
    rng = random.Random(5)
    found = []
    for at in range(int(minutes * 120)):
        passed = at / 120
        warm = min(passed / minutes / 0.2, 1) * 60 * MEBIBYTE
        noise = rng.expovariate(1 / (4 * MEBIBYTE))
        resident = 60 * MEBIBYTE + warm + noise + passed * resident_per_minute
        files = 40 + rng.randrange(20) + int(passed * files_per_minute)
        found.append(Sample(passed * 60, int(resident), files, 10))
    return found


def test_noise_and_a_warm_up_are_no_growth() -> None:
    assert growth(samples(0, 0, 3)).steady


def test_a_leak_is_found() -> None:
    assert not growth(samples(10 * MEBIBYTE, 0, 3)).steady
    assert not growth(samples(0, 60, 3)).steady
    leak = growth(samples(10 * MEBIBYTE, 60, 3))
    assert leak.resident_bytes / MEBIBYTE == pytest.approx(10, abs=2)
    assert leak.files == pytest.approx(60, abs=6)


def test_too_little_is_no_verdict() -> None:
    with pytest.raises(ValueError, match="too few"):
        growth(samples(0, 0, 0.1))
