"""Blocks of producer ids for brokers to hand out."""

from __future__ import annotations

from typing import Final

from skylog.controller.requests import ControllerRequest
from skylog.controller.state import ControllerState
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.replicated.machine import Result
from skylog.wire.messages.allocate_producer_ids_request import AllocateProducerIdsRequest
from skylog.wire.messages.allocate_producer_ids_response import AllocateProducerIdsResponse
from skylog.wire.messages.producer_ids_record import ProducerIdsRecord

BLOCK_SIZE: Final = 1_000
_PRODUCER_ID_MAX: Final = 2**63 - 1


def allocate_producer_ids(
    state: ControllerState, _request: ControllerRequest, message: AllocateProducerIdsRequest
) -> Result[AllocateProducerIdsResponse]:
    state.broker_of_epoch(message.broker_id, message.broker_epoch)
    first = state.image.producer_ids.next_producer_id
    if first > _PRODUCER_ID_MAX - BLOCK_SIZE:
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "All producer ids have been used.")
    return Result(
        AllocateProducerIdsResponse(producer_id_start=first, producer_id_len=BLOCK_SIZE),
        [ProducerIdsRecord(message.broker_id, message.broker_epoch, first + BLOCK_SIZE)],
    )
