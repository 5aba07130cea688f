"""The whole image: the controller's state and a broker's metadata cache are the same class.

Records of a metadata transaction apply only when it ends: they are buffered until then, and an
abort drops them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from skylog.controller.image.brokers import Broker, Brokers, Node
from skylog.controller.image.configs import ConfigResource, ConfigResourceType, Configs
from skylog.controller.image.delta import Delta
from skylog.controller.image.difference import difference
from skylog.controller.image.features import Features
from skylog.controller.image.quotas import Quotas
from skylog.controller.image.security import Acls, DelegationTokens, Scram
from skylog.controller.image.topics import Partition, Topic, Topics
from skylog.kernel.ids import Uuid
from skylog.security.acls import AclBinding
from skylog.security.scram import ScramCredential
from skylog.wire.messages.abort_transaction_record import AbortTransactionRecord
from skylog.wire.messages.access_control_entry_record import AccessControlEntryRecord
from skylog.wire.messages.begin_transaction_record import BeginTransactionRecord
from skylog.wire.messages.broker_registration_change_record import BrokerRegistrationChangeRecord
from skylog.wire.messages.clear_elr_record import ClearElrRecord
from skylog.wire.messages.client_quota_record import ClientQuotaRecord
from skylog.wire.messages.config_record import ConfigRecord
from skylog.wire.messages.delegation_token_record import DelegationTokenRecord
from skylog.wire.messages.end_transaction_record import EndTransactionRecord
from skylog.wire.messages.feature_level_record import FeatureLevelRecord
from skylog.wire.messages.fence_broker_record import FenceBrokerRecord
from skylog.wire.messages.partition_change_record import PartitionChangeRecord
from skylog.wire.messages.partition_record import PartitionRecord
from skylog.wire.messages.producer_ids_record import ProducerIdsRecord
from skylog.wire.messages.register_broker_record import RegisterBrokerRecord
from skylog.wire.messages.register_controller_record import RegisterControllerRecord
from skylog.wire.messages.remove_access_control_entry_record import (
    RemoveAccessControlEntryRecord,
)
from skylog.wire.messages.remove_delegation_token_record import RemoveDelegationTokenRecord
from skylog.wire.messages.remove_topic_record import RemoveTopicRecord
from skylog.wire.messages.remove_user_scram_credential_record import (
    RemoveUserScramCredentialRecord,
)
from skylog.wire.messages.topic_record import TopicRecord
from skylog.wire.messages.unfence_broker_record import UnfenceBrokerRecord
from skylog.wire.messages.unregister_broker_record import UnregisterBrokerRecord
from skylog.wire.messages.user_scram_credential_record import UserScramCredentialRecord
from skylog.wire.schema import Message

_Apply = Callable[[Any, Delta], None]


class ClusterImage:
    """Everything in the metadata log. Lookups that handlers make per request take O(1)."""

    def __init__(self) -> None:
        self.topics = Topics()
        self.brokers = Brokers()
        self.configs = Configs()
        self.features = Features()
        self.quotas = Quotas()
        self.acls = Acls()
        self.scram = Scram()
        self.delegation_tokens = DelegationTokens()
        self.producer_ids = ProducerIdsRecord()
        self._transaction: list[Message] | None = None
        self._names: list[str] | None = None
        self._appliers = self._make_appliers()

    def apply(self, record: Message, delta: Delta | None = None) -> Delta:
        """Apply one record; what it changes is added to ``delta``, a new one if none is given."""
        delta = Delta() if delta is None else delta
        match record:
            case BeginTransactionRecord():
                self._transaction = []
            case AbortTransactionRecord():
                self._transaction = None
            case EndTransactionRecord():
                pending, self._transaction = self._transaction or [], None
                for held in pending:
                    self._apply(held, delta)
            case _ if self._transaction is not None:
                self._transaction.append(record)
            case _:
                self._apply(record, delta)
        return delta

    def snapshot(self) -> Iterator[Message]:
        """The records that rebuild this image, in an order that can be applied."""
        for family in (
            self.features,
            self.brokers,
            self.topics,
            self.configs,
            self.quotas,
            self.acls,
            self.scram,
            self.delegation_tokens,
        ):
            yield from family.records()
        if self.producer_ids.next_producer_id > 0:
            yield self.producer_ids

    def replace(self, records: Iterable[Message]) -> Delta:
        """Replace the contents by a snapshot's; holders of this image see the new state."""
        latest = ClusterImage()
        for record in records:
            latest.apply(record)
        delta = difference(self, latest)
        self.__dict__.update(latest.__dict__)
        self._appliers = self._make_appliers()
        return delta

    @property
    def in_transaction(self) -> bool:
        return self._transaction is not None

    def topic(self, name: str) -> Topic | None:
        return self.topics.by_name.get(name)

    def topic_by_id(self, topic_id: Uuid) -> Topic | None:
        return self.topics.by_id.get(topic_id)

    def topic_name(self, topic_id: Uuid) -> str | None:
        topic = self.topics.by_id.get(topic_id)
        return None if topic is None else topic.name

    def topic_id(self, name: str) -> Uuid | None:
        topic = self.topics.by_name.get(name)
        return None if topic is None else topic.topic_id

    def topic_names(self) -> list[str]:
        """All names, sorted; sorted once after a change, on demand."""
        if self._names is None:
            self._names = sorted(self.topics.by_name)
        return self._names

    def partition(self, name: str, index: int) -> Partition | None:
        return self.topics.partition(name, index)

    def broker(self, broker_id: int) -> Broker | None:
        return self.brokers.by_id.get(broker_id)

    def endpoints(self, broker_ids: Iterable[int], listener: str) -> list[Node]:
        """The addresses of live brokers with such a listener."""
        found = (self._alive_node(broker_id, listener) for broker_id in broker_ids)
        return [node for node in found if node is not None]

    def alive_nodes(self, listener: str) -> list[Node]:
        return self.endpoints(sorted(self.brokers.by_id), listener)

    def nodes(self, listener: str) -> list[Node]:
        """All registered brokers with such a listener, including fenced ones."""
        found = (
            self.brokers.by_id[broker_id].node(listener) for broker_id in sorted(self.brokers.by_id)
        )
        return [node for node in found if node is not None]

    def is_alive(self, broker_id: int) -> bool:
        broker = self.brokers.by_id.get(broker_id)
        return broker is not None and not broker.fenced

    def config_overrides(self, resource_type: int, name: str) -> Mapping[str, str]:
        return self.configs.of(ConfigResource(resource_type, name))

    def topic_configs(self, name: str) -> Mapping[str, str]:
        return self.configs.of(ConfigResource(ConfigResourceType.TOPIC, name))

    def finalized_features(self) -> Mapping[str, int]:
        return self.features.levels

    def acl_bindings(self) -> Iterable[AclBinding]:
        return self.acls.by_id.values()

    def scram_credential(self, user: str, mechanism: int) -> ScramCredential | None:
        return self.scram.credential(user, mechanism)

    def _alive_node(self, broker_id: int, listener: str) -> Node | None:
        broker = self.brokers.by_id.get(broker_id)
        return None if broker is None or broker.fenced else broker.node(listener)

    def _apply(self, record: Message, delta: Delta) -> None:
        """Records without information for us (NoOp, ZooKeeper migration) are skipped."""
        applier = self._appliers.get(type(record))
        if applier is not None:
            applier(record, delta)

    def _make_appliers(self) -> dict[type[Message], _Apply]:
        return {
            TopicRecord: self._create_topic,
            RemoveTopicRecord: self._remove_topic,
            PartitionRecord: self.topics.apply_partition,
            PartitionChangeRecord: self.topics.apply_change,
            ClearElrRecord: self.topics.apply_clear_elr,
            RegisterBrokerRecord: self.brokers.apply_register,
            UnregisterBrokerRecord: self.brokers.apply_unregister,
            BrokerRegistrationChangeRecord: self.brokers.apply_change,
            FenceBrokerRecord: self.brokers.apply_fence,
            UnfenceBrokerRecord: self.brokers.apply_unfence,
            RegisterControllerRecord: self.brokers.apply_controller,
            ConfigRecord: self.configs.apply,
            FeatureLevelRecord: self.features.apply,
            ClientQuotaRecord: self.quotas.apply,
            AccessControlEntryRecord: self.acls.apply_add,
            RemoveAccessControlEntryRecord: self.acls.apply_remove,
            UserScramCredentialRecord: self.scram.apply_set,
            RemoveUserScramCredentialRecord: self.scram.apply_remove,
            DelegationTokenRecord: self.delegation_tokens.apply_set,
            RemoveDelegationTokenRecord: self.delegation_tokens.apply_remove,
            ProducerIdsRecord: self._take_producer_ids,
        }

    def _create_topic(self, record: TopicRecord, delta: Delta) -> None:
        self._names = None
        self.topics.apply_topic(record, delta)

    def _remove_topic(self, record: RemoveTopicRecord, delta: Delta) -> None:
        self._names = None
        topic = self.topics.apply_remove(record, delta)
        self.configs.forget(ConfigResource(ConfigResourceType.TOPIC, topic.name), delta)

    def _take_producer_ids(self, record: ProducerIdsRecord, _delta: Delta) -> None:
        self.producer_ids = record
