"""Make ``tests/golden/messages.jsonl``: internal records as Kafka's own Java classes write them.

    python tools/golden_messages.py KAFKA_DIR

KAFKA_DIR is what ``tools/kafka_jars.sh`` prints. Values are drawn here, from a fixed seed, and
passed to Java as JSON; each line of the result has a message's name, version, values and bytes.
"""

from __future__ import annotations

import argparse
import base64
import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from generate_messages import load  # noqa: E402

from skylog.wire.schema import Field, Message, Struct  # noqa: E402
from tests.property.wire_values import all_messages, make  # noqa: E402

TYPES = ("metadata", "coordinator-key", "coordinator-value", "data")
PACKAGES = {
    "kafka-clients-4.3.1": "org.apache.kafka.common.message",
    "kafka-metadata-4.3.1": "org.apache.kafka.common.metadata",
    "kafka-group-coordinator-4.3.1": "org.apache.kafka.coordinator.group.generated",
    "kafka-transaction-coordinator-4.3.1": "org.apache.kafka.coordinator.transaction.generated",
    "kafka-raft-4.3.1": "org.apache.kafka.raft.generated",
}
VALUES_PER_VERSION = 2
STRING_CHARACTERS_MAX = 130
Schema = dict[str, Any]


def schemas(directory: Path) -> dict[str, tuple[str, Schema]]:
    """Java class and schema by message name."""
    found = {}
    for path in directory.rglob("common/*/*.json"):
        schema = load(path)
        package = PACKAGES[path.relative_to(directory).parts[0]]
        found[schema["name"]] = (f"{package}.{schema['name']}", schema)
    return found


def plain(value: Any) -> Any:
    """A message as JSON with our names."""
    if isinstance(value, Struct):
        return {f.name: plain(getattr(value, f.name)) for f in value.FIELDS}
    if isinstance(value, list):
        return [plain(item) for item in value]
    return value.hex() if isinstance(value, bytes) else value


def kafka_json(message: Struct, schema: Schema, common: dict[str, Schema], version: int) -> Any:
    """A message for Kafka's JSON converters: their names, only fields of the version."""
    out = {}
    for field, spec in zip(message.FIELDS, schema["fields"], strict=True):
        if version not in field.versions:
            continue
        value = getattr(message, field.name)
        if isinstance(field.type, type) and value is not None:
            nested = spec if "fields" in spec else common[spec["type"].removeprefix("[]")]
            items = value if field.array else [value]
            converted = [kafka_json(item, nested, common, version) for item in items]
            value = converted if field.array else converted[0]
        elif value is not None:
            value = [scalar(v, field) for v in value] if field.array else scalar(value, field)
        out[spec["name"][0].lower() + spec["name"][1:]] = value
    return out


def scalar(value: Any, field: Field) -> Any:
    if field.type == "uuid":
        return str(value)
    return base64.b64encode(value).decode() if isinstance(value, bytes) else value


def draw() -> list[tuple[type[Message], int, Any]]:
    rng = random.Random(43)
    out: list[tuple[type[Message], int, Any]] = []
    for cls in all_messages():
        if cls.TYPE in TYPES:
            for version in range(cls.VERSIONS.low, cls.VERSIONS.high + 1):
                drawn = [shorten(make(cls, version, rng)) for _ in range(VALUES_PER_VERSION)]
                out += [(cls, version, message) for message in (cls(), *drawn)]
    return out


def shorten(value: Any) -> Any:
    """Shorten values to keep the committed file small; long ones are tested elsewhere."""
    for field in getattr(value, "FIELDS", ()):
        item = getattr(value, field.name)
        if isinstance(item, (str, bytes)) and field.type != "uuid":
            setattr(value, field.name, item[:STRING_CHARACTERS_MAX])
        elif isinstance(item, list):
            setattr(value, field.name, item[:STRING_CHARACTERS_MAX])
            for inner in item:
                shorten(inner)
        else:
            shorten(item)
    return value


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kafka_dir", type=Path)
    kafka = parser.parse_args().kafka_dir
    known = schemas(kafka / "json")
    drawn = draw()
    lines = []
    for cls, version, message in drawn:
        java, schema = known[cls.__name__]
        common = {s["name"]: s for s in schema.get("commonStructs", [])}
        body = json.dumps(kafka_json(message, schema, common, version))
        lines.append(f"{cls.TYPE}\t{java}\t{version}\t{body}\n")
    command = ["java", "-cp", f"{kafka}/lib/*", str(ROOT / "tools/java/GoldenMessages.java")]
    done = subprocess.run(command, input="".join(lines), capture_output=True, text=True, check=True)
    written = done.stdout.split()
    if len(written) != len(drawn):
        raise SystemExit(f"{len(written)} answers for {len(drawn)} messages")
    with (ROOT / "tests/golden/messages.jsonl").open("w") as out:
        for (cls, version, message), data in zip(drawn, written, strict=True):
            row = {"name": cls.__name__, "version": version, "bytes": data}
            out.write(json.dumps({**row, "values": plain(message)}) + "\n")
    print(f"{len(drawn)} messages")
    return 0


if __name__ == "__main__":
    sys.exit(main())
