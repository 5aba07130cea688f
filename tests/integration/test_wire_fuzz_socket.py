"""Malformed bytes and excessive requests: the broker keeps working.

The broker is a separate process. During an attack, a victim produces and fetches; after each attack
memory and open files must be as before, and the log must have no errors: an unexpected exception is
logged as one.
"""

from __future__ import annotations

import contextlib
import random
import socket
import struct
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from skylog.broker.net.table import broker_table
from skylog.kernel import limits
from skylog.kernel.errors import ErrorCode as Code
from skylog.kernel.ids import ZERO_UUID
from skylog.wire.apis import ApiKey
from skylog.wire.messages import (
    describe_configs_request,
    fetch_request,
    join_group_request,
    list_offsets_request,
    metadata_request,
    produce_request,
)
from skylog.wire.messages.api_versions_request import ApiVersionsRequest
from skylog.wire.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from skylog.wire.messages.find_coordinator_request import FindCoordinatorRequest
from skylog.wire.messages.sasl_authenticate_request import SaslAuthenticateRequest
from skylog.wire.messages.sasl_handshake_request import SaslHandshakeRequest
from skylog.wire.records import encode_batch
from tests.integration.auth_cases import CASES, Things, errors_in
from tests.integration.processes import BrokerProcess
from tests.integration.wide_requests import wide_requests
from tests.integration.wire_client import Closed, Wire, frame, request_bytes

MEBIBYTE = 1 << 20
SEED = 20_261
MUTATIONS = 3000
REQUEST_BYTES_MAX = 8 * MEBIBYTE
REQUESTS_BYTES_MAX = 32 * MEBIBYTE
ANSWERS_BYTES_MAX = 32 * MEBIBYTE
# Allowance for the allocator and for requests in progress.
GROWTH_BYTES_MAX = 96 * MEBIBYTE
# A victim that waits longer for a response has been stalled.
VICTIM_SECONDS_MAX = 30.0
SETTINGS = {
    "socket.request.max.bytes": str(REQUEST_BYTES_MAX),
    "queued.max.request.bytes": str(REQUESTS_BYTES_MAX),
}
LESS_MEMORY = (
    "import skylog.kernel.limits as limits\n"
    f"limits.ANSWER_BYTES_IN_FLIGHT_MAX = {ANSWERS_BYTES_MAX}\n"
    f"limits.FETCH_BYTES_UNDER_PRESSURE = {MEBIBYTE}\n"
)


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    directory = tmp_path_factory.mktemp("fuzz") / "data"
    with BrokerProcess(directory, SETTINGS, before=LESS_MEMORY) as running:
        yield running


def new_topic(broker: BrokerProcess, name: str, partitions: int = 1) -> Things:
    with Wire(broker.address) as wire:
        (topic,) = wire.ask(CreateTopicsRequest([CreatableTopic(name, partitions, 1)])).topics
    assert topic.error_code == 0
    return Things(name, topic.topic_id, f"group-{name}", "")


class Victim(threading.Thread):
    """A normal client."""

    def __init__(self, address: str, things: Things) -> None:
        super().__init__(daemon=True)
        self._wire = Wire(address, seconds_max=VICTIM_SECONDS_MAX)
        self._things = things
        self._enough = threading.Event()
        self.round_trips = 0
        self.error: BaseException | None = None
        self.start()

    def run(self) -> None:
        try:
            while not self._enough.is_set():
                for key, version in ((ApiKey.PRODUCE, 13), (ApiKey.FETCH, 13)):
                    answer = self._wire.ask(CASES[key].build(self._things, version), version)
                    assert not errors_in(answer), answer
                self.round_trips += 1
                self._enough.wait(0.002)
        except BaseException as error:  # noqa: BLE001 - told to the test
            self.error = error
        finally:
            self._wire.close()

    def stop(self) -> None:
        self._enough.set()
        self.join()
        if self.error is not None:
            raise AssertionError("the victim was harmed") from self.error


