"""Regular-expression subscriptions, with RE2's semantics: linear time, whole names."""

from __future__ import annotations

from collections.abc import Callable

from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.limits import GROUP_REGEX_CHARACTERS_MAX, GROUP_REGEX_MEMORY_BYTES

Matches = Callable[[str], bool]


def compile_regex(regex: str) -> Matches:
    """A matcher of whole names; INVALID_REGULAR_EXPRESSION if the pattern is invalid."""
    # Imported on first use: most brokers never see a pattern.
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
    """The same for an expression that was already validated: never raises."""
    try:
        return compile_regex(regex)
    except KafkaError:  # another engine may have validated it
        return lambda name: False
