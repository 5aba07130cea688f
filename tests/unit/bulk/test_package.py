"""``import skylog`` stays cheap, and names pyarrow if it is missing."""

from __future__ import annotations

import subprocess
import sys

import pytest

import skylog


def run(program: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False
    )
    return done.stdout + done.stderr


def test_arrow_is_loaded_only_when_it_is_used() -> None:
    heavy = "[name for name in ('pyarrow', 'numpy', 'pandas', 'asyncio') if name in sys.modules]"
    assert run(f"import sys, skylog; print({heavy})") == "[]\n"


def test_reading_does_not_load_pandas() -> None:
    """Some of Arrow's functions do, which takes as long as reading a hundred megabytes."""
    program = (
        "import sys\n"
        "from skylog.bulk.decode import COLUMNS, EncodedBatch, decode\n"
        "from skylog.wire.records import encode_batch\n"
        "data = encode_batch([(b'k', b'v')] * 3, timestamp=1)\n"
        "rows = decode([EncodedBatch(data, 0, 2)], topic='t', partition=1, columns=COLUMNS,"
        " start_offset=0, end_offset=9)\n"
        "print(rows.num_rows, 'pandas' in sys.modules)\n"
    )
    assert run(program) == "3 False\n"


def test_options_are_read_without_arrow() -> None:
    """Spark asks for a schema in a separate process."""
    pytest.importorskip("pyspark")
    program = "import sys, skylog.spark.options; print('pyarrow' in sys.modules)"
    assert run(program) == "False\n"


def test_without_arrow_the_error_says_what_to_install() -> None:
    said = run("import sys; sys.modules['pyarrow'] = None; import skylog; skylog.read('t')")
    assert "skylog.read needs pyarrow: pip install 'skylog[frames]'" in said


def test_other_names_are_not_there() -> None:
    with pytest.raises(AttributeError, match="no attribute 'write_all'"):
        _ = skylog.write_all
