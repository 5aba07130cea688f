"""Requests in flight: one per peer, with a time limit, and a pause after each failure. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from skylog.quorum.effects import Peer, Send
from skylog.quorum.messages import FetchRequest, FetchSnapshotRequest, PeerRequest


@dataclass(frozen=True, slots=True)
class Sent:
    """A request without a response so far."""

    peer: Peer
    request: PeerRequest
    deadline_ms: int


class Outgoing:
    """A response counts only if its request is still in flight."""

    def __init__(self, request_ms: int, retry_ms: int) -> None:
        self._request_ms = request_ms
        self._retry_ms = retry_ms
        self._sent: dict[int, Sent] = {}
        # A fetch waits at the leader for new records, so other requests do not wait for it.
        self._busy: dict[tuple[int, bool], int] = {}
        self._paused: dict[int, int] = {}
        self._correlation_id = 0
        # The peer whose last request failed.
        self.unreachable: set[int] = set()

    def reset(self) -> None:
        """Requests of an earlier state are dropped."""
        self._sent.clear()
        self._busy.clear()

    def is_free(self, peer: Peer, now_ms: int, *, fetch: bool = False) -> bool:
        return (peer.id, fetch) not in self._busy and self._paused.get(peer.id, now_ms) <= now_ms

    def is_idle(self, peer: Peer) -> bool:
        return (peer.id, False) not in self._busy and peer.id not in self._paused

    @property
    def is_fetching(self) -> bool:
        return any(is_fetch(each.request) for each in self._sent.values())

    def send(self, peer: Peer, request: PeerRequest, now_ms: int) -> list[Send]:
        """Nothing is sent while the peer is busy or has just failed to help."""
        fetch = is_fetch(request)
        if not self.is_free(peer, now_ms, fetch=fetch):
            return []
        self._correlation_id += 1
        number = self._correlation_id
        self._sent[number] = Sent(peer, request, now_ms + self._request_ms)
        self._busy[peer.id, fetch] = number
        return [Send(number, peer, request)]

    def answered(self, correlation_id: int) -> Sent | None:
        """The request of this response; None if it was dropped."""
        sent = self._sent.pop(correlation_id, None)
        if sent is not None:
            del self._busy[sent.peer.id, is_fetch(sent.request)]
        return sent

    def succeeded(self, peer: Peer) -> None:
        self.unreachable.discard(peer.id)

    def failed(self, peer: Peer, now_ms: int) -> None:
        """There was no response."""
        self.unreachable.add(peer.id)
        self.pause(peer, now_ms)

    def pause(self, peer: Peer, now_ms: int) -> None:
        self._paused[peer.id] = now_ms + self._retry_ms

    def expire(self, now_ms: int) -> None:
        late = [number for number, each in self._sent.items() if each.deadline_ms <= now_ms]
        for number in late:
            sent = self.answered(number)
            if sent is not None:
                self.failed(sent.peer, now_ms)
        if self._paused:
            self._paused = {peer: end for peer, end in self._paused.items() if end > now_ms}

    @property
    def deadline_ms(self) -> int | None:
        """When a request times out, or a pause ends."""
        ends = [each.deadline_ms for each in self._sent.values()]
        ends += self._paused.values()
        return min(ends, default=None)


def is_fetch(request: PeerRequest) -> bool:
    return isinstance(request, FetchRequest | FetchSnapshotRequest)
