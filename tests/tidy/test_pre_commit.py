"""The pre-commit hooks are the checks of the lint step."""

from __future__ import annotations

import re
from pathlib import Path

from strictyaml.ruamel.main import safe_load

ROOT = Path(__file__).resolve().parents[2]


def test_the_hooks_are_the_lint_step() -> None:
    (repository,) = safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    assert repository["repo"] == "local", "hooks download nothing"
    hooks = repository["hooks"]
    assert {hook["language"] for hook in hooks} == {"system"}
    assert not any(hook["pass_filenames"] for hook in hooks)
    step = re.search(r"^lint:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert step is not None
    commands = [line.strip() for line in step[1].splitlines()]
    assert [hook["entry"].replace(".venv/bin", "$(BIN)") for hook in hooks] == commands
