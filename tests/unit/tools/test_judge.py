"""A suite's results are compared with the expected ones, and every difference is reported."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tools.judge import (
    JUDGES,
    ROOT,
    Round,
    complaints,
    expected_failures,
    go_results,
    librdkafka_report,
    librdkafka_results,
    pytest_results,
)

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


def test_results_of_librdkafka() -> None:
    said = "broker up\n=== PASS 0001_multiobj\nlate\n=== FAIL consumer:0045_subscribe_update"
    assert librdkafka_results(said + "\n=== SKIP 0004_conf") == {
        "0001_multiobj": "PASS",
        "consumer:0045_subscribe_update": "FAIL",
        "0004_conf": "SKIP",
    }


def test_the_report_of_one_number_of_librdkafka() -> None:
    states = {
        "<MAIN>": "PASSED",
        "0001_multiobj": "SKIPPED",
        "0045_subscribe_update": "PASSED",
        "0045_subscribe_update_mock": "SKIPPED",
        "0045_resubscribe_with_regex": "FAILED",
        "0045_subscribe_many_updates": "RUNNING",
    }
    report = json.dumps({"tests": {name: {"state": state} for name, state in states.items()}})
    assert librdkafka_report("0045", report, 1) == {
        "0045_subscribe_update": "PASS",
        "0045_subscribe_update_mock": "SKIP",
        "0045_resubscribe_with_regex": "FAIL",
        "0045_subscribe_many_updates": "FAIL",
    }


def test_a_number_of_librdkafka_that_broke_off_failed() -> None:
    assert librdkafka_report("0045", "", -9) == {"0045": "FAIL"}
    report = json.dumps({"tests": {"0045_subscribe_update": {"state": "PASSED"}}})
    leaks = {"0045_subscribe_update": "PASS", "0045": "FAIL"}
    assert librdkafka_report("0045", report, -6) == leaks


def test_which_numbers_of_librdkafka_are_run(tmp_path: Path) -> None:
    (tmp_path / "0001-multiobj.c").write_text("produce();")
    (tmp_path / "0045-subscribe_update.c").write_text("subscribe();")
    (tmp_path / "0098-consumer-txn.cpp").write_text("subscribe(); and more")
    (tmp_path / "0147-consumer_mock.c").write_text("subscribe();")
    (tmp_path / "test.c").write_text("subscribe();")
    assert Round("").numbers(tmp_path) == ["0098", "0045", "0001"]
    assert Round("", whose_source_has="subs|none").numbers(tmp_path) == ["0098", "0045"]
    assert Round("", only=("0045", "0107")).numbers(tmp_path) == ["0045"]


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