class Memory(threading.Thread):
    """Samples the memory of a process."""

    def __init__(self, broker: BrokerProcess) -> None:
        super().__init__(daemon=True)
        self._broker = broker
        self._enough = threading.Event()
        self.most = self.before = broker.rss_bytes()
        self.start()

    def run(self) -> None:
        while not self._enough.wait(0.02) and self._broker.alive:
            self.most = max(self.most, self._broker.rss_bytes())

    def growth(self) -> int:
        self._enough.set()
        self.join()
        return self.most - self.before


@pytest.fixture(scope="module")
def victim_things(broker: BrokerProcess) -> Things:
    return new_topic(broker, "victim")


@pytest.fixture
def unharmed(broker: BrokerProcess, victim_things: Things) -> Iterator[BrokerProcess]:
    """The broker, with a victim; afterwards everything must be as before."""
    files = broker.open_files()
    victim, memory = Victim(broker.address, victim_things), Memory(broker)
    yield broker
    done = victim.round_trips
    while victim.is_alive() and victim.round_trips < done + 3:
        victim.join(0.01)
    victim.stop()
    assert memory.growth() < GROWTH_BYTES_MAX
    _until_files_are(broker, files)
    assert broker.alive
    assert "ERROR" not in broker.logged()


def _until_files_are(broker: BrokerProcess, count: int) -> None:
    """Wait until closed connections are released; a few log segments may have been opened."""
    for _ in range(200):
        if broker.open_files() <= count + 8:
            return
        with Wire(broker.address) as wire:
            wire.ask(ApiVersionsRequest("a", "1"))
    raise AssertionError(f"{broker.open_files()} open files, there were {count}")


# Bytes


def corpus(things: Things) -> list[bytes]:
    """A valid request of every API in every version, without its length."""
    requests = []
    for key, row in broker_table().items():
        for version in range(row.versions.low, row.versions.high + 1):
            if key in CASES:
                request = CASES[key].build(things, version)
            elif key is ApiKey.API_VERSIONS:
                request = ApiVersionsRequest("name", "1.0")
            elif key is ApiKey.SASL_HANDSHAKE:
                request = SaslHandshakeRequest("PLAIN")
            else:
                request = SaslAuthenticateRequest(b"\0user\0password")
            requests.append(request_bytes(request, version))
    return requests


EXTREMES = [
    struct.pack(">i", number) for number in (-1, 0, 1, 2**31 - 1, -(2**31), 2**16, 2**24)
] + [b"\xff\xff\xff\xff\x0f", b"\xff\xff\xff\xff\x7f", b"\x80" * 10, b"\x00", b"\xff", b"\x7f\xff"]


def mutated(rng: random.Random, request: bytes) -> bytes:
    """A request that is damaged, usually after its API key and version."""
    data = bytearray(request)
    start = rng.choice((0, 4, 8, 8, 8))
    for _ in range(rng.choice((1, 1, 1, 2, 5))):
        at = rng.randrange(start, len(data)) if len(data) > start else 0
        kind = rng.randrange(6)
        if kind == 0:
            data[at : at + 1] = bytes((rng.randrange(256),))
        elif kind == 1:
            extreme = rng.choice(EXTREMES)
            data[at : at + len(extreme)] = extreme
        elif kind == 2:
            del data[at : at + rng.choice((1, 4, 20))]
        elif kind == 3:
            data[at:at] = rng.randbytes(rng.choice((1, 4, 100)))
        elif kind == 4:
            data[at:] = data[at:] * 2
        else:
            del data[at:]
    return bytes(data)


def throw(address: str, frames: list[bytes]) -> None:
    """Send each on a separate connection, and ignore responses."""
    host, _, port = address.rpartition(":")
    for begin in range(0, len(frames), 64):
        sockets = []
        for data in frames[begin : begin + 64]:
            raw = socket.create_connection((host, int(port)), 20)
            sockets.append(raw)
            with contextlib.suppress(OSError):
                raw.sendall(data)
        for raw in sockets:
            raw.setblocking(False)
            with contextlib.suppress(OSError):
                raw.recv(65536)
            raw.close()


