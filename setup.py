"""The one build step that pyproject.toml cannot say: try to compile the C libraries."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

BUILD_NATIVE = Path(__file__).parent / "tools" / "build_native.py"


class BuildWithNative(build_py):
    """Compile before the files are collected; without a compiler, go on without."""

    def run(self) -> None:
        if BUILD_NATIVE.exists():
            subprocess.run([sys.executable, str(BUILD_NATIVE)], check=True)  # noqa: S603
        super().run()


setup(cmdclass={"build_py": BuildWithNative})
