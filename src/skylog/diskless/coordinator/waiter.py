"""Who waits for a coordinator."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

from skylog.kernel.errors import KafkaError


@dataclass(slots=True)
class Waiter:
    """A request and its caller."""

    request: Any
    future: asyncio.Future[Any]
    # Where the high watermark must be before the outcome may be told; a strict read looks at the
    # cache, which must be there too.
    end_offset: int = 0
    outcome: Any = None
    # The request may have taken effect, whoever leads next.
    appended: bool = False

    def settle(self, outcome: Any) -> None:
        if self.future.done():  # the caller has gone away
            return
        if isinstance(outcome, KafkaError):
            self.future.set_exception(outcome)
        else:
            self.future.set_result(outcome)