def test_mutated_requests_of_every_api_and_version(tmp_path: Path) -> None:
    """Without a victim: some of these requests are valid, and take effect."""
    with BrokerProcess(tmp_path / "data", SETTINGS) as broker:
        requests = corpus(new_topic(broker, "topic"))
        throw(broker.address, [frame(request) for request in requests])
        rng = random.Random(SEED)
        memory = Memory(broker)
        throw(
            broker.address,
            [frame(mutated(rng, rng.choice(requests))) for _ in range(MUTATIONS)],
        )
        with Wire(broker.address) as wire:
            assert wire.ask(ApiVersionsRequest("name", "1.0")).error_code == 0
        assert memory.growth() < GROWTH_BYTES_MAX
        assert broker.alive
        assert "ERROR" not in broker.logged(), broker.logged()[-5000:]


def test_cut_off_at_every_byte(unharmed: BrokerProcess) -> None:
    """A valid length, and a request that ends too soon."""
    rng = random.Random(SEED)
    requests = corpus(Things("nothing", ZERO_UUID, "nothing", ""))
    cut = [frame(request[: rng.randrange(len(request))]) for request in requests]
    throw(unharmed.address, cut)


def test_random_bytes(unharmed: BrokerProcess) -> None:
    rng = random.Random(SEED)
    bodies = [rng.randbytes(rng.choice((0, 1, 4, 8, 20, 300))) for _ in range(500)]
    throw(unharmed.address, [frame(body) for body in bodies])
    throw(unharmed.address, bodies)


@pytest.mark.parametrize(
    "length", [-(2**31), -1, 0, REQUEST_BYTES_MAX, REQUEST_BYTES_MAX + 1, 2**31 - 1]
)
def test_lengths(unharmed: BrokerProcess, length: int) -> None:
    """A length alone costs nothing; an invalid one closes the connection."""
    with contextlib.ExitStack() as stack:
        wires = [stack.enter_context(Wire(unharmed.address)) for _ in range(16)]
        for wire in wires:
            wire.send(struct.pack(">i", length))
        if length != REQUEST_BYTES_MAX:
            assert all(wire.is_closed() for wire in wires)


def test_the_largest_request_is_served(unharmed: BrokerProcess) -> None:
    request = request_bytes(ApiVersionsRequest("name", "1.0"), 3)
    with Wire(unharmed.address) as wire:
        wire.send(frame(request + bytes(REQUEST_BYTES_MAX - len(request))))
        assert wire.receive()


# Requests and responses that stay


def test_requests_that_never_end(unharmed: BrokerProcess) -> None:
    with contextlib.ExitStack() as stack:
        for part in (b"", b"\0", b"\0\0\0\x40", frame(corpus_one())[:-1]):
            for _ in range(150):
                stack.enter_context(Wire(unharmed.address)).send(part)


def corpus_one() -> bytes:
    return request_bytes(ApiVersionsRequest("name", "1.0"), 3)


def test_the_oldest_of_too_many_large_requests_are_closed(unharmed: BrokerProcess) -> None:
    with contextlib.ExitStack() as stack:
        wires = [stack.enter_context(Wire(unharmed.address)) for _ in range(12)]
        for wire in wires:
            # All but the last byte: 12 × 7 MiB in a budget of 32.
            with contextlib.suppress(Closed):
                wire.send(struct.pack(">i", 7 * MEBIBYTE) + bytes(7 * MEBIBYTE - 1))
        assert wires[0].is_closed()
        # The newest connection is still there and may complete its request, which is invalid.
        last = wires[-1]
        request = corpus_one()
        last.close()
        with Wire(unharmed.address) as wire:
            wire.send(frame(request + bytes(7 * MEBIBYTE - len(request))))
            assert wire.receive()


def test_responses_that_no_client_reads(unharmed: BrokerProcess) -> None:
    things = new_topic(unharmed, "large")
    m = produce_request
    with Wire(unharmed.address) as wire:
        for _ in range(12):
            batch = encode_batch([(b"", bytes(1_000_000))], timestamp=1)
            data = m.TopicProduceData(
                things.topic, things.topic_id, [m.PartitionProduceData(0, batch)]
            )
            assert not errors_in(wire.ask(m.ProduceRequest(None, 1, 5000, [data])))
    f = fetch_request
    wanted = f.FetchPartition(0, fetch_offset=0, partition_max_bytes=2**31 - 1)
    request = f.FetchRequest(
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=2**31 - 1,
        session_epoch=-1,
        topics=[f.FetchTopic(things.topic, things.topic_id, [wanted])],
    )
    with contextlib.ExitStack() as stack:
        for _ in range(50):
            wire = stack.enter_context(Wire(unharmed.address, receive_buffer=4096))
            wire.send(frame(request_bytes(request, 13)) * 5)
        # A client that reads gets responses, though smaller ones.
        with Wire(unharmed.address) as wire:
            answer = wire.ask(request, 13)
            assert len(answer.responses[0].partitions[0].records) >= 1_000_000


