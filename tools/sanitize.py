"""Run every C source under AddressSanitizer and UndefinedBehaviorSanitizer, on damaged input.

``python tools/sanitize.py --seconds 600``; ``--first N --rounds 1`` repeats a round that failed.
Two planted bugs must be found first, or the run would prove nothing. Needs gcc with sanitizers.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import sysconfig
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "skylog"
COMPILER = os.environ.get("CC", "gcc")
FLAGS = (
    *("-std=c11", "-O1", "-g", "-fPIC", "-shared", "-fno-omit-frame-pointer", "-Wall", "-Wextra"),
    *("-Werror", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"),
)
PLANTED = """
#include "kernel/native.h"
static PyObject *py_planted(PyObject *module, PyObject *const *given, Py_ssize_t count) {
    (void)module;
    arguments a;
    if (!take(&a, "rll", given, count)) return NULL;
    long sum = ((const unsigned char *)a.buffers[0].buf)[a.numbers[0]];
    int64_t overflow = a.numbers[1] + INT64_MAX;
    return give_back(&a, PyLong_FromLong(sum + (overflow < 0)));
}
MODULE(_planted, FUNCTION(planted))
"""
# A byte beyond the buffer, and a sum of more than 64 bits.
FOUND = {(0, 0): "", (8, 0): "heap-buffer-overflow", (0, 1): "signed integer overflow"}
FIND = "import _planted, array; _planted.planted(array.array('B', bytes(8))[:], *{})"


def compiled(source: Path, folder: Path) -> None:
    target = folder / f"_{source.stem}.abi3.so"
    include = ["-I", str(PACKAGE), "-I", sysconfig.get_path("include")]
    command = [COMPILER, *FLAGS, *include, str(source), "-o", str(target)]
    try:
        subprocess.run(command, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise SystemExit(f"{COMPILER} with its sanitizers is needed: {error}") from None


def environment(folder: Path) -> dict[str, str]:
    """Python itself is not instrumented, so the libraries are loaded before it. libstdc++ is one
    of them: the sanitizer looks for its functions when it starts."""
    names = ("libasan.so", "libubsan.so", "libstdc++.so.6")
    ask = [COMPILER, "-print-file-name={}"]
    paths = [
        subprocess.run(
            [part.format(name) for part in ask], check=True, capture_output=True, text=True
        ).stdout.strip()
        for name in names
    ]
    return {
        **os.environ,
        "LD_PRELOAD": " ".join(paths),
        "ASAN_OPTIONS": "detect_leaks=0",
        "UBSAN_OPTIONS": "print_stacktrace=1",
        "ARROW_DEFAULT_MEMORY_POOL": "system",
        "PYTHONMALLOC": "malloc",
        "PYTHONPATH": os.pathsep.join((str(folder), str(ROOT), str(ROOT / "src"))),
    }


def check_planted(folder: Path) -> None:
    source = folder / "planted.c"
    source.write_text(PLANTED)
    compiled(source, folder)
    for arguments, found in FOUND.items():
        done = subprocess.run(
            [sys.executable, "-c", FIND.format(arguments)],
            env=environment(folder),
            check=False,
            capture_output=True,
            text=True,
        )
        if found not in done.stderr or bool(done.returncode) is not bool(found):
            raise SystemExit(f"expected a report of {found or 'nothing'}:\n{done.stderr}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--first", type=int, default=time.time_ns() // 1_000_000)
    parser.add_argument("--rounds", type=int, default=sys.maxsize)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder, progress = Path(name), Path(name, "progress")
        check_planted(folder)
        for source in sorted(PACKAGE.rglob("*.c")):
            compiled(source, folder)
        numbers = map(str, (given.first, given.seconds, given.rounds))
        command = [sys.executable, "-m", "tests.sanitize.drive", name, str(progress), *numbers]
        done = subprocess.run(command, cwd=ROOT, env=environment(folder), check=False)
        if done.returncode:
            number = progress.read_text().strip() if progress.exists() else "none"
            raise SystemExit(f"round {number} failed; again: --first {number} --rounds 1")


if __name__ == "__main__":
    main()
