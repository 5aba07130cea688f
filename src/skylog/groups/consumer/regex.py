"""Subscriptions by regular expression, with the semantics of RE2: linear time, whole names."""

from __future__ import annotations

from collections.abc import Callable

from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.limits import GROUP_REGEX_CHARACTERS_MAX, GROUP_REGEX_MEMORY_BYTES

Matches = Callable[[str], bool]


def compile_regex(regex: str) -> Matches:
    """What tells whether the whole of a name matches; INVALID_REGULAR_EXPRESSION if none can."""
    # Loaded when first needed: most brokers never see a pattern.
    import re2  # type: ignore[import-untyped]  # noqa: PLC0415

    if len(regex) > GROUP_REGEX_CHARACTERS_MAX:
        raise _invalid(f"the first {GROUP_REGEX_CHARACTERS_MAX} characters", "it is too long")
    options = re2.Options()
    options.log_errors = False
    options.max_mem = GROUP_REGEX_MEMORY_BYTES
    try:
        pattern = re2.compile(regex, options)
    except (re2.error, UnicodeError) as error:
        why = error.args[0] if error.args else ""
        raise _invalid(
            regex, why.decode(errors="replace") if isinstance(why, bytes) else str(why)
        ) from error
    return lambda name: pattern.fullmatch(name) is not None


def _invalid(shown: str, why: str) -> KafkaError:
    return KafkaError(
        ErrorCode.INVALID_REGULAR_EXPRESSION,
        f"SubscribedTopicRegex `{shown}` is not a valid regular expression: {why}.",
    )


def matcher(regex: str) -> Matches:
    """The same for an expression that was checked when it came: now it fails for no name."""
    try:
        return compile_regex(regex)
    except KafkaError:  # another engine may have checked it
        return lambda name: False
