from __future__ import annotations

import copy
import pickle

import pytest

from skylog.kernel.secret import HIDDEN, Secret


def test_a_secret_does_not_show() -> None:
    secret = Secret("hunter2")
    for shown in (str(secret), repr(secret), f"{secret}", f"{secret:>20}", f"{[secret]}"):
        assert "hunter2" not in shown and HIDDEN in shown
    assert secret.reveal() == "hunter2"


def test_secrets_compare() -> None:
    secret = Secret("hunter2")
    assert secret.matches("hunter2") and not secret.matches("hunter3")
    assert secret == Secret("hunter2") and secret != Secret("x") and secret != "hunter2"
    assert hash(secret) == hash(Secret("hunter2"))


@pytest.mark.parametrize("write", [pickle.dumps, copy.copy])
def test_a_secret_is_not_written(write: object) -> None:
    with pytest.raises(TypeError, match="not be serialized"):
        write(Secret("hunter2"))  # type: ignore[operator]
