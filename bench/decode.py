"""The cost of decoding record batches into Arrow columns, by codec, on one core.

python -m bench.decode

Each figure is the best of several rounds over 64 MiB of batches, too much for the caches of the
processor: checksums verified, decompressed, every column built. Bytes are those of keys and values.
Time is CPU time, which depends less on other work of the machine; only the speed-up by a second
thread is by the clock.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence

from bench.records import NOW, ROUNDS, Row, timed
from skylog.bulk.columns import NATIVE
from skylog.bulk.decode import EncodedBatch, Selection, decode_chunks
from skylog.bulk.schema import COLUMNS
from skylog.bulk.verify import batches_in_object
from skylog.client.bulk import BatchLocation, Split
from skylog.kernel.ids import ZERO_UUID
from skylog.wire.batch import Batch, Compression
from skylog.wire.compression import decompress
from skylog.wire.records import encode_batch

BYTES = 64 * 1024 * 1024
KEY_BYTES = 8
SPLIT = Split("orders", ZERO_UUID, 0, 0, 2**62, 0, True)
NUMBERS = ("partition", "offset", "timestamp")


def measure(action: Callable[[], object]) -> float:
    """CPU seconds of one call: the best of several rounds."""
    best = float("inf")
    for _ in range(ROUNDS):
        started = time.process_time()
        action()
        best = min(best, time.process_time() - started)
    return best


def batch_of(record_bytes: int, codec: int, batch_bytes: int) -> tuple[bytes, int]:
    """A batch of words, which compress like text, and its number of records."""
    rng = random.Random(record_bytes)
    words = [b"%x " % rng.randrange(1 << rng.randrange(4, 40)) for _ in range(2000)]
    count = max(batch_bytes // record_bytes, 1)
    size = record_bytes - KEY_BYTES
    pairs = [
        (b"%08d" % index, b"".join(rng.choices(words, k=size // 5 + 1))[:size])
        for index in range(count)
    ]
    return encode_batch(pairs, timestamp=NOW, codec=codec), count


def placed(data: bytes, count: int, copies: int) -> list[tuple[BatchLocation, bytes]]:
    """Copies of a batch, consecutive in the partition and separate in memory."""
    return [
        (
            BatchLocation("wal/key", 0, len(data), at * count, at * count + count - 1, -1, NOW, 0),
            bytes(bytearray(data)),
        )
        for at in range(copies)
    ]


def decode_all(batches: Sequence[EncodedBatch], columns: Sequence[str] = COLUMNS) -> int:
    selection = Selection("orders", 0, columns)
    return sum(chunk.num_rows for chunk in decode_chunks(batches, selection))


def verified(batches: Sequence[tuple[BatchLocation, bytes]]) -> list[EncodedBatch]:
    return [one for place, data in batches for one in batches_in_object(SPLIT, place, data)]


def codec_rows(record_bytes: int, codec: Compression) -> list[Row]:
    data, count = batch_of(record_bytes, codec, 1_000_000)
    copies = max(BYTES // (count * record_bytes), 1)
    batches = placed(data, count, copies)
    ready = verified(batches)
    records = count * len(batches)
    name = f"{record_bytes} B records, {codec.name.lower()}"
    whole = measure(lambda: decode_all(verified(batches)))
    rows = [
        Row(f"{name}: verify and decode", records / whole / 1e6, "M records/s"),
        Row(f"{name}: verify and decode", records * record_bytes / whole / 1e6, "MB/s"),
    ]
    if codec == Compression.NONE:
        alone = measure(lambda: decode_all(ready))
        some = measure(lambda: decode_all(ready, NUMBERS))
        rows += [
            Row(f"{name}: decode alone", records / alone / 1e6, "M records/s"),
            Row(f"{name}: decode, no key, value or headers", records / some / 1e6, "M records/s"),
        ]
    else:
        body = Batch(memoryview(data)).records()
        unpack = measure(lambda: [decompress(codec, body, 1 << 30) for _ in batches])
        rows.append(Row(f"{name}: of that, decompressing", 100 * unpack / whole, "%"))
    return rows


def small_batch_rows() -> list[Row]:
    """Batches of ten records: the fixed cost of a batch."""
    data, count = batch_of(100, Compression.NONE, 1000)
    batches = placed(data, count, 4000)
    seconds = measure(lambda: decode_all(verified(batches)))
    return [Row("batches of 10 × 100 B", seconds / len(batches) * 1e6, "µs/batch")]


def parallel_rows() -> list[Row]:
    """Two threads at once: 2.0 if the GIL is released and cores are free."""
    rows = []
    for codec in (Compression.NONE, Compression.ZSTD):
        data, count = batch_of(100, codec, 1_000_000)
        batches = placed(data, count, 64)

        def work(batches: Sequence[tuple[BatchLocation, bytes]] = batches) -> None:
            decode_all(verified(batches))

        one = min(timed(work, threads=1) for _ in range(3))
        two = min(timed(work, threads=2) for _ in range(3))
        name = codec.name.lower()
        rows.append(Row(f"speed-up by a second thread, {name}", 2 * one / two, "×"))
    return rows


def run() -> list[Row]:
    rows = [row for size in (100, 1024) for codec in Compression for row in codec_rows(size, codec)]
    return rows + small_batch_rows() + parallel_rows()


def main() -> None:
    if NATIVE is None:
        print("the columns in C are not built: make native")
    for row in run():
        print(f"{row.what:<56}{row.value:>12.2f}  {row.unit}")


if __name__ == "__main__":
    main()