def test_long_polls(unharmed: BrokerProcess, victim_things: Things) -> None:
    f = fetch_request
    wanted = f.FetchPartition(0, fetch_offset=0, partition_max_bytes=MEBIBYTE)
    request = f.FetchRequest(
        max_wait_ms=2**31 - 1,
        min_bytes=2**31 - 1,
        max_bytes=2**31 - 1,
        topics=[f.FetchTopic(victim_things.topic, victim_things.topic_id, [wanted])],
    )
    with contextlib.ExitStack() as stack:
        for _ in range(300):
            stack.enter_context(Wire(unharmed.address)).send(frame(request_bytes(request, 13)))


def test_many_connections(unharmed: BrokerProcess) -> None:
    with contextlib.ExitStack() as stack:
        for _ in range(1000):
            stack.enter_context(Wire(unharmed.address))
    for _ in range(500):
        Wire(unharmed.address).close()


def test_many_requests_at_once(unharmed: BrokerProcess) -> None:
    with Wire(unharmed.address) as wire:
        request = frame(request_bytes(metadata_request.MetadataRequest([]), 12))
        wire.send(request * 5000)
        for _ in range(5000):
            wire.receive()


# Valid but excessive requests


def test_long_lists_in_requests_of_every_api(unharmed: BrokerProcess) -> None:
    """No list is long enough to stall other clients, whatever its elements."""
    things = new_topic(unharmed, "wide")
    with Wire(unharmed.address, seconds_max=60) as wire:
        for key in (ApiKey.FIND_COORDINATOR, ApiKey.OFFSET_COMMIT):
            wire.ask(CASES[key].build(things, 1 << 15))
        for key, row in broker_table().items():
            if key not in CASES or key in (ApiKey.CREATE_TOPICS, ApiKey.METADATA):
                continue
            version = row.versions.high
            for request in wide_requests(CASES[key].build(things, version), 5_000):
                wire.send(frame(request_bytes(request, version)))
                assert wire.receive(), key


def test_the_length_of_a_list_is_limited(unharmed: BrokerProcess) -> None:
    most = limits.WIRE_REQUEST_ELEMENTS_MAX
    keys = [str(number) for number in range(most)]
    with Wire(unharmed.address) as wire:
        answer = wire.ask(FindCoordinatorRequest(key_type=1, coordinator_keys=keys))
        assert len(answer.coordinators) == most
        with pytest.raises(Closed):
            wire.ask(FindCoordinatorRequest(key_type=1, coordinator_keys=[*keys, "more"]))


def test_lists_in_lists_are_counted_together(unharmed: BrokerProcess) -> None:
    m = list_offsets_request
    parts = [m.ListOffsetsPartition(number) for number in range(1000)]
    for count, refused in ((49, False), (50, True)):
        request = m.ListOffsetsRequest(
            -1, 0, [m.ListOffsetsTopic(f"t{n}", parts) for n in range(count)]
        )
        with Wire(unharmed.address) as wire:
            if refused:
                with pytest.raises(Closed):
                    wire.ask(request)
            else:
                assert len(wire.ask(request).topics) == count


def test_topics_are_auto_created_a_few_at_a_time(unharmed: BrokerProcess) -> None:
    most, m = limits.TOPICS_CREATED_ON_DEMAND_MAX, metadata_request
    names = [f"demand-{number}" for number in range(10_000)]
    with Wire(unharmed.address) as wire:
        wanted = [m.MetadataRequestTopic(name=name) for name in names]
        codes = Counter(topic.error_code for topic in wire.ask(m.MetadataRequest(wanted)).topics)
        assert codes == {0: most, Code.UNKNOWN_TOPIC_OR_PARTITION: len(names) - most}
        # A second request creates the next ones.
        fresh = [m.MetadataRequestTopic(name=name) for name in names[most : 2 * most]]
        assert {t.error_code for t in wire.ask(m.MetadataRequest(fresh)).topics} == {0}


