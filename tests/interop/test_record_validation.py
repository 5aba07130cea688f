"""Kafka and skylog validate the same batches: written cases, and hundreds of damaged ones."""

from __future__ import annotations

import os
import random
import struct
from pathlib import Path

import pytest
from crc32c import crc32c

from skylog.kernel.errors import KafkaError
from skylog.wire.validation import validate
from tests.golden.records.cases import CODECS, NOW, Case, batch, every_case
from tests.golden.test_record_batches import STRICTER, VERDICTS, judge, meaning
from tools.judge_batches import run_java

pytestmark = pytest.mark.interop

SETTINGS = (
    {},
    {"cleanup.policy": "compact"},
    {"message.timestamp.type": "LogAppendTime"},
    {"compression.type": "lz4"},
)


def jars() -> str:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return os.environ.get("SKYLOG_KAFKA_JARS") or str(cache / "skylog" / "kafka-4.3.1" / "lib")


def kafkas(cases: list[Case]) -> list[str]:
    return run_java(jars(), "JudgeBatches", "".join(case.line() for case in cases)).splitlines()


def test_the_golden_verdicts_are_still_kafkas() -> None:
    cases = [case for case in every_case() if not case.name.startswith("recompression")]
    assert dict(zip((case.name for case in cases), kafkas(cases), strict=True)) == {
        case.name: VERDICTS[case.name] for case in cases
    }


def damaged(rng: random.Random, index: int) -> Case:
    """A batch with a few bytes changed and a matching CRC; most changes hit records."""
    codec = rng.choice([0, 0, 0, 1, 2, 3, 4])
    data = bytearray(batch(codec))
    for _ in range(rng.randrange(1, 3)):
        data[rng.randrange(57, len(data))] = rng.choice([0, 1, 2, 0x7F, 0x80, rng.randrange(256)])
    struct.pack_into(">I", data, 17, crc32c(bytes(data[21:])))
    return Case(f"{index} {CODECS[codec]}", bytes(data), rng.choice(SETTINGS))


def is_stricter(case: Case) -> bool:
    """Whether we refuse a batch for a fault that Kafka ignores."""
    with pytest.raises(KafkaError) as error:
        validate(case.records, case.rules(), NOW, case.version)
    said = error.value.message or ""
    if said == "broken gzip stream" or said.startswith("lz4 frame"):
        return True  # Java ignores what other libraries refuse: flags, end marks, checksums
    return said.endswith("bad offset") or (
        not case.name.endswith("none") and said.endswith(("bad record", "bad size"))
    )


@pytest.mark.parametrize("seed", range(3))
def test_damaged_batches(seed: int) -> None:
    rng = random.Random(seed)
    cases = [damaged(rng, index) for index in range(400)]
    accepted = 0
    for case, verdict in zip(cases, kafkas(cases), strict=True):
        code, indexes, stored = verdict.split()
        ours = judge(case)
        if ours[0] == 0:
            # What we accept, Kafka accepts and stores alike.
            assert (code, indexes) == ("0", "-"), case
            accepted += 1
            assert meaning(ours[2]) == meaning(bytes.fromhex(stored)), case
        elif code == "0":
            assert is_stricter(case), case
        else:
            # For a broken stream Kafka returns the first fault that it meets, so 87 and −1 mix.
            assert ours[:2] == (int(code), indexes) or {ours[0], int(code)} == {87, -1}, case
    assert 0 < accepted < len(cases)


def test_we_are_stricter_only_where_we_say_so() -> None:
    cases = [case for case in every_case() if case.name not in STRICTER]
    for case, verdict in zip(cases, kafkas(cases), strict=True):
        assert judge(case)[0] == int(verdict.split()[0]), case.name


def test_java_reads_what_we_compress() -> None:
    """A batch of each codec, large enough for several blocks, passes Kafka's full validation."""
    cases = []
    for codec, name in enumerate(CODECS):
        timestamps = tuple(NOW + index % 9 for index in range(3000))
        cases.append(Case(name, batch(codec, timestamps), {"max.message.bytes": "10000000"}))
        cases.append(
            Case(
                name,
                batch(codec, timestamps),
                {"compression.type": "uncompressed", "max.message.bytes": "10000000"},
            )
        )
    assert [verdict.split()[0] for verdict in kafkas(cases)] == ["0"] * len(cases)
