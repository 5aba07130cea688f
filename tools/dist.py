"""Build the sdist and the wheel of this platform, and try both as a user would.

The wheel is compiled by zig (``pip install ziglang``) for an old glibc, so that its tag does not
depend on the building machine. The packages are checked, then installed into new environments: the
wheel and the sdist without a compiler, and the sdist with one. In each a node starts, a record is
produced and consumed, and the gauge ``skylog_native`` shows what runs in C.
"""

from __future__ import annotations

import os
import platform
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import urllib.request
import venv
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from zipfile import ZipFile

ROOT = Path(__file__).parents[1]
SOURCES = sorted((ROOT / "src").rglob("*.c"))
GLIBC = (2, 17)
MACHINE = platform.machine()
PLATFORM = f"manylinux_{GLIBC[0]}_{GLIBC[1]}_{MACHINE}"
ZIG = [
    *(sys.executable, "-m", "ziglang", "cc"),
    *("-target", f"{MACHINE}-linux-gnu.{GLIBC[0]}.{GLIBC[1]}"),
]
NODE_SETTINGS = {
    "listeners": "PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0",
    "http.listener": "127.0.0.1:0",
    "offsets.topic.num.partitions": "1",
}
COMMAND_SECONDS_MAX = 600
RECORD = "out of a box"


def run(
    command: list[str], environment: Mapping[str, str] | None = None, given: str | None = None
) -> str:
    """Return the command's output; if it fails, print the output and raise."""
    done = subprocess.run(
        command,
        env=environment,
        input=given,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
        timeout=COMMAND_SECONDS_MAX,
    )
    if done.returncode:
        raise SystemExit(f"{shlex.join(command)}\n{done.stdout}")
    return done.stdout


def build(target: Path) -> tuple[Path, Path]:
    """Build the sdist, and the wheel from it."""
    shutil.rmtree(target, ignore_errors=True)
    option = f"--config-setting=--build-option=--plat-name={PLATFORM}"
    environment = {**os.environ, "CC": shlex.join(ZIG), "CFLAGS": "-Werror"}
    run([sys.executable, "-m", "build", "-o", str(target), option, str(ROOT)], environment)
    (sdist,), (wheel,) = target.glob("*.tar.gz"), target.glob("*.whl")
    return sdist, wheel


def check_wheel(wheel: Path) -> None:
    """Its tag names the stable ABI and a glibc that is new enough for it."""
    expect(wheel.name.endswith(f"-cp311-abi3-{PLATFORM}.whl"), f"the tag of {wheel.name}")
    with ZipFile(wheel) as archive:
        names = archive.namelist()
        modules = [name for name in names if name.endswith(".so")]
        expect(len(modules) == len(SOURCES), f"the modules {modules}")
        expect(not any(name.endswith((".c", ".h")) for name in names), "no C sources")
        for name in modules:
            needed = glibc_needed(archive.read(name))
            expect(needed <= GLIBC, f"{name} needs glibc {needed}")
            for folder in {str(ROOT), sys.prefix, sys.base_prefix, str(Path.home())} - {"/"}:
                expect(folder.encode() not in archive.read(name), f"no {folder} in {name}")


def glibc_needed(module: bytes) -> tuple[int, ...]:
    """The latest version of glibc whose symbols it uses, as its string table shows."""
    found = re.findall(rb"\0GLIBC_([0-9.]+)(?=\0)", module)
    return max((tuple(map(int, version.split(b"."))) for version in found), default=(0,))


def expect(fact: bool, what: str) -> None:
    if not fact:
        raise SystemExit(f"expected otherwise: {what}")


def without_compiler() -> dict[str, str]:
    return {**os.environ, "PATH": os.devnull, "CC": "false"}


def with_compiler() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name != "CC"}
    found = any(map(shutil.which, ("cc", "gcc", "clang")))
    return kept if found else {**kept, "CC": shlex.join(ZIG)}


def try_install(package: Path, environment: Mapping[str, str], *, native: bool) -> None:
    """Install it into a new environment and use it; ``native``: all C modules must be there."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        venv.create(home / "venv", with_pip=True)
        bin_ = home / "venv" / "bin"
        pip = [str(bin_ / "python"), "-m", "pip", "install", "--quiet"]
        run([*pip, "--disable-pip-version-check", str(package)], environment)
        skylog = str(bin_ / "skylog")
        version = package.name.removeprefix("skylog-").split("-")[0].removesuffix(".tar.gz")
        expect(f"skylog {version}" in run([skylog, "version"], environment), "the version")
        log = home / "node.log"
        with node(skylog, home / "data", log, environment) as (broker, metrics):
            use = ["--bootstrap", broker]
            run([skylog, "produce", "tried", *use], environment, f"{RECORD}\n")
            read = ["consume", "tried", "--from-beginning", "--max-messages", "1", *use]
            expect(RECORD in run([skylog, *read], environment), "the record")
            with urllib.request.urlopen(metrics, timeout=30) as page:
                shown = page.read().decode()
        values = re.findall(r'^skylog_native\{library="\w+"\} (\S+)$', shown, re.MULTILINE)
        expect(values == [str(float(native))] * len(SOURCES), f"skylog_native is {values}")
        expect(("C modules are missing" in log.read_text()) is not native, log.read_text())
    print(f"{package.name}: installed, {'in C' if native else 'in Python, with a warning'}")


@contextmanager
def node(
    skylog: str, data: Path, log: Path, environment: Mapping[str, str]
) -> Iterator[tuple[str, str]]:
    """Start a node; yields its address and that of its metrics."""
    settings = {**NODE_SETTINGS, "log.dirs": str(data)}
    overrides = [part for pair in settings.items() for part in ("--override", "=".join(pair))]
    with log.open("wb") as errors:
        process = subprocess.Popen(
            [skylog, "server", *overrides],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
    assert process.stdout is not None
    said = ""
    try:
        # The pipe closes when the process ends, so this cannot wait for ever.
        for line in process.stdout:
            said += line
            up = re.search(r"is up at (\S+);.*?(http://\S+/metrics)", said, re.DOTALL)
            if up is not None:
                yield up[1], up[2]
                break
        else:
            raise SystemExit(f"no node: {said}{log.read_text()}")
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)


def main() -> None:
    target = ROOT / "dist"
    sdist, wheel = build(target)
    check_wheel(wheel)
    try_install(wheel, without_compiler(), native=True)
    try_install(sdist, with_compiler(), native=True)
    try_install(sdist, without_compiler(), native=False)
    print(f"{target.name}/{wheel.name}\n{target.name}/{sdist.name}")


if __name__ == "__main__":
    main()
