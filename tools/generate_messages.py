"""Generate ``src/skylog/wire/messages`` from Kafka's own JSON schemas.

    python tools/generate_messages.py JSON_DIR [--check]

JSON_DIR holds the ``common/message``, ``common/metadata`` and ``message`` folders of Kafka's jars
(see ``tools/kafka_jars.sh``). Our own schemas are in ``schemas/``.
``--check`` writes nothing and fails when the committed files differ.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "src" / "skylog" / "wire" / "messages"
PRIMITIVES = {
    "bool": ("bool", "False"),
    "int8": ("int", "0"),
    "int16": ("int", "0"),
    "uint16": ("int", "0"),
    "int32": ("int", "0"),
    "uint32": ("int", "0"),
    "int64": ("int", "0"),
    "float64": ("float", "0.0"),
    "string": ("str", '""'),
    "uuid": ("Uuid", "ZERO_UUID"),
    "bytes": ("bytes", 'b""'),
    "records": ("Buffer | None", "None"),
}
SKIPPED = re.compile(
    r"^(LeaderAndIsr|StopReplica|UpdateMetadata|ControlledShutdown)(Request|Response)$"
)


def load(path: Path) -> dict[str, Any]:
    text = re.sub(r"^\s*//.*$", "", path.read_text(), flags=re.MULTILINE)
    schema: dict[str, Any] = json.loads(text)
    return schema


def snake(name: str) -> str:
    spaced = re.sub(r"([A-Z]+)([A-Z][a-z])", r"\1_\2", name)
    out = re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", spaced).lower()
    return out + "_" if out in {"from", "class", "def", "global", "type_"} else out


def versions(text: str | None) -> str:
    if text is None or text == "none":
        return "NEVER"
    low, _, high = text.partition("-")
    if text.endswith("+"):
        return f"Versions({text[:-1]}, LAST)"
    return f"Versions({low}, {high or low})"


def default_of(field: dict[str, Any], kind: str, array: bool, struct: bool) -> tuple[str, str]:
    """A field's default in the constructor (UNSET: a new object) and on the wire, as source."""
    given = field.get("default")
    if given == "null":
        return "None", "None"
    if array:
        return "UNSET", "()"
    if struct:
        return "UNSET", "..."
    literal = PRIMITIVES[kind][1]
    if given is not None:
        if kind == "string":
            literal = json.dumps(given)
        elif kind == "bool":
            literal = str(str(given).lower() == "true")
        elif kind == "float64":
            literal = repr(float(given))
        elif kind not in ("uuid", "bytes"):
            literal = str(int(str(given), 0))
    return literal, literal


@dataclass(frozen=True)
class ParsedField:
    """The source of one field, for each place of a class."""

    name: str
    python: str
    default: str
    value: str
    wire: str


class Generator:
    """Turns one schema into the source of one module."""

    def __init__(self, schema: dict[str, Any]) -> None:
        self.schema = schema
        self.structs: list[str] = []
        self.done: set[str] = set()
        self.common = {s["name"]: s for s in schema.get("commonStructs", [])}

    def source(self) -> str:
        name = self.schema["name"]
        self.emit_class(name, self.schema["fields"], "Message", list(self.class_vars()))
        body = "\n\n".join(self.structs)
        names = ("LAST", "NEVER", "UNSET", "Field", "Message", "Struct", "Versions")
        used = [n for n in names if re.search(rf"\b{n}\b", body)]
        out = [
            f'"""Generated from {name}.json; do not edit."""',
            "",
            "from __future__ import annotations",
            "",
        ]
        ids = [n for n in ("ZERO_UUID", "Uuid") if re.search(rf"\b{n}\b", body)]
        if ids:
            out.append(f"from skylog.kernel.ids import {', '.join(ids)}")
        if "Buffer" in body:
            out.append("from skylog.wire.buffers import Buffer")
        out += [f"from skylog.wire.schema import {', '.join(used)}", "", "", body, ""]
        return "\n".join(out)

    def class_vars(self) -> Iterator[str]:
        schema = self.schema
        valid = schema["validVersions"]
        yield f'TYPE = "{schema["type"]}"'
        if "apiKey" in schema:
            yield f"API_KEY = {schema['apiKey']}"
        yield f"VERSIONS = {versions(valid)}"
        yield f"FLEXIBLE = {versions(schema.get('flexibleVersions'))}"
        if "listeners" in schema:
            yield f"LISTENERS = {tuple(schema['listeners'])!r}"
        if schema.get("latestVersionUnstable"):
            yield "LATEST_UNSTABLE = True"

    def emit_class(
        self, name: str, fields: list[dict[str, Any]], base: str, class_vars: list[str]
    ) -> None:
        self.done.add(name)
        parsed = [self.parse_field(spec) for spec in fields]
        slots = "".join(f'"{f.name}", ' for f in parsed).rstrip()
        lines = [f"class {name}({base}):", f"    __slots__ = ({slots})"]
        lines += [f"    {v}" for v in class_vars]
        if parsed:
            lines += ["    FIELDS = (", *(f"        {f.wire}," for f in parsed), "    )", ""]
            lines += ["    def __init__(", "        self,"]
            lines += [f"        {f.name}: {f.python} = {f.default}," for f in parsed]
            lines += ["    ) -> None:"]
            lines += [f"        self.{f.name} = {f.value}" for f in parsed]
        self.structs.append("\n".join(lines) + "\n")

    def parse_field(self, spec: dict[str, Any]) -> ParsedField:
        kind = spec["type"]
        array = kind.startswith("[]")
        kind = kind.removeprefix("[]")
        struct = kind not in PRIMITIVES
        if struct and kind not in self.done:
            nested = spec.get("fields") or self.common[kind]["fields"]
            self.emit_class(kind, nested, "Struct", [])
        nullable = spec.get("nullableVersions")
        python = kind if struct else PRIMITIVES[kind][0]
        if array:
            python = f"list[{python}]"
        if nullable and "None" not in python:
            python += " | None"
        default, wire_default = default_of(spec, kind, array, struct)
        name = snake(spec["name"])
        value = name
        if default == "UNSET":
            value = f"{'[]' if array else kind + '()'} if {name} is UNSET else {name}"
        tagged = spec.get("taggedVersions")
        existing = versions(spec.get("versions", tagged))
        args = [f'"{name}"', kind if struct else f'"{kind}"', existing, wire_default]
        if array:
            args.append("array=True")
        if nullable:
            args.append(f"nullable={versions(nullable)}")
        if tagged:
            args += [f"tag={spec['tag']}", f"tagged={versions(tagged)}"]
        if spec.get("ignorable"):
            args.append("ignorable=True")
        if spec.get("flexibleVersions") == "none":
            args.append("never_flexible=True")
        return ParsedField(name, python, default, value, f"Field({', '.join(args)})")


