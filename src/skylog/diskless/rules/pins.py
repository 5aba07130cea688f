"""Pure: the rules of pins, for every plane.

A pin protects a staged object from the orphan scan, and allows its commit although it is old, until
the pin expires. Once committed, the pin keeps the result for a writer that repeats the commit, even
after the object is deleted.
"""

from __future__ import annotations

from skylog.diskless.bulk import PinRequest
from skylog.diskless.rules.times import PlaneRules
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.limits import STAGED_PIN_LIFETIME_MS_MAX, STAGED_WRITER_CHARACTERS_MAX
from skylog.objects.keys import BadKey, ObjectKey

STAGED = "staging/"


def is_staged(object_key: str) -> bool:
    return object_key.startswith(STAGED)


def check_pin(pin: PinRequest, now_ms: int, rules: PlaneRules, pinned_until_ms: int | None) -> None:
    """Refuse a pin for an object that a scan may delete at any moment, or one that lasts too
    long."""
    try:
        key = ObjectKey.parse(pin.object_key)
    except BadKey as error:
        raise _bad(str(error)) from error
    if key.kind != "staging" or key.created_ms is None:
        raise _bad(f"{key} is not the key of a staged object")
    if len(pin.writer_id) > STAGED_WRITER_CHARACTERS_MAX:
        raise _bad(f"a writer's name of {len(pin.writer_id)} characters")
    if not now_ms < pin.expires_ms <= now_ms + STAGED_PIN_LIFETIME_MS_MAX:
        raise _bad(
            f"a pin of {pin.expires_ms - now_ms} ms; the limit is {STAGED_PIN_LIFETIME_MS_MAX}"
        )
    if is_open(pinned_until_ms, now_ms):
        return
    age_ms = now_ms - key.created_ms
    if age_ms > rules.pin_age_ms_max or -age_ms > rules.commit_ahead_ms_max:
        raise _bad(f"{key} is {age_ms} ms old; it can no longer be pinned")


def is_open(pinned_until_ms: int | None, now_ms: int) -> bool:
    """Whether the pin allows its object to be committed."""
    return pinned_until_ms is not None and now_ms < pinned_until_ms


def keeps(pinned_until_ms: int | None, now_ms: int, rules: PlaneRules) -> bool:
    """Whether the pin protects its object from deletion."""
    return pinned_until_ms is not None and now_ms < pinned_until_ms + rules.pin_grace_ms


def _bad(why: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, why)
