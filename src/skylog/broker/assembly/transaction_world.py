"""What transactions need of the broker: leaders, feature levels, producer ids, and a way to write
markers."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from skylog.broker.handlers.txn_markers import write_markers
from skylog.kernel.limits import LATE_TRANSACTION_CHECK_INTERVAL_MS
from skylog.transactions.coordinator import TransactionCoordinator
from skylog.transactions.settings import TransactionSettings

if TYPE_CHECKING:
    from skylog.broker.background.tasks import Background
    from skylog.broker.metadata.producer_ids import ProducerIds
    from skylog.broker.services import Services
    from skylog.controller.image import ClusterImage
    from skylog.kernel.clock import Clock
    from skylog.kernel.settings import BrokerSettings
    from skylog.transactions.ports import TopicPartition
    from skylog.wire.messages.write_txn_markers_request import WriteTxnMarkersRequest
    from skylog.wire.messages.write_txn_markers_response import WriteTxnMarkersResponse

TRANSACTION_VERSION: Final = "transaction.version"
MARKERS_LANE: Final = "markers"


class Markers:
    """Implements ``MarkerSender``; for partitions that this broker leads, by a direct call."""

    def __init__(self, services: Callable[[], Services]) -> None:
        self._services = services

    async def send(self, node_id: int, request: WriteTxnMarkersRequest) -> WriteTxnMarkersResponse:
        services = self._services()
        if node_id == services.settings.node.node_id:
            return await write_markers(services, request)
        answer: WriteTxnMarkersResponse = await services.peers.send(
            node_id, request, lane=MARKERS_LANE
        )
        return answer


def transaction_settings(settings: BrokerSettings) -> TransactionSettings:
    transactions = settings.transactions
    return TransactionSettings(
        timeout_ms_max=transactions.timeout_ms_max,
        id_expiration_ms=transactions.id_expiration_ms,
        topic_partitions=transactions.topic_partitions,
        add_wait_ms_max=transactions.add_wait_ms_max,
    )


def open_transactions(
    settings: BrokerSettings,
    image: ClusterImage,
    producer_ids: ProducerIds,
    clock: Clock,
    services: Callable[[], Services],
) -> TransactionCoordinator:
    """The transaction coordinator of a broker; ``services`` is called once all of it exists."""

    def leader_of(partition: TopicPartition) -> int | None:
        state = image.partition(*partition)
        return None if state is None else state.leader

    return TransactionCoordinator(
        transaction_settings(settings),
        clock,
        version=lambda: image.finalized_features().get(TRANSACTION_VERSION, 0),
        new_producer_id=producer_ids.next,
        leader_of=leader_of,
        sender=Markers(services),
    )


def start_passes(services: Services, background: Background) -> None:
    """Check periodically for transactions that have timed out, for unused transactional ids, and
    for transactions that a partition should no longer have open."""
    coordinator, settings = services.transactions, services.settings.transactions
    every = background.every
    every(settings.abort_check_interval_ms, "time out transactions", coordinator.abort_timed_out)
    every(settings.expiry_check_interval_ms, "expire transactional ids", coordinator.expire_ids)
    late = services.replication.late_transactions
    every(LATE_TRANSACTION_CHECK_INTERVAL_MS, "look for late transactions", late.review)
