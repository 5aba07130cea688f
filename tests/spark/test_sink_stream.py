"""Streaming writes: every epoch once, whatever is replayed or killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from skylog.bulk.epoch import Step
from skylog.testing import Broker
from tests.spark.support import Topics

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
SECONDS_MAX = 300
LINES = 20
pytestmark = pytest.mark.timeout(2 * SECONDS_MAX)


def write_file(directory: Path, epoch: int) -> None:
    """The input of one epoch; files are read in the order of their times."""
    directory.mkdir(exist_ok=True)
    hidden = directory / f".{epoch}"
    hidden.write_text("".join(f"{epoch}/{line}\n" for line in range(LINES)))
    os.utime(hidden, (1_700_000_000 + epoch, 1_700_000_000 + epoch))
    hidden.rename(directory / f"{epoch:03d}.txt")


def expected(epochs: int) -> Counter[bytes]:
    return Counter(b"%d/%d" % (epoch, line) for epoch in range(epochs) for line in range(LINES))


def values(topics: Topics, topic: str) -> Counter[bytes | None]:
    return Counter(row.value for row in topics.rows(topic, 2))


@pytest.fixture
def run(spark: SparkSession, broker: Broker, tmp_path: Path) -> Iterator[Callable[..., None]]:
    """Writes the directory to a topic, from the checkpoint on, and stops."""

    def work(topic: str | None, checkpoint: str = "checkpoint", **options: Any) -> None:
        given = {"kafka.bootstrap.servers": broker.bootstrap, **options}
        if topic:
            given["topic"] = topic
        lines = spark.readStream.option("maxFilesPerTrigger", 1).text(str(tmp_path / "input"))
        query = (
            lines.writeStream.format("skylog")
            .options(**given, checkpointLocation=str(tmp_path / checkpoint))
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(SECONDS_MAX)

    yield work
    for query in spark.streams.active:
        query.stop()


def uncommit(checkpoint: Path, epoch: int) -> None:
    """Remove Spark's commits of an epoch and later ones; their offsets stay."""
    for path in (checkpoint / "commits").iterdir():
        name = path.name.strip(".").partition(".")[0]
        if name.isdigit() and int(name) >= epoch:
            path.unlink()
    for path in (checkpoint / "offsets").iterdir():
        name = path.name.strip(".").partition(".")[0]
        if name.isdigit() and int(name) > epoch:
            path.unlink()


def test_epochs_and_restarts(run: Callable[..., None], topics: Topics, tmp_path: Path) -> None:
    topic = topics.create("stream", 2)
    for epoch in range(3):
        write_file(tmp_path / "input", epoch)
    run(topic, compression="zstd")
    assert values(topics, topic) == expected(3)
    for epoch in range(3, 5):
        write_file(tmp_path / "input", epoch)
        run(topic)
    assert values(topics, topic) == expected(5)


def test_replayed_epochs_are_not_written_again(
    run: Callable[..., None], topics: Topics, tmp_path: Path
) -> None:
    topic = topics.create("stream-replayed", 2)
    for epoch in range(3):
        write_file(tmp_path / "input", epoch)
    run(topic)
    for epoch in (2, 1, 0):
        uncommit(tmp_path / "checkpoint", epoch)
        run(topic)
        assert values(topics, topic) == expected(3)


def test_another_checkpoint_is_another_query(
    run: Callable[..., None], topics: Topics, tmp_path: Path
) -> None:
    topic = topics.create("stream-twice", 2)
    write_file(tmp_path / "input", 0)
    run(topic)
    run(topic, "another")
    assert set(values(topics, topic).values()) == {2}


def test_classic_topics_are_written_through_the_brokers(
    run: Callable[..., None], topics: Topics, tmp_path: Path
) -> None:
    topic = topics.create("stream-classic", 2, diskless=False)
    for epoch in range(2):
        write_file(tmp_path / "input", epoch)
    run(topic)
    assert values(topics, topic) == expected(2)


@pytest.mark.parametrize(
    ("topic", "options", "what"),
    [
        ("nowhere", {}, "topic nowhere does not exist"),
        (None, {}, "neither a column topic nor the option topic"),
        ("t", {"writeId": "x"}, "writeId is allowed in batch writes only"),
    ],
)
def test_bad_input_is_named(
    run: Callable[..., None],
    tmp_path: Path,
    topic: str | None,
    options: dict[str, str],
    what: str,
) -> None:
    write_file(tmp_path / "input", 0)
    with pytest.raises(Exception, match=what):
        run(topic, **options)


# Drivers that are killed ----------------------------------------------------------------------

STEPS = [
    "TASK",
    *(
        step.name
        for step in (
            Step.PIN, Step.CLAIM, Step.LOOK, Step.COMMIT, Step.MARK_DONE, Step.RELEASE, Step.SWEEP,
            Step.FINISHED,
        )
    ),
]  # fmt: skip


def die(kind: str, bootstrap: str, topic: str, tmp_path: Path, step: str) -> None:
    """Run a driver until it kills itself with SIGKILL before a step of epoch 1."""
    epoch = "1" if kind == "stream" else "0"
    command = [
        sys.executable, str(HERE / "sink_driver.py"), kind, bootstrap, topic,
        str(tmp_path / "input"), str(tmp_path / "checkpoint"), step, epoch,
    ]  # fmt: skip
    process = subprocess.Popen(
        command,
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        said, _ = process.communicate(timeout=SECONDS_MAX)
        assert process.returncode == -signal.SIGKILL, said.decode(errors="replace")[-3000:]
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)


@pytest.mark.parametrize("step", STEPS)
def test_a_killed_driver_leaves_each_row_once(
    run: Callable[..., None], broker: Broker, topics: Topics, tmp_path: Path, step: str
) -> None:
    topic = topics.create(f"stream-killed-{step}", 2)
    for epoch in range(3):
        write_file(tmp_path / "input", epoch)
    die("stream", broker.bootstrap, topic, tmp_path, step)
    before = values(topics, topic)
    assert before == expected(2 if step in ("MARK_DONE", "RELEASE", "SWEEP", "FINISHED") else 1)
    run(topic)
    assert values(topics, topic) == expected(3)


def test_a_batch_of_a_killed_driver_is_completed_by_its_name(
    spark: SparkSession, broker: Broker, topics: Topics, tmp_path: Path
) -> None:
    topic = topics.create("batch-killed", 2)
    for epoch in range(2):
        write_file(tmp_path / "input", epoch)
    (tmp_path / "checkpoint").mkdir()
    die("batch", broker.bootstrap, topic, tmp_path, "COMMIT")
    assert not values(topics, topic)
    for _ in range(2):
        spark.read.text(str(tmp_path / "input")).write.format("skylog").options(
            **{"kafka.bootstrap.servers": broker.bootstrap, "topic": topic, "writeId": "once"}
        ).mode("append").save()
        assert values(topics, topic) == expected(2)
