"""Client quotas for handlers: record what a request used, get how long its client must wait."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skylog.kernel.rates import INT32_MAX
from skylog.security.principal import principal_name
from skylog.security.quotas import UNLIMITED, ClientQuotas

if TYPE_CHECKING:
    from skylog.broker.net.context import RequestContext
    from skylog.kernel.clock import Clock


class QuotaGate:
    """The quotas of one broker."""

    def __init__(self, quotas: ClientQuotas, clock: Clock) -> None:
        self._quotas = quotas
        self._clock = clock

    def produced(self, context: RequestContext, request_bytes: int) -> int:
        """Count a Produce request; the milliseconds for which its client must wait."""
        quota = self._quotas.produce
        if not quota.enabled:
            return 0
        user = principal_name(context.principal)
        return quota.record(user, context.client_id, request_bytes, self._clock.now_ms())

    def fetch_bytes_max(self, context: RequestContext) -> int:
        """The most a fetch may return without being throttled for certain."""
        quota = self._quotas.fetch
        if not quota.enabled:
            return INT32_MAX
        limit = quota.window_value_max(principal_name(context.principal), context.client_id)
        return INT32_MAX if limit == UNLIMITED else min(int(limit), INT32_MAX)

    def fetched(self, context: RequestContext, read_bytes: int) -> int:
        """Count a Fetch response; a throttled client gets an empty one, for which nothing is
        counted."""
        quota = self._quotas.fetch
        if not quota.enabled:
            return 0
        user, now_ms = principal_name(context.principal), self._clock.now_ms()
        wait_ms = quota.record(user, context.client_id, read_bytes, now_ms)
        if wait_ms > 0:
            quota.record_unchecked(user, context.client_id, -read_bytes, now_ms)
        return wait_ms

    @property
    def counts_time(self) -> bool:
        """Whether any request quota is set; if not, no time is measured."""
        return self._quotas.request.enabled

    def worked(self, context: RequestContext, seconds: float) -> None:
        """Count the time that a request took from all others on the event loop."""
        user, now_ms = principal_name(context.principal), self._clock.now_ms()
        nanoseconds = int(seconds * 1e9)
        wait_ms = self._quotas.record_request_time(user, context.client_id, nanoseconds, now_ms)
        context.throttle_ms = max(context.throttle_ms, wait_ms)

    def mutated(self, context: RequestContext, changes: int, *, strict: bool) -> None:
        """Count topic mutations; THROTTLING_QUOTA_EXCEEDED for clients that understand it."""
        now_ms = self._clock.now_ms()
        user = principal_name(context.principal)
        account = self._quotas.mutations.request(user, context.client_id, now_ms, strict=strict)
        try:
            account.record(changes, now_ms)
        finally:
            context.throttle_ms = max(context.throttle_ms, account.throttle_ms(now_ms))
