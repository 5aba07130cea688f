"""The cost of walking and validating records, by codec, in C and in Python.

python -m bench.records
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from skylog.wire.batch import Batch, Compression
from skylog.wire.compression import decompress
from skylog.wire.records import encode_batch
from skylog.wire.topic_rules import TopicRules
from skylog.wire.validation import validate
from skylog.wire.walker import NATIVE
from skylog.wire.walker_reference import walk_python

NOW = 1_700_000_000_000
BATCH_BYTES = 1_000_000
ROUNDS = 5
SECONDS_MIN = 0.05


class Row(NamedTuple):
    what: str
    value: float
    unit: str


def measure(action: Callable[[], object]) -> float:
    """Seconds for one call: the best of several rounds, each long enough for the clock."""
    best = float("inf")
    for _ in range(ROUNDS):
        calls, started = 0, time.perf_counter()
        while (spent := time.perf_counter() - started) < SECONDS_MIN:
            action()
            calls += 1
        best = min(best, spent / calls)
    return best


def sample(value_bytes: int, codec: int) -> tuple[bytearray, int]:
    """A batch of about 1 MB of words, which compress like text, and its number of records."""
    rng = random.Random(value_bytes)
    words = [b"%x " % rng.randrange(1 << rng.randrange(4, 40)) for _ in range(2000)]
    count = BATCH_BYTES // value_bytes
    pairs = []
    for index in range(count):
        value = b"".join(rng.choices(words, k=value_bytes // 5 + 1))[:value_bytes]
        pairs.append((b"%d" % index, value))
    return bytearray(encode_batch(pairs, timestamp=NOW, codec=codec)), count


def walk_rows(value_bytes: int) -> list[Row]:
    data, count = sample(value_bytes, Compression.NONE)
    body = Batch(memoryview(data)).records()
    rows = []
    walkers: dict[str, Callable[..., Any]] = {"Python": walk_python}
    if NATIVE is not None:
        walkers["C"] = NATIVE.walk
    for name, walk in walkers.items():
        seconds = measure(lambda walk=walk: walk(body, count, NOW))  # type: ignore[misc]
        what = f"walk, {value_bytes} B records, {name}"
        rows.append(Row(what, seconds / count * 1e9, "ns/record"))
    return rows


def codec_rows(codec: Compression) -> list[Row]:
    data, count = sample(1024, codec)
    batch = Batch(memoryview(data))
    name = codec.name.lower()
    full, header = TopicRules(), TopicRules(full=False)
    body = len(decompress(codec, batch.records(), 1 << 30))
    unpack = measure(lambda: decompress(codec, batch.records(), 1 << 30))
    everything = measure(lambda: validate(data, full, NOW, 9))
    only_header = measure(lambda: validate(data, header, NOW, 9))
    return [
        Row(f"{name}: batch of {count} × 1 KiB on the wire", len(data) / 1024, "KiB"),
        Row(f"{name}: decompress", unpack * 1e3, "ms/batch"),
        Row(f"{name}: validate in full", everything * 1e3, "ms/batch"),
        Row(f"{name}: validate the header", only_header * 1e3, "ms/batch"),
        Row(f"{name}: validate in full", body / everything / 1e6, "MB/s of records"),
    ]


def recompress_rows() -> list[Row]:
    data, _ = sample(1024, Compression.NONE)
    rows = []
    for target in ("gzip", "snappy", "lz4", "zstd"):
        rules = TopicRules(compression_type=target)
        seconds = measure(lambda rules=rules: validate(data, rules, NOW, 9))  # type: ignore[misc]
        rows.append(Row(f"recompress to {target}", seconds * 1e3, "ms/batch"))
    return rows


def small_rows() -> list[Row]:
    """One record per batch, as from a producer without linger: the fixed cost of a call."""
    rows = []
    for codec in Compression:
        data = bytearray(encode_batch([(b"key", b"value " * 20)], timestamp=NOW, codec=codec))
        seconds = measure(lambda data=data: validate(data, TopicRules(), NOW, 9))  # type: ignore[misc]
        rows.append(Row(f"validate one small record, {codec.name.lower()}", seconds * 1e6, "µs"))
    return rows


def parallel_rows() -> list[Row]:
    """Two threads walking at once: 2.0 if the GIL is released and cores are free."""
    data, count = sample(20, Compression.NONE)
    body = Batch(memoryview(data)).records()
    rows = []
    walkers: dict[str, Callable[..., Any]] = {"Python": walk_python}
    if NATIVE is not None:
        walkers["C"] = NATIVE.walk
    for name, walk in walkers.items():
        calls = 200 if name == "C" else 1

        def repeat(walk: Callable[..., Any] = walk, calls: int = calls) -> None:
            for _ in range(calls):
                walk(body, count, NOW)

        one = min(timed(repeat, threads=1) for _ in range(ROUNDS))
        two = min(timed(repeat, threads=2) for _ in range(ROUNDS))
        rows.append(Row(f"speed-up by a second thread, {name}", 2 * one / two, "×"))
    return rows


def timed(work: Callable[[], None], threads: int) -> float:
    """Seconds until all threads have done the work."""
    workers = [threading.Thread(target=work) for _ in range(threads)]
    started = time.perf_counter()
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return time.perf_counter() - started


def run() -> list[Row]:
    rows = [row for size in (20, 100, 1024) for row in walk_rows(size)]
    rows += parallel_rows()
    rows += [row for codec in Compression for row in codec_rows(codec)]
    rows += recompress_rows()
    rows += small_rows()
    return rows


def main() -> None:
    if NATIVE is None:
        print("the walker in C is not built: make native")
    for row in run():
        print(f"{row.what:<48}{row.value:>12.2f}  {row.unit}")


if __name__ == "__main__":
    main()
