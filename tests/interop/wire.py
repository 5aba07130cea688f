"""A plain socket that speaks Kafka's protocol, with responses in a comparable form."""

from __future__ import annotations

import re
import socket
import struct
from collections.abc import Callable, Iterable
from typing import Any, Final

from skylog.kernel.ids import ZERO_UUID, Uuid
from skylog.kernel.settings.definitions import OURS
from skylog.wire.apis import (
    ApiKey,
    encode_request_header,
    request_class,
    response_class,
    response_header_version,
)
from skylog.wire.batch import Batch, split_batches
from skylog.wire.codec import decode, encode
from skylog.wire.records import decode_records
from skylog.wire.schema import Struct

ANSWER_SECONDS_MAX = 40
CLOSED: Final = "connection closed"
# Fields that always differ between two brokers.
_IGNORED: Final = {
    "throttle_time_ms",
    "port",
    "cluster_id",
    "log_dir",
    "total_bytes",
    "usable_bytes",
    "finalized_features_epoch",
    "last_fetch_timestamp",
    "last_caught_up_timestamp",
    "last_timestamp",
    "broker_epoch",
    "replica_directory_id",
    "log_append_time_ms",
    "leader_epoch_of_quorum",
}
# Settings that Kafka does not have.
OUR_SETTINGS: Final = frozenset(
    {
        "diskless.enable",
        "diskless.tiering.assembler",
        "remote.copy.lag.bytes",
        "remote.copy.lag.ms",
        *OURS,
    }
)
_KEYS: Final = (
    "group_id", "resource_type", "resource_name", "name", "topic", "topic_name", "feature", "user",
    "key", "api_key", "node_id", "broker_id", "partition_index", "partition", "index", "member_id",
    "transactional_id",
)  # fmt: skip
_UUID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


def build(cls: type[Struct], values: dict[str, Any]) -> Any:
    """A message from plain dictionaries and lists."""
    fields = {field.name: field for field in cls.FIELDS}
    made = {}
    for name, value in values.items():
        kind = fields[name].type
        if isinstance(kind, type) and value is not None:
            made[name] = (
                [build(kind, v) for v in value] if fields[name].array else build(kind, value)
            )
        else:
            made[name] = value
    return cls(**made)


def plain(value: Any) -> Any:
    """A message as plain dictionaries, without fields that always differ."""
    if isinstance(value, Struct):
        return {
            name: _plain_field(name, getattr(value, name))
            for name in value.__slots__
            if name not in _IGNORED
        }
    if isinstance(value, list):
        found = [plain(item) for item in value if getattr(item, "name", None) not in OUR_SETTINGS]
        # Kafka's order is that of a hash table.
        return sorted(found, key=_identity) if found and isinstance(found[0], dict) else found
    return value


def _identity(item: dict[str, Any]) -> tuple[str, ...]:
    return (*(str(item[name]) for name in _KEYS if name in item), str(item))


def _plain_field(name: str, value: Any) -> Any:
    if name in ("error_message", "batch_index_error_message"):
        return "…" if value else value
    if isinstance(value, Uuid):
        return "no id" if value == ZERO_UUID else "an id"
    if name in ("producer_id", "transaction_start_time_ms"):
        return min(value, 0)
    if name == "session_id":
        return min(value, 1)
    if isinstance(value, str):
        return _UUID.sub("<uuid>", value)
    if name == "records" and value is not None:
        return [_plain_batch(batch) for batch in split_batches(_whole_batches(value))]
    if isinstance(value, memoryview):
        return bytes(value)
    return plain(value)


def _whole_batches(data: memoryview) -> memoryview:
    """Kafka truncates the last batch at the limit; we send only whole ones."""
    end = 0
    while end + 12 <= len(data):
        (size,) = struct.unpack_from(">i", data, end + 8)
        if end + 12 + size > len(data):
            break
        end += 12 + size
    return data[:end]


