"""Pure: classifies errors of the object-store library, in one function that is tested as a table.

The library raises a class per kind of response and hides the rest in text: the status is in the
first line, the kind of a transport error below it. A put that is refused with "exists" is not
decided here: S3 says so for 409 (undecided) and for 412 (exists), Azure says 409 for both.
"""

from __future__ import annotations

import re
from typing import Final

from skylog.objects.store import Exists, NotFound, ObjectError, Outcome

_STATUS: Final = re.compile(r"non-2xx status code: (\d{3})\b")
_CODE: Final = re.compile(r"<Code>([A-Za-z]{1,64})</Code>")
_TRANSPORT: Final = re.compile(r"HttpError \{\s+kind: (\w+)")
_FIRST_LINE_CHARACTERS_MAX: Final = 500

# Responses that a store sends before it starts to process a request.
_NOT_BEGUN: Final = frozenset({"SlowDown", "ServiceUnavailable", "ServerBusy", "RequestTimeout"})
_NO_BUCKET: Final = ("NoSuchBucket", "ContainerNotFound", "The specified bucket does not exist")
_ABORT: Final = "performing DELETE"
_THROTTLED: Final = frozenset({429, 503})
_CONFLICT: Final = frozenset({409, 412})


def outcome_of(error: Exception, what: str, *, writes: bool) -> ObjectError:
    """Converts the library's error to the port's. ``writes``: the operation changes something."""
    text = str(error)
    message = f"{what}: {_first_line(text)}"
    status = _status(text)
    if isinstance(error, FileNotFoundError) or status == 404:
        return NotFound(message)
    if status is None:
        return ObjectError(message, _without_answer(text, writes))
    if status in _CONFLICT and writes:
        return Exists(message)
    throttled = status in _THROTTLED
    return ObjectError(message, _answered(status, text, writes), throttled=throttled)


def parts_outcome_of(error: Exception, what: str) -> ObjectError:
    """The same for an upload in parts.

    When completing it fails, the library aborts it, and reports the abort's error if that fails
    too: of an upload that was completed there is nothing left to abort.
    """
    failure = outcome_of(error, what, writes=True)
    absent = isinstance(failure, NotFound) and not bucket_missing(failure)
    if absent or isinstance(failure, Exists) or _ABORT in str(failure):
        return ObjectError(str(failure), Outcome.AMBIGUOUS, throttled=failure.throttled)
    return failure


def bucket_missing(failure: NotFound) -> bool:
    """Whether the bucket does not exist, rather than an object in it."""
    return any(code in str(failure) for code in _NO_BUCKET)


def _answered(status: int, text: str, writes: bool) -> Outcome:
    code = _CODE.search(text)
    if status == 429 or (code and code[1] in _NOT_BEGUN):
        return Outcome.NOT_DONE
    if status >= 500 or status == 408:
        # A gateway may have lost the response to a request that succeeded.
        return Outcome.AMBIGUOUS if writes else Outcome.NOT_DONE
    return Outcome.REFUSED


def _without_answer(text: str, writes: bool) -> Outcome:
    transport = _TRANSPORT.search(text)
    if not writes or (transport and transport[1] == "Connect"):
        return Outcome.NOT_DONE
    return Outcome.AMBIGUOUS


def _status(text: str) -> int | None:
    found = _STATUS.search(text)
    return int(found[1]) if found else None


def _first_line(text: str) -> str:
    return text.partition("\n")[0][:_FIRST_LINE_CHARACTERS_MAX]
