"""Input and output of commands: times, lines, errors, cells, numbers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skylog.cli import lines
from skylog.cli.command_tree import COMMANDS, LazyGroup
from skylog.cli.errors import CommandError, counted, explain, one_line, raise_failures
from skylog.cli.lines import Input, RecordLine, parse_line, read_lines
from skylog.cli.measure import latencies, percentile, throughput
from skylog.cli.output import cell, json_bytes, print_table, printable
from skylog.cli.reset_offsets import Target, parse_target, parse_topics
from skylog.cli.times import format_age, format_time, parse_time
from skylog.cli.welcome import command_name
from skylog.client.offsets import EARLIEST, LATEST
from skylog.kernel.errors import ConfigError, ErrorCode, KafkaError

NOW = 1_000_000_000_000


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("-90s", NOW - 90_000),
        ("-15m", NOW - 900_000),
        ("-2h", NOW - 7_200_000),
        ("-7d", NOW - 604_800_000),
        ("-5ms", NOW - 5),
        ("-999999d", 0),
        ("@1700000000000", 1_700_000_000_000),
        ("1970-01-02", 86_400_000),
        ("1970-01-01T00:00:01Z", 1000),
        ("1970-01-01T01:00:00+01:00", 0),
        ("1970-01-01T00:00:00.250", 250),
    ],
)
def test_times(text: str, expected: int) -> None:
    assert parse_time(text, NOW) == expected


@pytest.mark.parametrize("text", ["", "soon", "-2", "-2w", "2h", "1969-12-31", "@", "2026-13-01"])
def test_invalid_times(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not a time; allowed are|is before 1970"):
        parse_time(text, NOW)


@given(st.integers(0, 4_000_000_000_000))
def test_times_are_read_as_they_are_written(time_ms: int) -> None:
    assert abs(parse_time(format_time(time_ms), NOW) - time_ms) <= 1


def test_invalid_timestamps() -> None:
    assert format_time(-1) == "-1"
    assert format_time(2**63 - 1) == str(2**63 - 1)


def test_ages_are_told_in_the_largest_unit() -> None:
    ages = {-5: "0s", 1_400: "1s", 119_000: "119s", 120_000: "2m", 7_200_000: "2h", 5 << 30: "62d"}
    assert {age: format_age(age) for age in ages} == ages


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (b"k:v", (b"k", b"v")),
        (b"k:v:w", (b"k", b"v:w")),
        (b":v", (b"", b"v")),
        (b"k:", (b"k", b"")),
        (b"N:N", (None, None)),
    ],
)
def test_lines_with_keys(line: bytes, expected: tuple[bytes | None, bytes | None]) -> None:
    assert parse_line(RecordLine(b":", b"N"), line, 1) == expected


def test_lines_without_keys() -> None:
    assert parse_line(RecordLine(None, None), b"k:v", 1) == (None, b"k:v")
    with pytest.raises(CommandError, match="line 7 has no key separator"):
        parse_line(RecordLine(b":", None), b"v", 7)


@given(st.lists(st.binary(max_size=5).filter(lambda b: not set(b) & set(b"\r\n"))), st.data())
async def test_lines_do_not_depend_on_how_they_arrive(
    expected: list[bytes], data: st.DataObject
) -> None:
    whole = b"".join(line + b"\n" for line in expected)
    cuts = sorted(data.draw(st.sets(st.integers(1, max(len(whole) - 1, 1)), max_size=4)))
    pieces = [whole[a:b] for a, b in zip([0, *cuts], [*cuts, len(whole)], strict=True)]
    pending = [piece for piece in pieces if piece]
    source = Input(lambda _: pending.pop(0) if pending else b"")
    assert [line async for line in read_lines(source)] == expected


async def test_a_line_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "LINE_BYTES_MAX", 10)
    pending = [b"x" * 10, b"\ny\nz"]
    source = Input(lambda _: pending.pop(0) if pending else b"")
    assert [line async for line in read_lines(source)] == [b"x" * 10, b"y", b"z"]
    endless = Input(lambda size: b"x" * 11)
    with pytest.raises(CommandError, match="more than 10 bytes"):
        [line async for line in read_lines(endless)]


def test_errors_are_one_line_with_advice() -> None:
    error = KafkaError(ErrorCode.TOPIC_ALREADY_EXISTS, "Topic 'a'\nalready exists.")
    assert one_line(error) == (
        "Topic 'a' already exists (TOPIC_ALREADY_EXISTS); --if-not-exists accepts that"
    )
    assert one_line(ConfigError("a is 1;\n allowed is 2")) == "a is 1; allowed is 2"
    assert explain(KafkaError(ErrorCode.INVALID_CONFIG)) == "INVALID_CONFIG"
    unknown = KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "topic a")
    assert explain(unknown).startswith("topic a does not exist (UNKNOWN_TOPIC_OR_PARTITION); ")


def test_failures_are_told_together() -> None:
    raise_failures({"a": None, "b": 1})
    failed = {
        "a": KafkaError(ErrorCode.INVALID_CONFIG, "no"),
        "b": None,
        "c": KafkaError(ErrorCode.INVALID_CONFIG, "c is wrong"),
    }
    with pytest.raises(CommandError) as told:
        raise_failures(failed)
    assert str(told.value) == "a: no (INVALID_CONFIG); c is wrong (INVALID_CONFIG)"


@given(st.text())
def test_nothing_steers_a_terminal(text: str) -> None:
    assert printable(text).isprintable()


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, "-"),
        ("", "-"),
        (True, "yes"),
        (0, "0"),
        (1234.5, "1,234.50"),
        ([1, 2], "1,2"),
        ([], "-"),
        ("\x1b[0m", "\\x1b[0m"),
    ],
)
def test_cells(value: object, expected: str) -> None:
    assert cell(value) == expected


def test_a_table_without_rows_has_headings(capsys: pytest.CaptureFixture[str]) -> None:
    print_table({"a": "First", "b": "Second"}, [])
    assert capsys.readouterr().out == "FIRST  SECOND\n"


def test_bytes_in_json() -> None:
    assert json_bytes("v", None) == {"v": None}
    assert json_bytes("v", "ü".encode()) == {"v": "ü"}
    assert json_bytes("v", b"\xff") == {"v_base64": "/w=="}


def test_percentiles() -> None:
    values = [float(number) for number in range(1, 1001)]
    assert [percentile(values, p) for p in (50, 95, 99, 99.9, 100)] == [500, 950, 990, 999, 1000]
    assert percentile([7.0], 50) == 7
    assert percentile([], 99) == 0
    assert latencies([0.003, 0.001])["max_ms"] == 3
    assert latencies([])["average_ms"] == 0


def test_throughput() -> None:
    found = throughput(1000, 2 * 1024 * 1024, 2.0)
    assert (found["records_per_second"], found["mb_per_second"]) == (500, 1)
    assert throughput(0, 0, 0.0)["records_per_second"] == 0


@pytest.mark.parametrize(
    ("to", "shift", "expected"),
    [
        ("earliest", None, Target(time=EARLIEST)),
        ("latest", None, Target(time=LATEST)),
        ("current", None, Target(shift=0)),
        ("12", None, Target(offset=12)),
        ("@12", None, Target(time=12)),
        (None, -3, Target(shift=-3)),
    ],
)
def test_targets(to: str | None, shift: int | None, expected: Target) -> None:
    assert parse_target(to, shift) == expected


def test_topics_with_partitions() -> None:
    assert parse_topics(["a", "b:0,2"]) == {"a": None, "b": [0, 2]}


def test_numbers_with_nouns() -> None:
    assert [counted(n, "row") for n in (0, 1, 1200)] == ["0 rows", "1 row", "1,200 rows"]


def test_how_to_call_skylog(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert command_name("/opt/venv/bin/skylog") == "/opt/venv/bin/skylog"
    assert command_name("-c") == "skylog"


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_there_and_its_line_says_what_it_does(name: str) -> None:
    command = LazyGroup(name="skylog").get_command(None, name)
    assert command is not None
    assert COMMANDS[name][1].endswith(".")
    if hasattr(command, "commands"):
        assert all(child.help and child.epilog for child in command.commands.values())
    elif name != "version":
        assert "Examples:" in command.epilog