def _plain_batch(batch: Batch) -> Any:
    records = [(r.offset, r.timestamp, r.key, r.value, r.headers) for r in decode_records(batch)]
    return (batch.base_offset, batch.codec, batch.leader_epoch, batch.last_offset_delta, records)


class Wire:
    """One connection, which is reopened after the broker closed it."""

    def __init__(self, address: tuple[str, int], client_id: str = "client") -> None:
        self._address = address
        self._client_id = client_id
        self._socket: socket.socket | None = None
        self._correlation_id = 0

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def raw(self, frame: bytes, *, answer: bool = True) -> bytes | None:
        """Send a frame; returns the response, or None if the broker closed the connection."""
        if self._socket is None:
            self._socket = socket.create_connection(self._address, timeout=ANSWER_SECONDS_MAX)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            self._socket.sendall(struct.pack(">i", len(frame)) + frame)
            if not answer:
                return b""
            size = struct.unpack(">i", self._read(4))[0]
            return self._read(size)
        except (ConnectionError, EOFError):
            self.close()
            return None

    def _read(self, size: int) -> bytes:
        assert self._socket is not None
        parts = bytearray()
        while len(parts) < size:
            part = self._socket.recv(size - len(parts))
            if not part:
                raise EOFError
            parts += part
        return bytes(parts)

    def frame(self, key: int, version: int, body: bytes) -> bytes:
        self._correlation_id += 1
        return encode_request_header(key, version, self._correlation_id, self._client_id) + body

    def call(self, api: ApiKey, version: int, answer: bool = True, **values: Any) -> Any:
        """The decoded response, or CLOSED."""
        body = encode(build(request_class(api), values), version)
        data = self.raw(self.frame(api, version, body), answer=answer)
        if data is None:
            return CLOSED
        if not answer:
            return None
        start = 4 + response_header_version(api, version)
        return decode(response_class(api), data, version, start)


class Side:
    """One of two brokers, and the trace of its responses."""

    def __init__(self, address: tuple[str, int], prefix: str) -> None:
        self.address = address
        # Names are the same on both brokers and differ between scenarios.
        self.prefix = prefix
        self.trace: list[tuple[str, Any]] = []
        self._wires: dict[str, Wire] = {}
        self._settled = 0

    def wire(self, name: str = "client") -> Wire:
        """A connection by name, whose name is also its client id."""
        if name not in self._wires:
            self._wires[name] = Wire(self.address, name)
        return self._wires[name]

    def close(self) -> None:
        for wire in self._wires.values():
            wire.close()

    def quiet(self, api: ApiKey, version: int, wire: str = "client", **values: Any) -> Any:
        """Call without comparing."""
        return self.wire(wire).call(api, version, **values)

    def call(
        self,
        api: ApiKey,
        version: int,
        wire: str = "client",
        label: str = "",
        keep: Callable[[Any], Any] | None = None,
        **values: Any,
    ) -> Any:
        """Call, and record the response for comparison; ``keep`` may change what is compared."""
        answer = self.wire(wire).call(api, version, **values)
        self.note(f"{api.name} v{version} {label or values}", answer, keep)
        return answer

    def versions(self, api: ApiKey, **values: Any) -> None:
        """Call in every version that both brokers serve."""
        for version in served(api):
            self.call(api, version, **values)

    def note(self, label: str, answer: Any, keep: Callable[[Any], Any] | None = None) -> None:
        found = plain(answer)
        self.trace.append((_shortened(label), keep(found) if keep else found))

    # What most scenarios need ---------------------------------------------------------------

    def name(self, what: str = "topic") -> str:
        return f"{self.prefix}-{what}"

    def create(self, what: str = "topic", partitions: int = 1, **configs: str) -> str:
        """A new topic's name."""
        name = self.name(what)
        settings = [{"name": k.replace("_", "."), "value": v} for k, v in configs.items()]
        topic = {"name": name, "num_partitions": partitions, "replication_factor": 1}
        answer = self.quiet(
            ApiKey.CREATE_TOPICS, 7, topics=[{**topic, "configs": settings}], timeout_ms=10_000
        )
        assert answer.topics[0].error_code == 0, answer
        self.await_leader(name, partitions)
        return name

    def await_leader(self, name: str, partitions: int) -> None:
        for _ in range(500):
            found = self.quiet(ApiKey.METADATA, 12, topics=[{"name": name}]).topics[0]
            led = sum(p.leader_id >= 0 for p in found.partitions)
            if led == partitions and self._serves(name, partitions):
                return
        raise AssertionError(f"{name} has no leader")

    def _serves(self, name: str, partitions: int) -> bool:
        """Whether the broker leads them: Kafka's broker learns of it a little later."""
        asked = [{"partition_index": index, "timestamp": -1} for index in range(partitions)]
        found = self.quiet(ApiKey.LIST_OFFSETS, 7, topics=[{"name": name, "partitions": asked}])
        return all(part.error_code == 0 for part in found.topics[0].partitions)

    def settle(self) -> None:
        """Wait until all earlier changes take effect: Kafka's broker follows its controller."""
        for _ in range(2):
            self._settled += 1
            self.create(f"settle{self._settled}")

    def warm(self) -> None:
        """Create the topic of groups: without it, Kafka answers that there is no coordinator."""
        while (
            self.quiet(ApiKey.FIND_COORDINATOR, 4, coordinator_keys=["g"])
            .coordinators[0]
            .error_code
        ):
            pass
        self.await_leader("__consumer_offsets", 4)
        # Enough groups for all of its partitions, which load one after the other.
        names = [f"warm{number}" for number in range(40)]
        while any(g.error_code for g in self.quiet(ApiKey.DESCRIBE_GROUPS, 5, groups=names).groups):
            pass

    def producer_id(self) -> int:
        """A new producer id; a new Kafka has none for a moment."""
        while True:
            answer = self.quiet(ApiKey.INIT_PRODUCER_ID, 4, transactional_id=None)
            if answer.error_code == 0:
                return int(answer.producer_id)

    def topic_id(self, name: str) -> Uuid:
        found = self.quiet(ApiKey.METADATA, 12, topics=[{"name": name}])
        return Uuid(found.topics[0].topic_id)


