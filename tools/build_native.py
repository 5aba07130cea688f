"""Compile each C source next to itself; without a compiler, say so and succeed.

skylog works without them: for every library there is Python that does the same, more slowly.
"""

from __future__ import annotations

import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "src" / "skylog"
FLAGS = ("-std=c11", "-O2", "-shared", "-fPIC", "-fvisibility=hidden", "-Wall", "-Wextra")


def sources() -> list[Path]:
    """Every C file of the package; ``columns.c`` becomes ``_columns.so``."""
    return sorted(PACKAGE.rglob("*.c"))


def compilers() -> list[list[str]]:
    """The commands to try, best first."""
    found = [shlex.split(os.environ["CC"])] if os.environ.get("CC") else []
    found += [[name] for name in ("cc", "gcc", "clang") if shutil.which(name)]
    if importlib.util.find_spec("ziglang") is not None:
        found.append([sys.executable, "-m", "ziglang", "cc"])
    return found


def build(source: Path, target: Path) -> str | None:
    """Compile ``source`` with the first compiler that can; what was wrong if none could."""
    troubles = []
    for compiler in compilers():
        # Compiled aside and renamed, so that a running broker keeps the library it has mapped.
        with tempfile.TemporaryDirectory(dir=target.parent) as folder:
            built = Path(folder) / target.name
            try:
                subprocess.run(
                    [*compiler, *FLAGS, "-I", str(PACKAGE), "-o", str(built), str(source)],
                    check=True,
                    capture_output=True,
                    text=True,
                )
            except (OSError, subprocess.CalledProcessError) as error:
                said = (getattr(error, "stderr", None) or str(error)).strip()
                troubles.append(f"{shlex.join(compiler)}: {said}")
                continue
            built.replace(target)
            return None
    return "\n".join(troubles) or "no C compiler found (set CC, or install gcc, clang or ziglang)"


def main() -> int:
    for source in sources():
        target = source.with_name(f"_{source.stem}.so")
        trouble = build(source, target)
        if trouble is None:
            print(f"built {target.name}")
        else:
            # A stale library would be worse than none: it could disagree with the source.
            target.unlink(missing_ok=True)
            print(f"{source.name} not compiled, Python will do its work: {trouble}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
