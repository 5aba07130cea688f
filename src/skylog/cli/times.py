"""Times as users write them. Pure: the current time is a parameter."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Final

_AGE: Final = re.compile(r"-(\d{1,12})(ms|s|m|h|d)")
_UNIT_MS: Final = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_MILLISECONDS: Final = re.compile(r"@(\d{1,18})")
TIME_FORMS: Final = (
    "2026-07-01T12:00:00Z, 2026-07-01, an age such as -90s, -15m, -2h, -7d, "
    "or @ and milliseconds since 1970"
)


def parse_time(text: str, now_ms: int) -> int:
    """Milliseconds since 1970 of a date, a time or an age; the default zone is UTC.

    Raises ValueError with the allowed formats.
    """
    age = _AGE.fullmatch(text)
    if age is not None:
        return max(now_ms - int(age[1]) * _UNIT_MS[age[2]], 0)
    milliseconds = _MILLISECONDS.fullmatch(text)
    if milliseconds is not None:
        return int(milliseconds[1])
    try:
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        found = int(moment.timestamp() * 1000)
    except (ValueError, OverflowError) as error:
        raise ValueError(f"{text!r} is not a time; allowed are {TIME_FORMS}") from error
    if found < 0:
        raise ValueError(f"{text!r} is before 1970")
    return found


def format_time(time_ms: int) -> str:
    """A timestamp in readable form; the number itself if it is not a valid time."""
    if time_ms < 0:
        return str(time_ms)
    try:
        moment = datetime.fromtimestamp(time_ms / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return str(time_ms)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def format_age(age_ms: int) -> str:
    """The age, in the largest unit that fits."""
    for unit, unit_ms in (("d", 86_400_000), ("h", 3_600_000), ("m", 60_000)):
        if age_ms >= 2 * unit_ms:
            return f"{age_ms // unit_ms}{unit}"
    return f"{max(age_ms, 0) / 1000:.0f}s"
