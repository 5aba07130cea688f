"""A controller without a log: requests are handled and their records applied at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from skylog.controller.image.configs import ConfigResource, ConfigResourceType
from skylog.controller.machine import ControllerMachine
from skylog.controller.requests import ControllerRequest, Loaded, Request
from skylog.controller.settings import (
    SUPPORTED_FEATURES,
    ConfigLayers,
    ConfigSchema,
    ControllerSettings,
    bootstrap_records,
)
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.ids import Uuid
from skylog.replicated.machine import Note, Result, StartTimer
from skylog.wire.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from skylog.wire.messages.broker_registration_request import (
    BrokerRegistrationRequest,
    Feature,
    Listener,
)
from skylog.wire.messages.create_topics_request import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from skylog.wire.messages.create_topics_response import CreatableTopicConfigs
from skylog.wire.schema import Message

LEVELS = {
    "metadata.version": 30,
    "transaction.version": 2,
    "group.version": 1,
    "eligible.leader.replicas.version": 1,
}
LISTS = {"cleanup.policy": "delete", "leader.replication.throttled.replicas": ""}
DEFAULTS = {
    **LISTS,
    "min.insync.replicas": "1",
    "unclean.leader.election.enable": "false",
    "retention.ms": "604800000",
}


class FewConfigs:
    """A few topic settings: what the controller needs of a schema."""

    def validate(
        self,
        resource: ConfigResource,
        configs: Mapping[str, str],
        _existing: Mapping[str, str],
        _layers: ConfigLayers,
    ) -> None:
        if resource.type != ConfigResourceType.TOPIC:
            return
        for name, value in configs.items():
            if name not in DEFAULTS:
                raise KafkaError(ErrorCode.INVALID_CONFIG, f"Unknown topic config name: {name}")
            if name == "retention.ms" and not value.lstrip("-").isdigit():
                raise KafkaError(ErrorCode.INVALID_CONFIG, f"Invalid value {value} for {name}")

    def is_list(self, _resource_type: int, name: str) -> bool:
        return name in LISTS

    def default_value(self, _resource_type: int, name: str) -> str | None:
        return LISTS.get(name)

    def topic_value(self, name: str, layers: ConfigLayers) -> str | None:
        for layer in (layers.topic, layers.node, layers.cluster, DEFAULTS):
            if name in layer:
                return layer[name]
        return None

    def describe_topic(self, layers: ConfigLayers) -> Sequence[CreatableTopicConfigs]:
        return [
            CreatableTopicConfigs(
                name, self.topic_value(name, layers), False, 1 if name in layers.topic else 5
            )
            for name in sorted(DEFAULTS)
        ]


def directory(broker_id: int) -> Uuid:
    return Uuid((1_000 + broker_id).to_bytes(16, "big"))


def incarnation(broker_id: int, life: int = 0) -> Uuid:
    return Uuid((1_000_000 * (life + 1) + broker_id).to_bytes(16, "big"))


def registration(broker_id: int, *, life: int = 0, **changes: Any) -> BrokerRegistrationRequest:
    request = BrokerRegistrationRequest(
        broker_id=broker_id,
        cluster_id="cluster",
        incarnation_id=incarnation(broker_id, life),
        listeners=[Listener("PLAINTEXT", f"host{broker_id}", 9092, 0)],
        features=[Feature(name, *span) for name, span in SUPPORTED_FEATURES.items()],
        rack=None,
        log_dirs=[directory(broker_id)],
    )
    for name, value in changes.items():
        setattr(request, name, value)
    return request


def topic(
    name: str,
    partitions: int = 1,
    replicas: int = 1,
    *,
    assignments: Mapping[int, list[int]] | None = None,
    **configs: str | None,
) -> CreatableTopic:
    manual = [CreatableReplicaAssignment(*entry) for entry in (assignments or {}).items()]
    return CreatableTopic(
        name,
        -1 if manual else partitions,
        -1 if manual else replicas,
        manual,
        [CreatableTopicConfig(key.replace("_", "."), value) for key, value in configs.items()],
    )


class Bench:
    """One controller, a clock, and the log as a list."""

    def __init__(
        self,
        brokers: int = 0,
        levels: Mapping[str, int] = LEVELS,
        configs: ConfigSchema | None = None,
        **settings: Any,
    ) -> None:
        self.now_ms = 1_000_000
        self.log: list[Message] = []
        self.timers: dict[Any, Any] = {}
        self.notes: list[str] = []
        values = {"combined": False, **settings}
        self.machine = ControllerMachine(
            ControllerSettings(
                node_id=1,
                cluster_id="cluster",
                quorum_node_ids=(1,),
                bootstrap=bootstrap_records(levels),
                **values,
            ),
            configs or FewConfigs(),
        )
        self.run(Loaded())
        self.epochs: dict[int, int] = {}
        for broker_id in range(1, brokers + 1):
            self.join(broker_id)

    def run(self, request: Request) -> Any:
        result = self.machine.handle(request, self.now_ms)
        self.take(result)
        if isinstance(result.reply, KafkaError):
            raise result.reply
        return result.reply

    def take(self, result: Result[Any]) -> None:
        for record in result.records:
            self.machine.apply(record, len(self.log))
            self.log.append(record)
        for event in result.volatile:
            self.machine.apply(event, -1)
        for effect in result.effects:
            if isinstance(effect, Note):
                self.notes.append(effect.message)
                continue
            self.timers.pop(effect.key, None)
            if isinstance(effect, StartTimer):
                self.timers[effect.key] = effect

    def ask(self, message: Message, version: int | None = None) -> Any:
        return self.run(self.request(message, version))

    def request(self, message: Message, version: int | None = None) -> ControllerRequest:
        return ControllerRequest(
            message,
            message.VERSIONS.high if version is None else version,
            seed=len(self.log).to_bytes(8, "big"),
            next_offset=len(self.log),
        )

    def refused(self, message: Message, version: int | None = None) -> KafkaError:
        """The error with which a request fails as a whole."""
        before = len(self.log)
        try:
            reply = self.ask(message, version)
        except KafkaError as error:
            assert len(self.log) == before
            return error
        raise AssertionError(f"not refused: {reply}")

    def register(self, broker_id: int, **changes: Any) -> int:
        self.epochs[broker_id] = self.ask(registration(broker_id, **changes)).broker_epoch
        return self.epochs[broker_id]

    def beat(self, broker_id: int, *, offset: int | None = None, **wants: Any) -> Any:
        return self.ask(
            BrokerHeartbeatRequest(
                broker_id,
                self.epochs[broker_id],
                len(self.log) if offset is None else offset,
                **wants,
            )
        )

    def join(self, broker_id: int, **changes: Any) -> None:
        self.register(broker_id, **changes)
        self.beat(broker_id)

    def expire(self, broker_id: int) -> None:
        self.now_ms += self.machine.state.settings.session_timeout_ms
        self.run(self.timers[("broker-session", broker_id)].request)

    def create(self, *topics: CreatableTopic, **options: Any) -> Any:
        return self.ask(CreateTopicsRequest(list(topics), **options))

    @property
    def image(self) -> Any:
        return self.machine.image

    def partition(self, name: str, index: int = 0) -> Any:
        return self.image.partition(name, index)
