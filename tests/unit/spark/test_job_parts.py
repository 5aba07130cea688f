"""Chunks, files and schemas of jobs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from skylog.kernel.errors import ConfigError
from skylog.spark.jobs.chunks import Chunk, next_chunk, positions
from skylog.spark.jobs.errors import told
from skylog.spark.jobs.files import find_files
from skylog.spark.jobs.runs import RunFile, check_same
from skylog.spark.jobs.table.avro import AvroSchema
from skylog.spark.jobs.table.registry import Registry
from skylog.spark.ranges import Log


def test_chunks_take_of_each_partition_in_proportion_and_all_in_the_end() -> None:
    start, ends = {0: 0, 1: 50, 2: 7}, {0: 1000, 1: 150, 2: 7}
    chunk = next_chunk(start, ends, 110)
    assert chunk == Chunk({0: 0, 1: 50}, {0: 100, 1: 60})
    assert chunk is not None
    assert chunk.size == 110
    position = dict(start)
    chunks = 0
    while chunk := next_chunk(position, ends, 110):
        assert chunk.size <= 111  # no partition starves
        position |= chunk.end
        chunks += 1
    assert position == ends
    assert chunks == 10


def test_positions_move_up_to_where_the_log_begins() -> None:
    logs = {0: Log(10, 20), 1: Log(0, 5), 2: Log(3, 3)}
    assert positions({0: 4, 1: 2}, logs) == ({0: 10, 1: 2, 2: 3}, {0: 6})
    with pytest.raises(ConfigError, match=r"partition 1 ends at 5, .* up to 9"):
        positions({1: 9}, logs)


def test_files_are_found_once_and_in_order(tmp_path: Path) -> None:
    for name in ("b/2.csv", "b/1.csv", "b/_temporary/x.csv", "b/.hidden", "a b.csv", "c.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / name).write_text(name)

    def names(*paths: str) -> list[str]:
        base = f"file://{tmp_path}/"
        return [
            one.path.removeprefix(base) for one in find_files([f"{tmp_path}{p}" for p in paths])
        ]

    assert names("") == ["a b.csv", "b/1.csv", "b/2.csv", "c.txt"]
    assert names("/b", "/b/2.csv") == ["b/1.csv", "b/2.csv"]
    assert names("/*/*.csv") == ["b/1.csv", "b/2.csv"]
    assert names("/*.txt") == ["c.txt"]
    assert find_files([str(tmp_path / "c.txt")])[0].size == 5
    for nothing in ("/none", "/*.none"):
        with pytest.raises(ConfigError, match="no file found"):
            names(nothing)
    with pytest.raises(ConfigError, match="cannot be read"):
        find_files(["nonsense://x"])


def test_runs_remember_and_refuse_to_change(tmp_path: Path) -> None:
    file = RunFile.of(str(tmp_path), "load", "a")
    assert file.read() is None
    file.write({"done": 3})
    found = RunFile.of(str(tmp_path), "load", "a").read()
    assert found == {"version": 1, "done": 3}
    with pytest.raises(ConfigError, match="began with done 3, not 4"):
        check_same(found, {"done": 4}, "it")
    for wrong in ("", "a/b", "../x", "x" * 65):
        with pytest.raises(ConfigError, match="--run-id is"):
            RunFile.of(str(tmp_path), "load", wrong)
    for wrong in ("nonsense", "[]", '{"version": 2}'):
        (tmp_path / "load-a.json").write_text(wrong)
        with pytest.raises(ConfigError, match="is not the file of a run"):
            file.read()


class _Schemas(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        number = self.path.removeprefix("/registry/schemas/ids/")
        answers = {
            "1": (200, json.dumps({"schema": '"long"'})),
            "2": (200, json.dumps({"schema": "{}", "schemaType": "PROTOBUF"})),
            "4": (500, "oops"),
            "5": (200, "nonsense"),
        }
        code, text = answers.get(number, (404, "{}"))
        if self.headers.get("Authorization") != "Basic YTpiQA==":
            code = 401
        self.send_response(code)
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, format: str, *args: object) -> None:
        """Nobody reads it."""


@pytest.fixture
def registry() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Schemas) as server:
        thread = Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"127.0.0.1:{server.server_port}/registry"
        server.shutdown()
        thread.join()


def test_schemas_of_a_registry(registry: str) -> None:
    schemas = Registry(f"http://a:b%40@{registry}/")
    assert isinstance(schemas.find(1), AvroSchema)
    assert "not Avro but PROTOBUF" in str(schemas.find(2))
    assert schemas.find(3) == f"Avro schema 3 is not in http://{registry}"
    for number in (4, 5):
        with pytest.raises(ConfigError, match=f"schema registry http://{registry}"):
            schemas.find(number)
    with pytest.raises(ConfigError, match="401"):
        Registry(f"http://{registry}").find(1)
    with pytest.raises(ConfigError, match=r"schema registry http://127\.0\.0\.1:1"):
        Registry("http://127.0.0.1:1").find(1)


def test_schemas_of_a_directory(tmp_path: Path) -> None:
    (tmp_path / "1.avsc").write_text('"long"')
    (tmp_path / "2.avsc").write_text("nonsense")
    schemas = Registry(str(tmp_path))
    assert isinstance(schemas.find(1), AvroSchema)
    assert "is not a valid Avro schema" in str(schemas.find(2))
    assert f"Avro schema 3 is not in {tmp_path}" == schemas.find(3)
    assert "is not in" in str(Registry(str(tmp_path / "none")).find(1))
    assert not (tmp_path / "none").exists()


def test_errors_of_tasks_are_one_sentence() -> None:
    text = (
        "An exception was thrown from the Python worker:\nTraceback (most recent call last):\n"
        '  File "x.py", line 1\nskylog.bulk.rows_columns.BadRows: column key is int\n'
        "\n\tat org.apache.spark.SparkException: no\n"
    )
    assert str(told(Exception(text))) == "column key is int"
    java = "An error occurred while calling o1.load.\n: org.apache.X: [BAD] it is\n\tat y"
    assert str(told(Exception(java))) == "[BAD] it is"
    assert str(told(Exception("[UNKNOWN] column\nmore"))) == "[UNKNOWN] column"
