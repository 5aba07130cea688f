"""Pure: time rules of every plane."""

from __future__ import annotations

from dataclasses import dataclass

from skylog.kernel.limits import STAGED_PIN_AGE_MS_MAX


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaneRules:
    """How old a commit and a pin may be, and how long a plane remembers them.

    The orphan scan and the cleaner must wait for more than twice ``commit_age_ms_max``: then no
    object that they delete can still be committed.
    """

    commit_age_ms_max: int = 10 * 60 * 1000
    # How far an uploader's clock may be ahead of ours.
    commit_ahead_ms_max: int = 60 * 1000
    producer_expiration_ms: int = 24 * 60 * 60 * 1000
    # How long a staged object may wait for its pin. The orphan scan waits longer.
    pin_age_ms_max: int = STAGED_PIN_AGE_MS_MAX
    # How long an expired pin still protects its object: another coordinator's clock may be slow.
    pin_grace_ms: int = 60 * 60 * 1000
