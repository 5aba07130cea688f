"""Jobs with topics and output in a real S3 server, as users start them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyarrow import fs

from skylog.testing import Broker
from tests.contract.object_servers import BUCKET, versitygw
from tests.spark.support import Message, Topics

pytestmark = [pytest.mark.interop, pytest.mark.timeout(600), pytest.mark.xdist_group("spark")]
ROOT = Path(__file__).parents[2]
RECORDS = 300


class Jobs:
    """``skylog spark``, with a bucket that is configured by environment variables."""

    def __init__(self, bootstrap: str, settings: dict[str, str], folder: Path) -> None:
        self.endpoint = settings["diskless.storage.s3.endpoint"]
        self.folder = folder
        self.settings = settings
        self._environment = {
            **os.environ,
            "SKYLOG_BOOTSTRAP": bootstrap,
            "PYTHONPATH": str(ROOT / "src"),
            **{f"SKYLOG_{name.upper().replace('.', '_')}": text for name, text in settings.items()},
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": "tester",
            "AWS_SECRET_ACCESS_KEY": "testsecret",
            "PYICEBERG_HOME": str(folder),
        }

    def run(self, *arguments: str, code: int = 0) -> str:
        ran = subprocess.run(
            [sys.executable, "-m", "skylog.cli.main", "spark", *arguments],
            env=self._environment,
            capture_output=True,
            timeout=280,
            check=False,
            text=True,
        )
        assert ran.returncode == code, ran.stderr[-3000:]
        return ran.stdout if code == 0 else ran.stderr

    def json(self, *arguments: str) -> Any:
        return json.loads(self.run(*arguments, "--json", "--master", "local[2]"))

    def bucket(self) -> fs.S3FileSystem:
        return fs.S3FileSystem(
            access_key="tester",
            secret_key="testsecret",
            region="us-east-1",
            endpoint_override=self.endpoint,
        )

    def files(self, prefix: str) -> list[str]:
        selector = fs.FileSelector(f"{BUCKET}/{prefix}", recursive=True, allow_not_found=True)
        found = self.bucket().get_file_info(selector)
        return sorted(one.path for one in found if one.type == fs.FileType.File)


@pytest.fixture(scope="module")
def jobs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Jobs]:
    folder = tmp_path_factory.mktemp("bucket")
    with versitygw(folder) as settings, Broker(settings) as broker:
        topics = Topics(broker.bootstrap)
        topics.create("orders", 2)
        for _ in range(3):
            messages = [Message(b'{"id": %d}' % i, b"%d" % i, i % 2) for i in range(RECORDS // 3)]
            topics.produce("orders", messages)
        yield Jobs(broker.bootstrap, settings, folder)


def test_parquet_files_in_a_bucket(jobs: Jobs) -> None:
    to = f"s3://{BUCKET}/out"
    first = jobs.json("table", "orders", "--to", to, "--as", "parquet", "--chunk-records", "100")
    assert (first["good_rows"], first["chunks"]) == (RECORDS, 3)
    again = jobs.json("table", "orders", "--to", to, "--as", "parquet")
    assert again["good_rows"] == 0
    files = [path for path in jobs.files("out/orders") if path.endswith(".parquet")]
    rows = sum(pq.read_table(path, filesystem=jobs.bucket()).num_rows for path in files)
    assert rows == RECORDS
    assert not [path for path in jobs.files("out") if path.endswith(".new")]


def test_an_iceberg_table_of_a_catalogue_that_is_named(jobs: Jobs) -> None:
    """``--catalog`` of PyIceberg's own configuration; its tables are in the bucket."""
    (jobs.folder / ".pyiceberg.yaml").write_text(
        "catalog:\n"
        "  shop:\n"
        "    type: sql\n"
        f"    uri: sqlite:///{jobs.folder}/shop.db\n"
        f"    warehouse: s3://{BUCKET}/warehouse\n"
        f"    s3.endpoint: {jobs.endpoint}\n"
        "    s3.region: us-east-1\n"
        "    s3.access-key-id: tester\n"
        "    s3.secret-access-key: testsecret\n"
    )
    job = ("table", "orders", "--catalog", "shop", "--table", "sales.orders")
    values = ("--values", "json", "--schema", "id bigint")
    done = jobs.json(*job, *values, "--chunk-records", "150")
    assert (done["good_rows"], done["bad_rows"], done["chunks"]) == (RECORDS, 0, 2)
    assert jobs.json(*job, *values)["good_rows"] == 0
    from pyiceberg.catalog.sql import SqlCatalog

    catalog = SqlCatalog(
        "shop",
        uri=f"sqlite:///{jobs.folder}/shop.db",
        **{
            "s3.endpoint": jobs.endpoint,
            "s3.region": "us-east-1",
            "s3.access-key-id": "tester",
            "s3.secret-access-key": "testsecret",
        },
    )
    table = catalog.load_table("sales.orders")
    assert table.location().startswith(f"s3://{BUCKET}/warehouse")
    found = table.scan().to_arrow()
    assert sorted(found["id"].to_pylist()) == sorted(i for i in range(RECORDS // 3) for _ in "123")
    said = jobs.run("table", "orders", "--catalog", "nowhere", "--table", "a.b", code=1)
    assert "--catalog nowhere" in said


def test_segments_audit_and_report_in_a_bucket(jobs: Jobs) -> None:
    done = jobs.json("segments", "orders", "--to", f"s3://{BUCKET}/segments", "--tail")
    assert done["next_offsets"]
    logs = [path for path in jobs.files("segments") if path.endswith(".log")]
    assert len(logs) == done["segments"] >= 2
    found = jobs.json("audit", "--report", f"s3://{BUCKET}/audit")
    assert found["sound"]
    told = json.loads(jobs.bucket().open_input_stream(f"{BUCKET}/audit/audit.json").read())
    assert told["topics"] == found["topics"]
    jobs.json("report", "--to", f"s3://{BUCKET}/report")
    assert {path.rpartition("/")[2] for path in jobs.files("report")} == {
        "report.html",
        "report.json",
    }


def test_a_missing_bucket(jobs: Jobs) -> None:
    said = jobs.run("table", "orders", "--to", "s3://no-such-bucket/x", "--as", "parquet", code=1)
    told = said.splitlines()[-1]
    assert told.startswith("skylog: s3://no-such-bucket/x cannot be written to: ")
