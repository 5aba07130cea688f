"""What pyproject.toml cannot say: how the extension modules in C are built.

Each is optional. Without a C compiler or Python's headers the installation goes on and Python does
the same work, more slowly (``skylog.kernel.native``).
"""

from __future__ import annotations

import importlib.util
import os
import shlex
import shutil
import sys
import sysconfig
import tempfile
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

PACKAGE = Path("src", "skylog")
SOURCES = sorted(PACKAGE.rglob("*.c"))
HEADERS = sorted(map(str, PACKAGE.rglob("*.h")))
WARNINGS = ("-Wall", "-Wextra")
COMPILE = ("-std=c11", "-O2", "-g0", "-fPIC", "-fvisibility=hidden")
# Each is left out where the compiler does not know it.
HARDEN_COMPILE = (
    "-fstack-protector-strong",
    "-fstack-clash-protection",
    "-fcf-protection",
    "-U_FORTIFY_SOURCE",
    "-D_FORTIFY_SOURCE=2",
)
HARDEN_LINK = ("-Wl,-z,relro", "-Wl,-z,now", "-Wl,-z,noexecstack")
# Python 3.11's stable ABI; builds of Python without the GIL have none yet.
STABLE_ABI = not sysconfig.get_config_var("Py_GIL_DISABLED")


def extension(source: Path) -> Extension:
    """``src/skylog/wire/walker.c`` becomes ``skylog.wire._walker``."""
    folder = source.parent.relative_to("src")
    return Extension(
        ".".join((*folder.parts, f"_{source.stem}")),
        sources=[str(source)],
        depends=HEADERS,
        include_dirs=[str(PACKAGE)],
        py_limited_api=STABLE_ABI,
        optional=True,
    )


def compiler() -> list[str]:
    """``$CC``, else what there is; else the compiler that ``pip install ziglang`` brings."""
    if os.environ.get("CC"):
        return shlex.split(os.environ["CC"])
    for name in ("cc", "gcc", "clang"):
        if shutil.which(name):
            return [name]
    if importlib.util.find_spec("ziglang"):
        return [sys.executable, "-m", "ziglang", "cc"]
    return ["cc"]


class BuildNative(build_ext):
    """Our flags instead of those that Python was built with: they may name folders of its builder,
    and know nothing of ``ziglang``."""

    def run(self) -> None:
        if self.inplace:
            # A stale module would be worse than none: it could disagree with its source.
            for source in SOURCES:
                for stale in source.parent.glob(f"_{source.stem}*.so"):
                    stale.unlink()
        super().run()

    def build_extensions(self) -> None:
        if sys.platform == "linux":
            command = compiler()
            flags = [*COMPILE, *WARNINGS, *shlex.split(os.environ.get("CFLAGS", ""))]
            linking = shlex.split(os.environ.get("LDFLAGS", ""))
            self.compiler.set_executables(
                compiler_so=[*command, *flags, *self.known(command, HARDEN_COMPILE)],
                linker_so=[*command, "-shared", *linking, *self.known(command, HARDEN_LINK)],
            )
        super().build_extensions()

    def known(self, command: list[str], flags: tuple[str, ...]) -> list[str]:
        """Those of ``flags`` that the compiler takes."""
        return [flag for flag in flags if self.takes(command, flag)]

    def takes(self, command: list[str], flag: str) -> bool:
        with tempfile.TemporaryDirectory() as folder:
            source = Path(folder, "empty.c")
            source.write_text("int empty;\n")
            parts = ["-O2", "-Werror", "-shared", "-fPIC", flag, str(source)]
            try:
                self.spawn([*command, *parts, "-o", str(source.with_suffix(".so"))])
            except Exception:  # noqa: BLE001 - whatever it is, the flag is of no use
                return False
        return True


setup(
    ext_modules=[extension(source) for source in SOURCES],
    cmdclass={"build_ext": BuildNative},
    options={"bdist_wheel": {"py_limited_api": "cp311"}} if STABLE_ABI else {},
)
