"""docs/requirements.md: every requirement of the specification, its check, and the tests for it.

A test names its requirement in a comment: ``# ENG-19``; ``# ENG-19 partly`` if it covers only a
part of the check.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "docs" / "requirements.json"
_MARK = re.compile(r"#\s*((?:ENG|DC|MRF|MIG)-\d+.*)$")
_ID = re.compile(r"((?:ENG|DC|MRF|MIG)-\d+)(\s+partly)?")
_TEST = re.compile(r"\s*(?:async )?def (test_\w+)")
TITLES = {
    "ENG": "Diskless engine",
    "DC": "Diskless coordinator",
    "MRF": "Managed replication factor",
    "MIG": "Tiered to diskless migration",
}


def marks() -> dict[str, dict[str, bool]]:
    """Requirement → test → whether it covers only a part of the check."""
    found: dict[str, dict[str, bool]] = defaultdict(dict)
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        test = ""
        for line in path.read_text().splitlines():
            named = _TEST.match(line)
            if named:
                test = named[1]
            marked = _MARK.search(line)
            if marked:
                place = f"{path.relative_to(ROOT)}{'::' + test if test else ''}"
                for identity, partly in _ID.findall(marked[1]):
                    found[identity][place] = bool(partly)
    return found


def requirements_page(generated: str) -> str:
    entries = json.loads(SOURCE.read_text())
    performed = marks()
    lines = [
        *(generated, "", "# Requirements", ""),
        "Each requirement of the specification with its check, and the tests that perform it.",
        "*partly*: the test covers a part of the check. A row without a test is not proven yet.",
    ]
    for prefix, title in TITLES.items():
        own = [entry for entry in entries if entry["id"].startswith(f"{prefix}-")]
        done = sum(1 for entry in own if entry["id"] in performed)
        lines += ["", f"## {title}: {done} of {len(own)}", ""]
        lines += ["| ID | Requirement | Check | Tests |", "|---|---|---|---|"]
        for entry in own:
            tests = [
                f"`{place}`{' *partly*' if partly else ''}"
                for place, partly in performed.get(entry["id"], {}).items()
            ]
            cells = (entry["id"], entry["requirement"], entry["check"], "<br>".join(tests))
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"
