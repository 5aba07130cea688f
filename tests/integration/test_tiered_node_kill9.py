"""kill −9 of the only broker while it copies, drops and expires segments: nothing acknowledged is
lost, and in the end everything is in the object store."""

from __future__ import annotations

import random
import threading
from pathlib import Path

from skylog.kernel.errors import ErrorCode
from tests.integration.broker_client import Client
from tests.integration.processes import BrokerProcess
from tests.integration.tiered_topics import (
    EARLIEST,
    EARLIEST_LOCAL,
    LATEST,
    LATEST_TIERED,
    SETTINGS,
    TIERED,
    delete_records,
    offsets,
    read_all,
    until_offset,
)
from tests.integration.wire_client import Closed
from tests.waiting import until

# ``make chaos`` kills more often, and more than one broker.
ROUNDS = 5
READ_OR_DELETED = (ErrorCode.NONE, ErrorCode.OFFSET_OUT_OF_RANGE)
# Restarts give a new leader epoch: the claims of those before it are cleaned, too.
QUICK = {**SETTINGS, "remote.log.manager.task.interval.ms": "50"}


def write_until_killed(client: Client, first: int) -> int:
    """Returns the number of the first record that was not acknowledged."""
    number = first
    try:
        while client.produce("t", b"%06d" % number).error_code == 0:
            number += 1
    except Closed:
        pass
    return number


def first_answer(client: Client, offset: int) -> int:
    """Until the broker knows its remote segments, clients are told to ask again."""
    codes: list[int] = []

    def is_known() -> bool:
        codes.append(client.fetch("t", offset, wait_ms=1000).error_code)
        return codes[-1] != ErrorCode.REPLICA_NOT_AVAILABLE

    until(is_known)
    return codes[-1]


def test_nothing_acknowledged_is_lost(tmp_path: Path) -> None:
    rng = random.Random(17)
    node = BrokerProcess(tmp_path / "data", QUICK)
    acknowledged = start = 0
    for number in range(ROUNDS):
        with node, Client(node.address) as client:
            if number == 0:
                client.create("t", configs=TIERED)
            log_start, end = offsets(client, "t", EARLIEST, LATEST)
            # The last record may have been written, though its acknowledgement was lost. A log
            # start that was moved may be the one before it, until the remote log is known.
            assert log_start <= start
            assert acknowledged <= end <= acknowledged + 1
            assert first_answer(client, log_start) in READ_OR_DELETED
            read_all(client, "t", start, end)
            if number % 3 == 2:
                start = delete_records(client, "t", rng.randint(start, end))
            killer = threading.Timer(rng.uniform(0.02, 0.7), node.kill)
            killer.start()
            acknowledged = write_until_killed(client, end)
            killer.join()
    with node, Client(node.address) as client:
        end = client.offset("t", LATEST).offset
        until_offset(client, "t", EARLIEST_LOCAL, end)
        assert client.offset("t", LATEST_TIERED).offset == end - 1
        read_all(client, "t", client.offset("t", EARLIEST).offset, end)
    assert end >= acknowledged > 0
