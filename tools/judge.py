"""Run a client's integration suite against skylog, and compare the results with the expected ones.

    python tools/judge.py franz-go|kafka-python|librdkafka

The suite comes from the client's package, in the version that the interop tests pin, if they do.
Expected failures are listed in tests/judges/expected-<client>.txt, one test in each line with the
reason after a #. Any other failure is an error, and so is a listed test that passes or no longer
exists: the list only gets shorter.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path

from skylog.testing import Broker, Cluster

ROOT = Path(__file__).parent.parent
CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "skylog"
SUITE_SECONDS_MAX = 1200
# Settings that the suites expect of a broker.
SETTINGS = {
    "node.id": "0",
    "num.partitions": "4",
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
    "log.level": "WARN",
}

# Records for each chain of franz-go's groups and transactions; its default of 500,000 is for a
# cluster on a large machine.
FRANZ_GO = {
    "KGO_TEST_RF": "1",
    "KGO_TEST_RECORDS": "20000",
    "KGO_TEST_MAX_TOPIC_PARTS": "8",
    "KGO_LOG_LEVEL": "none",
}
# The source archive of kafka-python lacks a module of its tests; they need only this of it when the
# broker is already running.
SERVICE = """
SpawnedService = None


class ExternalService:
    def __init__(self, host, port):
        pass

    def stop(self):
        pass
"""
# For a test of librdkafka with all its subtests; the runner's own limits are shorter.
LIBRDKAFKA_SECONDS_MAX = 1200
# Tests that run at once: they mostly wait.
LIBRDKAFKA_AT_ONCE = 4
# The settings that librdkafka's scripts give to brokers, and Kafka's defaults: some tests count the
# rebalances of members that join together.
LIBRDKAFKA_CLUSTER = {
    "group.initial.rebalance.delay.ms": "3000",
    "broker.heartbeat.interval.ms": "2000",
    "broker.session.timeout.ms": "9000",
    "num.partitions": "4",
    "default.replication.factor": "3",
    "replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector",
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
    "log.level": "WARN",
}
PYTEST_RESULT = re.compile(r"^(PASSED|FAILED|ERROR) (\S+::\S+)", re.M)
PYTEST_SKIPPED = re.compile(r"^SKIPPED \[\d+\] (\S+):", re.M)
GO_RESULT = re.compile(r"^\s*--- (PASS|FAIL|SKIP): (\S+) \(", re.M)
LIBRDKAFKA_RESULT = re.compile(r"^=== (PASS|FAIL|SKIP) (\S+)", re.M)


def expected_failures(text: str) -> dict[str, str]:
    """Tests that may fail, and why. A line without a reason is an error."""
    found = {}
    for number, line in enumerate(text.splitlines(), 1):
        name, _, reason = (part.strip() for part in line.partition("#"))
        if name and not reason:
            raise ValueError(f"line {number}: {name} has no reason (name # reason)")
        if name:
            found[name] = reason
    return found


def complaints(results: Mapping[str, str], expected: Mapping[str, str], code: int) -> list[str]:
    """Differences from what is expected, by each test's PASS, FAIL or SKIP and the suite's exit
    code."""
    failed = {name for name, result in results.items() if result == "FAIL"}
    # A test fails if a subtest does; the list names the innermost.
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
    """Run the tests of franz-go's kgo; returns their output and exit code."""
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
    """Run the integration tests of kafka-python's source archive; returns their output and exit
    code."""
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


@dataclass(frozen=True)
class Round:
    """One run of librdkafka's tests: which tests, on which cluster, with which settings."""

    prefix: str
    arguments: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)
    only: tuple[str, ...] = ()
    whose_source_has: str = ""

    def numbers(self, tests: Path) -> list[str]:
        """Numbers of the tests; names tell which tests bring their own brokers.

        The longest sources come first: they take longest, and the run should not end with them.
        """
        sources = {path: path.read_text() for path in tests.glob("0*-*.c*")}
        has = re.compile(self.whose_source_has)
        found = [
            path.name[:4]
            for path, source in sorted(sources.items(), key=lambda each: -len(each[1]))
            if "mock" not in path.name and has.search(source)
        ]
        return [number for number in dict.fromkeys(found) if number in (self.only or found)]


ROUNDS = (
    Round(""),
    Round(
        "consumer:",
        environment={"TEST_CONSUMER_GROUP_PROTOCOL": "consumer"},
        whose_source_has="subscribe|group_protocol",
    ),
    Round(
        "noautocreate:",
        arguments=("-s", "noautocreate"),
        settings={"auto.create.topics.enable": "false"},
        only=("0045", "0107", "0111"),
    ),
)


