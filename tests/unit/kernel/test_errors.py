"""What an error carries to a client."""

from __future__ import annotations

import pytest

from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.limits import ERROR_MESSAGE_CHARACTERS_MAX
from skylog.wire.codec import decode, encode
from skylog.wire.messages.sasl_authenticate_response import SaslAuthenticateResponse


@pytest.mark.parametrize("letter", ["a", "\N{EURO SIGN}", "\N{GRINNING FACE}"])
def test_a_long_message_still_fits_into_an_answer(letter: str) -> None:
    error = KafkaError(ErrorCode.INVALID_REQUEST, letter * 100_000)
    assert error.message is not None
    assert error.message[:-1] == letter * ERROR_MESSAGE_CHARACTERS_MAX
    for version in (0, 2):
        sent = encode(SaslAuthenticateResponse(error.code, error.message), version)
        assert decode(SaslAuthenticateResponse, sent, version).error_message == error.message


def test_only_a_retriable_code_leaves_the_outcome_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SKYLOG_INVARIANT_RAISES", "1")
    assert KafkaError(ErrorCode.REQUEST_TIMED_OUT, ambiguous=True).retriable
    with pytest.raises(AssertionError, match="cannot report an unknown outcome"):
        KafkaError(ErrorCode.INVALID_REQUEST, ambiguous=True)
