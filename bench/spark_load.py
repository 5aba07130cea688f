"""Fills a topic for Spark to read: librdkafka with its defaults, in a separate process.

python -m bench.spark_load BOOTSTRAP TOPIC RECORDS RECORD_BYTES CODEC PARTITIONS

The same arguments write the same records at the same offsets and times, so that a query has the
same result on both sides. Values are words, which compress like text.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
from typing import Any

from confluent_kafka import Producer

from bench.clusters import ROOT

KEY_BYTES = 8
# Records of the same partition are a millisecond apart.
TIME_BEGINS = 1_700_000_000_000
VALUES = 4_096
LOAD_SECONDS_MAX = 900


def load(
    bootstrap: str, topic: str, records: int, record_bytes: int, codec: str, partitions: int
) -> None:
    """Fill a topic; the last records have the latest timestamps."""
    given = [bootstrap, topic, records, record_bytes, codec, partitions]
    subprocess.run(
        [sys.executable, "-m", "bench.spark_load", *map(str, given)],
        check=True,
        cwd=ROOT,
        timeout=LOAD_SECONDS_MAX,
    )


def values_of(record_bytes: int) -> list[bytes]:
    rng = random.Random(record_bytes)
    words = [b"%x " % rng.randrange(1 << rng.randrange(4, 40)) for _ in range(2000)]
    size = record_bytes - KEY_BYTES
    return [b"".join(rng.choices(words, k=size // 4 + 4))[:size] for _ in range(VALUES)]


def produce(given: argparse.Namespace) -> None:
    failed: list[object] = []

    def delivered(error: object, _: Any) -> None:
        if error is not None:
            failed.append(error)

    # Idempotent, so that retries do not change offsets.
    producer = Producer(
        {
            "bootstrap.servers": given.bootstrap,
            "compression.type": given.codec,
            "enable.idempotence": True,
            "on_delivery": delivered,
            "delivery.report.only.error": True,
            "log_level": 0,
        }
    )
    values = values_of(given.record_bytes)
    for index in range(given.records):
        partition = index % given.partitions
        timestamp = TIME_BEGINS + index // given.partitions
        key, value = b"%08d" % index, values[index % VALUES]
        while True:
            try:
                producer.produce(given.topic, value, key, partition, timestamp=timestamp)
                break
            except BufferError:
                producer.poll(0.01)
    producer.flush()
    if failed:
        raise SystemExit(f"{len(failed)} records not delivered: {failed[0]}")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("bootstrap")
    parser.add_argument("topic")
    parser.add_argument("records", type=int)
    parser.add_argument("record_bytes", type=int)
    parser.add_argument("codec")
    parser.add_argument("partitions", type=int)
    produce(parser.parse_args())


if __name__ == "__main__":
    main()