def librdkafka() -> tuple[str, int]:
    """Run librdkafka's tests that need no control over brokers and sockets; returns their
    output."""
    suites = sorted(CACHE.glob("librdkafka-tests-*/.complete"))
    if not suites:
        sys.exit("librdkafka's tests are not built: tools/interop_setup.sh librdkafka")
    suite = suites[-1].parent
    output = [text for each in ROUNDS for text in librdkafka_round(suite, each)]
    return "\n".join(output), 0


def librdkafka_round(suite: Path, each: Round) -> list[str]:
    with (
        tempfile.TemporaryDirectory() as directory,
        Cluster(
            racks=("RACK1", "RACK2", "RACK3"), settings={**LIBRDKAFKA_CLUSTER, **each.settings}
        ) as c,
        ThreadPoolExecutor(LIBRDKAFKA_AT_ONCE) as at_once,
    ):
        given = Path(directory) / "test.conf"
        given.write_text(
            f"bootstrap.servers={c.bootstrap}\n"
            "broker.address.family=v4\n"
            "test.timeout.multiplier=3\n"
        )
        environment = {
            **os.environ,
            **each.environment,
            "BROKERS": c.bootstrap,
            "KAFKA_PATH": str(suite / "kafka"),
            "LD_LIBRARY_PATH": "../src:../src-cpp",
            "RDKAFKA_TEST_CONF": str(given),
            "TEST_KAFKA_VERSION": "4.3.1",
        }

        def run(number: str) -> str:
            report = Path(directory) / f"{number}.json"
            # Without tests of the library alone, of network partitions, and of known issues.
            command = ["./test-runner", "-p1", "-L", "-E", "-K", *each.arguments, number]
            said, code = librdkafka_test(command, suite / "tests", environment, report)
            found = librdkafka_report(number, report.read_text() if report.exists() else "", code)
            results = [f"=== {result} {each.prefix}{name}" for name, result in found.items()]
            return "\n".join([said, *results] if "FAIL" in found.values() else results)

        return list(at_once.map(run, each.numbers(suite / "tests")))


def librdkafka_test(
    command: list[str], directory: Path, environment: Mapping[str, str], report: Path
) -> tuple[str, int]:
    """The output of the test, and its exit code. A test that hangs is killed with its process
    group."""
    try:
        ran = subprocess.run(
            command,
            cwd=directory,
            env={**environment, "TEST_REPORT": str(report)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
            timeout=LIBRDKAFKA_SECONDS_MAX,
        )
    except subprocess.TimeoutExpired as hung:
        return f"{(hung.stdout or b'').decode(errors='replace')}\n{command[-1]} did not end", 1
    return ran.stdout.decode(errors="replace"), ran.returncode


def librdkafka_report(number: str, report: str, code: int) -> dict[str, str]:
    """Results from the report of a test's process; a process that was cut short counts as a
    failure."""
    kinds = {"PASSED": "PASS", "SKIPPED": "SKIP"}
    tests = json.loads(report)["tests"] if report else {}
    found = {
        name: kinds.get(test["state"], "FAIL")
        for name, test in tests.items()
        if name.startswith(f"{number}_")
    }
    if code != 0 and "FAIL" not in found.values():
        found[number] = "FAIL"
    return found


def librdkafka_results(output: str) -> dict[str, str]:
    return {name: result for result, name in LIBRDKAFKA_RESULT.findall(output)}


def with_broker(run: Callable[[str], tuple[str, int]]) -> Callable[[], tuple[str, int]]:
    def start() -> tuple[str, int]:
        with Broker(SETTINGS) as broker:
            return run(broker.bootstrap)

    return start


Suite = Callable[[], tuple[str, int]]
JUDGES: dict[str, tuple[Suite, Callable[[str], dict[str, str]]]] = {
    "franz-go": (with_broker(franz_go), go_results),
    "kafka-python": (with_broker(kafka_python), pytest_results),
    "librdkafka": (librdkafka, librdkafka_results),
}


def main() -> None:
    if len(sys.argv) != 2 or sys.argv[1] not in JUDGES:
        sys.exit(f"usage: judge.py {'|'.join(JUDGES)}")
    client = sys.argv[1]
    kept = ROOT / "tests" / "judges" / f"expected-{client}.txt"
    expected = expected_failures(kept.read_text())
    run, parse = JUDGES[client]
    output, code = run()
    results = parse(output)
    found = complaints(results, expected, code)
    if found:
        print(output)
    count = {kind: list(results.values()).count(kind) for kind in ("PASS", "FAIL", "SKIP")}
    print(f"{client}: {count['PASS']} passed, {count['FAIL']} failed, {count['SKIP']} skipped")
    sys.exit("\n".join(found) if found else 0)


if __name__ == "__main__":
    main()