def served(api: ApiKey) -> Iterable[int]:
    """The versions of an API that Kafka 4.3.1 offers and accepts."""
    message = request_class(api)
    versions = message.VERSIONS
    return range(versions.low, versions.high + (0 if message.LATEST_UNSTABLE else 1))


def _shortened(text: str) -> str:
    return text if len(text) <= 400 else text[:400] + "…"


Scenario = Callable[[Side], None]
SCENARIOS: dict[str, Scenario] = {}


def scenario(function: Scenario) -> Scenario:
    """A function that runs on both brokers; all its responses are compared."""
    SCENARIOS[f"{function.__module__.rsplit('.', 1)[1]}.{function.__name__}"] = function
    return function


def differences(ours: list[tuple[str, Any]], kafkas: list[tuple[str, Any]]) -> list[str]:
    """Where two traces differ, in words."""
    found = []
    for (label, our), (their_label, their) in zip(ours, kafkas, strict=False):
        if label != their_label:
            found.append(f"the traces diverge: we {label}, Kafka {their_label}")
            break
        if our != their:
            found += [f"{label}\n    {line}" for line in _different(our, their)]
    if not found and len(ours) != len(kafkas):
        found.append(f"{len(ours)} answers, Kafka has {len(kafkas)}")
    return found


def _different(our: Any, their: Any, path: str = "") -> list[str]:
    if isinstance(our, dict) and isinstance(their, dict):
        return [
            line
            for name in {**our, **their}
            for line in _different(our.get(name), their.get(name), f"{path}.{name}")
        ]
    if isinstance(our, list) and isinstance(their, list) and len(our) == len(their):
        return [
            line
            for index, (o, t) in enumerate(zip(our, their, strict=True))
            for line in _different(o, t, f"{path}[{index}]")
        ]
    return [] if our == their else [f"{path}: skylog {our!r}, Kafka {their!r}"]