def extend(fields: list[dict[str, Any]], path: str, extensions: dict[str, Any]) -> None:
    """Add our fields to a message, and to its structures, which are named by their path."""
    for field in fields:
        extend(field.get("fields", []), f"{path}.{field['type'].removeprefix('[]')}", extensions)
    fields += extensions.get(path, [])


def schemas(directory: Path) -> Iterator[dict[str, Any]]:
    """Kafka's schemas and ours; ``extensions`` has tagged fields of ours for Kafka's messages."""
    kafkas = [*directory.rglob("common/*/*.json"), *directory.rglob("message/Remote*.json")]
    paths = [*kafkas, *(ROOT / "schemas").glob("*.json")]
    extensions = load(ROOT / "schemas" / "extensions" / "extensions.json")
    for path in sorted(paths, key=lambda p: p.name):
        schema = load(path)
        if schema["name"].startswith("Remote"):
            schema["type"] = "remote-log-record"  # numbered apart from the cluster's metadata
        extend(schema.get("fields", []), schema["name"], extensions)
        if not SKIPPED.match(schema["name"]) and schema["validVersions"] != "none":
            yield schema


def index(loaded: list[dict[str, Any]]) -> str:
    """The table of all messages by type and key: only names, so that modules are imported when
    needed."""
    out = ['"""Generated: every message by type and key; do not edit."""', "", ""]
    kinds = ("request", "response", "metadata", "coordinator-key", "coordinator-value")
    for kind in (*kinds, "diskless-record", "remote-log-record"):
        rows = sorted(
            (s["apiKey"], s["name"]) for s in loaded if s["type"] == kind and "apiKey" in s
        )
        # Transaction and group coordinators each number their records from zero.
        unique: dict[int, list[str]] = {}
        for key, name in rows:
            unique.setdefault(key, []).append(name)
        out.append(f"{kind.upper().replace('-', '_')}S: dict[int, tuple[str, ...]] = {{")
        out += [
            f"    {key}: ({', '.join(json.dumps(n) for n in names)},),"
            for key, names in unique.items()
        ]
        out += ["}", ""]
    return "\n".join(out)


def api_keys(loaded: list[dict[str, Any]]) -> str:
    """The enum of Kafka's APIs, with Kafka's names."""
    rows = sorted(
        (s["apiKey"], snake(s["name"].removesuffix("Request")).upper())
        for s in loaded
        if s["type"] == "request"
    )
    out = [
        '"""Generated: the numbers of Kafka\'s APIs; do not edit."""',
        "",
        "from enum import IntEnum",
        "",
        "",
        "class ApiKey(IntEnum):",
        *(f"    {name} = {key}" for key, name in rows),
        "",
    ]
    return "\n".join(out)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("json_dir", type=Path)
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    loaded = list(schemas(arguments.json_dir))
    files = {f"{snake(s['name'])}.py": Generator(s).source() for s in loaded}
    files["index.py"] = index(loaded)
    files["api_key.py"] = api_keys(loaded)
    files["__init__.py"] = '"""Generated message classes; see tools/generate_messages.py."""\n'
    if arguments.check:
        stale = [
            n
            for n, text in files.items()
            if not (TARGET / n).exists() or (TARGET / n).read_text() != text
        ]
        stale += [p.name for p in TARGET.glob("*.py") if p.name not in files]
        if stale:
            print(f"stale generated messages: {', '.join(sorted(stale))}; run make generate")
        return 1 if stale else 0
    TARGET.mkdir(parents=True, exist_ok=True)
    for old in TARGET.glob("*.py"):
        old.unlink()
    for name, text in files.items():
        (TARGET / name).write_text(text)
    print(f"{len(files)} files in {TARGET.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
