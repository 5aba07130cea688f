"""Tables have every record once, before whatever step their writer is killed."""

from __future__ import annotations

import multiprocessing
import signal
from collections import Counter
from pathlib import Path

import pyarrow.dataset as ds
import pytest

from skylog.kernel.errors import ConfigError
from skylog.spark.jobs.table.iceberg import CatalogOptions
from tests.unit.spark.table_writes import PARTITIONS, RECORDS, STEPS, target, write

ALL = [(form, step) for form, steps in STEPS.items() for step in steps]
SECONDS_MAX = 100
Found = Counter[tuple[int, int]]


@pytest.fixture(scope="module")
def processes() -> multiprocessing.context.ForkServerContext:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.unit.spark.table_writes"])
    return context


def killed(
    processes: multiprocessing.context.ForkServerContext, form: str, to: Path, step: str, times: int
) -> None:
    process = processes.Process(target=write, args=(form, str(to), step, times))
    process.start()
    process.join(SECONDS_MAX)
    assert process.exitcode == -signal.SIGKILL


def rows(form: str, to: Path) -> tuple[Found, Found]:
    """(partition, offset) of good and of bad rows."""
    if form == "parquet":
        good = ds.dataset(sorted(map(str, (to / "t").glob("*.parquet")))).to_table()
        bad = ds.dataset(sorted(map(str, (to / "t_bad").glob("*.parquet")))).to_table()
    else:
        catalog = CatalogOptions().open(str(to))
        good = catalog.load_table("default.t").scan().to_arrow()
        bad = catalog.load_table("default.t_bad").scan().to_arrow()
    return (
        Counter((row["_partition"], row["_offset"]) for row in good.to_pylist()),
        Counter((row["partition"], row["offset"]) for row in bad.to_pylist()),
    )


def check(form: str, to: Path) -> None:
    good, bad = rows(form, to)
    every = [(index, offset) for index in range(PARTITIONS) for offset in range(RECORDS)]
    assert good == Counter(one for one in every if one[1] % 7)
    assert bad == Counter(one for one in every if not one[1] % 7)


@pytest.mark.parametrize(("form", "step"), ALL)
def test_killed_before_each_step(
    processes: multiprocessing.context.ForkServerContext, tmp_path: Path, form: str, step: str
) -> None:
    killed(processes, form, tmp_path, step, 1)
    if step != "create":
        killed(processes, form, tmp_path, step, 2)
    write(form, str(tmp_path))
    check(form, tmp_path)
    if form == "iceberg":
        # Temporary files of killed runs are deleted.
        chunks = [path.name for path in (tmp_path / "default" / "t" / "data").iterdir()]
        assert len(chunks) == len({name.rpartition("-")[0] for name in chunks})
    write(form, str(tmp_path))
    check(form, tmp_path)


def test_valid_files_that_were_removed_are_created_again(
    processes: multiprocessing.context.ForkServerContext, tmp_path: Path
) -> None:
    killed(processes, "iceberg", tmp_path, "good", 2)
    chunk = max((tmp_path / "default" / "t" / "data").iterdir())
    for file in chunk.iterdir():
        file.unlink()
    write("iceberg", str(tmp_path))
    check("iceberg", tmp_path)


def test_two_runs_do_not_mix(tmp_path: Path) -> None:
    for form in STEPS:
        write(form, str(tmp_path / form))
        first = target(form, str(tmp_path / form), lambda step: None)
        second = target(form, str(tmp_path / form), lambda step: None)
        initial = None
        with (
            first.opened(initial),  # type: ignore[arg-type]
            pytest.raises(ConfigError, match="in use by another run"),
            second.opened(initial),  # type: ignore[arg-type]
        ):
            pass
