"""A partition of ``__transaction_state`` that this broker leads."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from skylog.replicated.runtime import Runtime
from skylog.transactions.requests import TransactionRequest
from skylog.transactions.state import Transaction


@dataclass(slots=True, eq=False)
class Led:
    """One term of leading it."""

    index: int
    epoch: int
    runtime: Runtime[TransactionRequest] = field(init=False)
    loading: bool = True
    # Decisions that are being carried out, by id; futures of callers that wait for their end.
    unfinished: dict[str, tuple[Transaction, asyncio.Event]] = field(default_factory=dict)

    def forget(self) -> None:
        """Drop everything in progress."""
        for transactional_id in tuple(self.unfinished):
            self.end(transactional_id)

    def end(self, transactional_id: str) -> None:
        """A decision has been carried out."""
        self.unfinished.pop(transactional_id)[1].set()
