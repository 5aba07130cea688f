"""Write Kafka's verdicts on the cases in tests/golden/records/cases.py, and batches of its own.

Usage: python tools/judge_batches.py <folder of Kafka's jars>
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
GOLDEN = ROOT / "tests" / "golden" / "records"


def run_java(jars: str, program: str, lines: str = "") -> str:
    """Run one of tools/java's programs with Kafka on its class path."""
    source = ROOT / "tools" / "java" / f"{program}.java"
    result = subprocess.run(
        ["java", "-cp", f"{jars}/*", str(source)],
        input=lines,
        check=True,
        capture_output=True,
        text=True,
    )
    return result.stdout


def main() -> int:
    sys.path.insert(0, str(ROOT))
    from tests.golden.records.cases import every_case  # noqa: PLC0415 - needs the path above

    jars = sys.argv[1]
    cases = every_case()
    verdicts = run_java(jars, "JudgeBatches", "".join(case.line() for case in cases)).splitlines()
    rows = [f"{case.name}\t{verdict}\n" for case, verdict in zip(cases, verdicts, strict=True)]
    (GOLDEN / "verdicts.txt").write_text("".join(rows))
    (GOLDEN / "java_batches.txt").write_text(run_java(jars, "WriteBatches"))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
