"""What a client's suite says is compared with what is expected, and every difference is told."""

from __future__ import annotations

import pytest

from tools.judge import JUDGES, ROOT, complaints, expected_failures, go_results, pytest_results

OUTPUT = """
=== RUN   TestPing
--- PASS: TestPing (0.00s)
--- SKIP: TestSCRAMAuth (0.00s)
--- FAIL: TestTxnEtl (1.20s)
    --- PASS: TestTxnEtl/range (0.40s)
    --- FAIL: TestTxnEtl/sticky (0.80s)
FAIL
"""


def test_results_of_go() -> None:
    assert go_results(OUTPUT) == {
        "TestPing": "PASS",
        "TestSCRAMAuth": "SKIP",
        "TestTxnEtl": "FAIL",
        "TestTxnEtl/range": "PASS",
        "TestTxnEtl/sticky": "FAIL",
    }


def test_results_of_pytest() -> None:
    output = "PASSED t/a.py::one\nFAILED t/a.py::two - why\nERROR t/b.py::three\n"
    output += "SKIPPED [2] t/b.py:52: no codec\n"
    assert pytest_results(output) == {
        "t/a.py::one": "PASS",
        "t/a.py::two": "FAIL",
        "t/b.py::three": "FAIL",
        "t/b.py:52": "SKIP",
    }


def test_the_list() -> None:
    assert expected_failures("# why\n\nTestA # slow\nTestB/c# odd\n") == {
        "TestA": "slow",
        "TestB/c": "odd",
    }
    with pytest.raises(ValueError, match="line 2: TestB has no reason"):
        expected_failures("TestA # slow\nTestB\n")


@pytest.mark.parametrize(
    ("expected", "code", "found"),
    [
        ({"TestTxnEtl/sticky": "why"}, 1, []),
        ({}, 1, ["TestTxnEtl/sticky failed"]),
        (
            {"TestTxnEtl/sticky": "why", "TestPing": "why"},
            1,
            ["TestPing passed: take it off the list"],
        ),
        (
            {"TestTxnEtl/sticky": "why", "TestGone": "why"},
            1,
            ["TestGone did not run: take it off the list"],
        ),
    ],
)
def test_differences_are_told(expected: dict[str, str], code: int, found: list[str]) -> None:
    assert complaints(go_results(OUTPUT), expected, code) == found


def test_a_suite_that_breaks_off_is_no_success() -> None:
    assert complaints({"TestPing": "PASS"}, {}, 2) == ["the suite ended with 2, and no test failed"]
    assert complaints({}, {}, 0) == ["no test ran"]


@pytest.mark.parametrize("client", JUDGES)
def test_kept_lists_can_be_read(client: str) -> None:
    expected_failures((ROOT / "tests" / "judges" / f"expected-{client}.txt").read_text())
