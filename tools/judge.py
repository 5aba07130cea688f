"""Run a client's own integration suite against a skylog, and compare with what is expected.

    python tools/judge.py franz-go|kafka-python

The suite comes with the client's package, in the version that the tests of real clients use. What
is expected to fail stands in tests/judges/expected-<client>.txt, a test in each line with the
reason after a #. Anything else that fails is an error, and so is a test of the list that passes or
is gone: the list only gets shorter.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Mapping
from importlib.metadata import version
from pathlib import Path

from skylog.testing import Broker

ROOT = Path(__file__).parent.parent
CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "skylog"
SUITE_SECONDS_MAX = 1200
# What the suites take for granted of the broker that they are given.
SETTINGS = {
    "node.id": "0",
    "num.partitions": "4",
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
    "log.level": "WARN",
}

# The records that go through each chain of franz-go's groups and transactions; its own default of
# 500,000 is for a cluster on a large machine.
FRANZ_GO = {
    "KGO_TEST_RF": "1",
    "KGO_TEST_RECORDS": "20000",
    "KGO_TEST_MAX_TOPIC_PARTS": "8",
    "KGO_LOG_LEVEL": "none",
}
# The source archive of kafka-python leaves out a module of its tests; this is what they need of it
# when the broker runs already.
SERVICE = """
SpawnedService = None


class ExternalService:
    def __init__(self, host, port):
        pass

    def stop(self):
        pass
"""
PYTEST_RESULT = re.compile(r"^(PASSED|FAILED|ERROR) (\S+::\S+)", re.M)
PYTEST_SKIPPED = re.compile(r"^SKIPPED \[\d+\] (\S+):", re.M)
GO_RESULT = re.compile(r"^\s*--- (PASS|FAIL|SKIP): (\S+) \(", re.M)


def expected_failures(text: str) -> dict[str, str]:
    """Tests that may fail, and why. A line without a reason is refused."""
    found = {}
    for number, line in enumerate(text.splitlines(), 1):
        name, _, reason = (part.strip() for part in line.partition("#"))
        if name and not reason:
            raise ValueError(f"line {number}: {name} has no reason (name # reason)")
        if name:
            found[name] = reason
    return found


def complaints(results: Mapping[str, str], expected: Mapping[str, str], code: int) -> list[str]:
    """What is not as expected, given each test's PASS, FAIL or SKIP and the suite's exit code."""
    failed = {name for name, result in results.items() if result == "FAIL"}
    # A test fails with its subtests; the list names the innermost.
    outer = {name for name in failed if any(other.startswith(f"{name}/") for other in failed)}
    found = [f"{name} failed" for name in sorted(failed - outer - expected.keys())]
    for name in sorted(expected.keys() - failed):
        what = "passed" if results.get(name) == "PASS" else "did not run"
        found.append(f"{name} {what}: take it off the list")
    if not results:
        found.append("no test ran")
    if code != 0 and not failed:
        found.append(f"the suite ended with {code}, and no test failed")
    return found


def franz_go(bootstrap: str) -> tuple[str, int]:
    """The output of the tests in franz-go's kgo, and their exit code."""
    fetched = sorted(CACHE.glob("go-*/bin/go"))
    go = str(fetched[-1]) if fetched else "go"
    pinned = ROOT / "tests" / "interop" / "go"
    module = "github.com/twmb/franz-go"
    subprocess.run([go, "mod", "download", module], cwd=pinned, check=True)
    where = [go, "list", "-m", "-f", "{{.Dir}}", module]
    source = subprocess.run(where, cwd=pinned, check=True, capture_output=True, text=True).stdout
    with tempfile.TemporaryDirectory() as directory:
        program = str(Path(directory) / "kgo.test")
        suite = Path(source.strip()) / "pkg" / "kgo"
        subprocess.run([go, "test", "-c", "-o", program, "."], cwd=suite, check=True)
        ran = subprocess.run(
            [program, "-test.v", f"-test.timeout={SUITE_SECONDS_MAX}s"],
            cwd=suite,
            env={**os.environ, **FRANZ_GO, "KGO_SEEDS": bootstrap},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            check=False,
        )
    return ran.stdout, ran.returncode


def go_results(output: str) -> dict[str, str]:
    return {name: result for result, name in GO_RESULT.findall(output)}


def kafka_python(bootstrap: str) -> tuple[str, int]:
    """The output of the integration tests in kafka-python's source archive, and their exit code."""
    package = f"kafka-python=={version('kafka-python')}"
    with tempfile.TemporaryDirectory() as directory:
        fetch = ["pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:", package]
        subprocess.run([sys.executable, "-m", *fetch], cwd=directory, check=True)
        [archive] = Path(directory).glob("*.tar.gz")
        with tarfile.open(archive) as packed:
            packed.extractall(directory, filter="data")
        source = Path(directory) / archive.name.removesuffix(".tar.gz")
        (source / "test" / "__init__.py").touch()
        (source / "test" / "service.py").write_text(SERVICE)
        given = {
            "KAFKA_URI": f"kafka://{bootstrap}",
            "KAFKA_VERSION": "4.3.0",
            "KAFKA_ROOT": directory,
            "PYTHONPATH": str(source),
        }
        off = [part for plugin in ("randomly", "asyncio") for part in ("-p", f"no:{plugin}")]
        suite = ["pytest", *off, "-rA", "--tb=short", "--timeout=120", "--timeout-method=signal"]
        own_broker = ["--ignore", "test/integration/test_ssl_integration.py"]
        ran = subprocess.run(
            [sys.executable, "-m", *suite, "--show-capture=no", *own_broker, "test/integration"],
            cwd=source,
            env={**os.environ, **given},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            check=False,
            timeout=SUITE_SECONDS_MAX,
        )
    return ran.stdout, ran.returncode


def pytest_results(output: str) -> dict[str, str]:
    kinds = {"PASSED": "PASS", "FAILED": "FAIL", "ERROR": "FAIL"}
    found = {name: kinds[result] for result, name in PYTEST_RESULT.findall(output)}
    return found | dict.fromkeys(PYTEST_SKIPPED.findall(output), "SKIP")


Suite = Callable[[str], tuple[str, int]]
JUDGES: dict[str, tuple[Suite, Callable[[str], dict[str, str]]]] = {
    "franz-go": (franz_go, go_results),
    "kafka-python": (kafka_python, pytest_results),
}


def main() -> None:
    if len(sys.argv) != 2 or sys.argv[1] not in JUDGES:
        sys.exit(f"usage: judge.py {'|'.join(JUDGES)}")
    client = sys.argv[1]
    kept = ROOT / "tests" / "judges" / f"expected-{client}.txt"
    expected = expected_failures(kept.read_text())
    run, parse = JUDGES[client]
    with Broker(SETTINGS) as broker:
        output, code = run(broker.bootstrap)
    results = parse(output)
    found = complaints(results, expected, code)
    if found:
        print(output)
    count = {kind: list(results.values()).count(kind) for kind in ("PASS", "FAIL", "SKIP")}
    print(f"{client}: {count['PASS']} passed, {count['FAIL']} failed, {count['SKIP']} skipped")
    sys.exit("\n".join(found) if found else 0)


if __name__ == "__main__":
    main()