def test_many_partitions_are_served_in_turns(unharmed: BrokerProcess) -> None:
    count = limits.PARTITIONS_MADE_AT_ONCE_MAX
    things = new_topic(unharmed, "exactly", count)
    with Wire(unharmed.address) as wire:
        assert not _failed_offsets(wire, things, count)
        things = new_topic(unharmed, "more", 3 * count)
        while _failed_offsets(wire, things, 3 * count):
            pass


def _failed_offsets(wire: Wire, things: Things, count: int) -> set[Code]:
    m = list_offsets_request
    wanted = [m.ListOffsetsPartition(number, timestamp=-1) for number in range(count)]
    failed = errors_in(
        wire.ask(m.ListOffsetsRequest(-1, 0, [m.ListOffsetsTopic(things.topic, wanted)]))
    )
    assert failed <= {Code.NOT_LEADER_OR_FOLLOWER}  # metadata has them already
    return set(failed)


def test_settings_are_described_once_per_request(unharmed: BrokerProcess) -> None:
    m = describe_configs_request
    resource = m.DescribeConfigsResource(2, "victim", None)
    with Wire(unharmed.address) as wire:
        answer = wire.ask(m.DescribeConfigsRequest([resource] * 5000, include_documentation=True))
    assert Counter(result.error_code for result in answer.results) == {
        0: 1,
        Code.INVALID_REQUEST: 4999,
    }


def test_members_with_too_much_metadata(unharmed: BrokerProcess) -> None:
    m = join_group_request
    for number in range(10):
        with Wire(unharmed.address) as wire:
            wire.ask(FindCoordinatorRequest(coordinator_keys=[f"talker-{number}"]))
            protocol = m.JoinGroupRequestProtocol("range", bytes(7 * MEBIBYTE))
            request = m.JoinGroupRequest(
                f"talker-{number}", 30_000, 30_000, protocol_type="c", protocols=[protocol]
            )
            assert wire.ask(request, 3).error_code == Code.GROUP_MAX_SIZE_REACHED


@pytest.mark.parametrize("codec", [1, 3, 4], ids=["gzip", "lz4", "zstd"])
def test_decompression_bombs(unharmed: BrokerProcess, codec: int) -> None:
    """Several small batches with a large decompressed size."""
    things = new_topic(unharmed, f"bomb-{codec}")
    m = produce_request
    bomb = encode_batch([(b"", bytes(16 * MEBIBYTE))], timestamp=1, codec=codec)
    data = m.TopicProduceData(things.topic, things.topic_id, [m.PartitionProduceData(0, bomb)])
    request = frame(request_bytes(m.ProduceRequest(None, 1, 5000, [data]), 13))
    with contextlib.ExitStack() as stack:
        wires = [stack.enter_context(Wire(unharmed.address, seconds_max=60)) for _ in range(8)]
        for wire in wires:
            wire.send(request)
        for wire in wires:
            assert not errors_in(wire.answer(ApiKey.PRODUCE, 13, 1))


def test_more_connections_than_the_process_may_have_files(tmp_path: Path) -> None:
    """Existing connections are still served, and logs can still open files."""
    before = "import resource\nresource.setrlimit(resource.RLIMIT_NOFILE, (200, 200))"
    with BrokerProcess(tmp_path / "data", before=before) as broker:
        things = new_topic(broker, "victim")
        victim = Victim(broker.address, things)
        with contextlib.ExitStack() as stack:
            wires = [stack.enter_context(Wire(broker.address)) for _ in range(300)]
            served = 0
            for wire in wires:
                with contextlib.suppress(Closed):
                    wire.ask(ApiVersionsRequest("name", "1.0"))
                    served += 1
            assert 10 < served < 100
            assert victim.is_alive()
        victim.stop()
        assert "ERROR" not in broker.logged()
