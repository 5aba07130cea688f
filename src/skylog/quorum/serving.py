"""Answers other replicas: requests are handled in order, and a fetch without news waits."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.quorum.messages import (
    AddVoterRequest,
    FetchRequest,
    FetchResponse,
    PeerRequest,
    RemoveVoterRequest,
    VoterResponse,
)
from skylog.quorum.server_codec import answer, parse
from skylog.wire.messages.add_raft_voter_request import AddRaftVoterRequest
from skylog.wire.messages.update_raft_voter_request import UpdateRaftVoterRequest
from skylog.wire.schema import Message

if TYPE_CHECKING:
    from skylog.quorum.config import QuorumConfig
    from skylog.quorum.node import QuorumNode
    from skylog.quorum.peers import Peers

_FETCH_WAIT_MS_MAX: Final = 30_000


class Serving:
    """The part of a node that other replicas call."""

    def __init__(
        self, node: QuorumNode, peers: Peers, cluster_id: str, config: QuorumConfig
    ) -> None:
        self._node = node
        self._peers = peers
        self._cluster_id = cluster_id
        self._config = config
        self._news: set[asyncio.Future[None]] = set()

    def wake(self) -> None:
        """Wake waiting fetches: there are records, a higher high watermark, or another leader."""
        waiting, self._news = self._news, set()
        for future in waiting:
            if not future.done():
                future.set_result(None)

    async def serve(self, message: Any, version: int) -> Message:
        """The answer to a request; a KafkaError refuses it as a whole."""
        config = self._config
        try:
            request = parse(message, version, self._cluster_id, config.listener)
        except KafkaError as error:
            if not isinstance(message, UpdateRaftVoterRequest):
                raise
            # A refused voter still learns the leader.
            return answer(message, VoterResponse(error.code, self._node.driver.leadership))
        if isinstance(request, AddVoterRequest):
            request = await self._with_versions(request)
        bytes_max = config.fetch_bytes_max
        if hasattr(message, "max_bytes"):
            bytes_max = max(1, min(message.max_bytes, bytes_max))
        response = await self._node.driver.receive(request, bytes_max)
        if isinstance(request, FetchRequest):
            response = await self._await_news(request, response, message.max_wait_ms, bytes_max)
        if isinstance(response, VoterResponse) and _waits_for_commit(message, request):
            response = await self._await_commit(response)
        return answer(message, response)

    async def _with_versions(self, request: AddVoterRequest) -> AddVoterRequest:
        """Ask a new voter for its supported versions, which also shows that it can be reached."""
        endpoint = request.voter.endpoint(self._config.listener)
        versions = await self._peers.kraft_versions(endpoint) if endpoint is not None else None
        if versions is None:
            raise KafkaError(
                ErrorCode.REQUEST_TIMED_OUT, f"Voter {request.voter.key.id} did not answer."
            )
        return AddVoterRequest(replace(request.voter, kraft_versions=versions))

    async def _await_news(
        self, request: FetchRequest, response: FetchResponse, wait_ms: int, bytes_max: int
    ) -> FetchResponse:
        loop = asyncio.get_running_loop()
        end = loop.time() + max(0, min(wait_ms, _FETCH_WAIT_MS_MAX)) / 1000
        while not _is_news(request, response) and loop.time() < end:
            news = loop.create_future()
            self._news.add(news)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout_at(end):
                    await news
            self._news.discard(news)
            response = await self._node.driver.receive(request, bytes_max)
        return response

    async def _await_commit(self, response: VoterResponse) -> VoterResponse:
        """A change of voters is complete when it can no longer be lost."""
        end_offset, node = response.end_offset, self._node
        epoch = node.epoch
        if end_offset is None:
            return response
        loop = asyncio.get_running_loop()
        end = loop.time() + self._config.timeouts.request_ms / 1000
        while node.high_watermark < end_offset:
            if loop.time() >= end or node.epoch != epoch:
                # The outcome is unknown: the record may be committed later.
                return replace(response, error=ErrorCode.REQUEST_TIMED_OUT)
            news = loop.create_future()
            self._news.add(news)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout_at(end):
                    await news
            self._news.discard(news)
        return response


def _is_news(request: FetchRequest, response: FetchResponse) -> bool:
    return (
        response.error is not ErrorCode.NONE
        or bool(response.records)
        or response.diverging is not None
        or response.snapshot_id is not None
        or response.high_watermark > request.high_watermark
    )


def _waits_for_commit(message: Message, request: PeerRequest) -> bool:
    if isinstance(message, AddRaftVoterRequest):
        return message.ack_when_committed
    return isinstance(request, RemoveVoterRequest)
