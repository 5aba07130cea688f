"""Client quotas as Kafka's ClientQuotaManager computes them; the time is a parameter.

A quota belongs to an entity: a user, a client id, both, or the default of either. The most specific
matching quota applies, in this order:

1. user, client id        4. default user, client id        7. client id
2. user, default client   5. default user, default client   8. default client id
3. user                   6. default user

Requests under the same quota share one measurement, unless the quota is a default: then each user,
client id or pair has its own.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from enum import Enum
from typing import Final, Generic, TypeVar

from skylog.kernel import limits
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.rates import Rate, TokenBucket, rounded_ms, throttle_ms

USER: Final = "user"
CLIENT_ID: Final = "client-id"
IP: Final = "ip"
UNLIMITED: Final = float(2**63 - 1)
# A measurement that is unused for an hour is dropped, as in Kafka.
_IDLE_MS_MAX: Final = 3_600_000
_PERCENT_PER_NANOSECOND: Final = 100 / 1_000_000_000


class QuotaType(Enum):
    """The limited quantity; the value is the key in AlterClientQuotas and in metadata records."""

    PRODUCE = "producer_byte_rate"
    FETCH = "consumer_byte_rate"
    REQUEST = "request_percentage"
    CONTROLLER_MUTATION = "controller_mutation_rate"


class Default(Enum):
    """Matches every user, or every client id, without a quota of its own."""

    DEFAULT = "<default>"


DEFAULT: Final = Default.DEFAULT
Name = str | Default | None  # None: not part of the entity
Entity = tuple[Name, Name]  # user, client id
_Tags = tuple[str, str]


def entity_of(parts: Mapping[str, str | None]) -> Entity | None:
    """The entity of a metadata record, whose null names mean the default; None for other
    entities."""
    if IP in parts or not parts.keys() <= {USER, CLIENT_ID} or not parts:
        return None

    def name(kind: str) -> Name:
        if kind not in parts:
            return None
        found = parts[kind]
        return DEFAULT if found is None else found

    return name(USER), name(CLIENT_ID)


class _Limits:
    """The configured quotas of one type, and the lookup of a request's quota."""

    def __init__(self) -> None:
        self._quotas: dict[Entity, float] = {}

    def __bool__(self) -> bool:
        return bool(self._quotas)

    def update(self, entity: Entity, value: float | None) -> None:
        if value is None:
            self._quotas.pop(entity, None)
        else:
            self._quotas[entity] = value

    def tags(self, user: str, client_id: str) -> _Tags:
        """The key of a shared measurement: those of user and client id that the quota
        distinguishes."""
        quotas = self._quotas
        if (user, client_id) in quotas or (user, DEFAULT) in quotas:
            return user, client_id
        if (user, None) in quotas:
            return user, ""
        if (DEFAULT, client_id) in quotas or (DEFAULT, DEFAULT) in quotas:
            return user, client_id
        if (DEFAULT, None) in quotas:
            return user, ""
        return "", client_id

    def limit(self, tags: _Tags) -> float:
        user, client_id = tags
        keys: tuple[Entity, ...] = ()
        if user and client_id:
            keys = (
                (user, client_id),
                (user, DEFAULT),
                (DEFAULT, client_id),
                (DEFAULT, DEFAULT),
            )
        elif user:
            keys = ((user, None), (DEFAULT, None))
        elif client_id:
            keys = ((None, client_id), (None, DEFAULT))
        return next((self._quotas[key] for key in keys if key in self._quotas), UNLIMITED)


class ClientQuota:
    """The quota of one type: produce, fetch or request time."""

    def __init__(
        self, window_count: int, window_seconds: int, *, throttle_ms_max: int | None = None
    ) -> None:
        self._window_count = window_count
        self._window_ms = window_seconds * 1000
        self._throttle_ms_max = throttle_ms_max
        self._limits = _Limits()
        self._rates: _Recent[Rate] = _Recent()

    @property
    def enabled(self) -> bool:
        return bool(self._limits)

    def update(self, entity: Entity, value: float | None) -> None:
        """Set or, with None, remove an entity's quota."""
        self._limits.update(entity, value)

    def limit(self, user: str, client_id: str | None) -> float:
        """The quota of a request; ``UNLIMITED`` if there is none."""
        return self._limits.limit(self._limits.tags(user, client_id or ""))

    def record(self, user: str, client_id: str | None, value: float, now_ms: int) -> int:
        """Record a client's usage, or intended usage; returns the milliseconds to throttle it."""
        if not self._limits:
            return 0
        tags = self._limits.tags(user, client_id or "")
        rate = self._rate(tags, now_ms)
        rate.record(value, now_ms)
        quota = self._limits.limit(tags)
        wait_ms = throttle_ms(rate.measure(now_ms), quota, rate.elapsed_ms(now_ms))
        return wait_ms if self._throttle_ms_max is None else min(wait_ms, self._throttle_ms_max)

    def record_unchecked(self, user: str, client_id: str | None, value: float, now_ms: int) -> None:
        """Record now, throttle the next request. A negative value reverts what was recorded."""
        if self._limits:
            tags = self._limits.tags(user, client_id or "")
            self._rate(tags, now_ms).record(value, now_ms)

    def window_value_max(self, user: str, client_id: str | None) -> float:
        """The most that can be recorded at once without certain throttling."""
        limit = self.limit(user, client_id)
        if limit == UNLIMITED:
            return UNLIMITED
        return limit * (self._window_count - 1) * self._window_ms / 1000

    def _rate(self, tags: _Tags, now_ms: int) -> Rate:
        rate = self._rates.get(tags, now_ms)
        return rate or self._rates.add(tags, Rate(self._window_count, self._window_ms), now_ms)


class MutationQuota:
    """The quota on topic and partition changes: a token bucket per client."""

    def __init__(self, window_count: int, window_seconds: int) -> None:
        self._window_count = window_count
        self._window_ms = window_seconds * 1000
        self._limits = _Limits()
        self._buckets: _Recent[TokenBucket] = _Recent()

    def update(self, entity: Entity, value: float | None) -> None:
        """Set or, with None, remove an entity's quota."""
        self._limits.update(entity, value)

    def request(
        self, user: str, client_id: str | None, now_ms: int, *, strict: bool
    ) -> MutationRequest:
        """The account of one request. Strict requests are refused; others are only throttled
        afterwards."""
        if not self._limits:
            return MutationRequest(None, UNLIMITED, strict=strict)
        tags = self._limits.tags(user, client_id or "")
        bucket = self._buckets.get(tags, now_ms) or self._buckets.add(
            tags, TokenBucket(self._window_count, self._window_ms), now_ms
        )
        return MutationRequest(bucket, self._limits.limit(tags), strict=strict)


class MutationRequest:
    """Counts the changes of one request; a partition created or deleted is one change."""

    def __init__(self, bucket: TokenBucket | None, quota: float, *, strict: bool) -> None:
        self._bucket = bucket if quota != UNLIMITED else None
        self._quota = quota
        self._strict = strict
        self._throttle_ms = 0
        self._recorded_ms = 0

    def record(self, changes: float, now_ms: int) -> None:
        """Record changes. THROTTLING_QUOTA_EXCEEDED if strict and the bucket is overdrawn."""
        if self._bucket is None:
            return
        if not self._strict:
            self._bucket.record(changes, self._quota, now_ms)
        tokens = self._bucket.measure(self._quota, now_ms)
        if tokens < 0:
            self._throttle_ms = rounded_ms(-tokens / self._quota * 1000)
            self._recorded_ms = now_ms
            if self._strict:
                raise KafkaError(
                    ErrorCode.THROTTLING_QUOTA_EXCEEDED,
                    "The throttling quota has been exceeded.",
                )
        elif self._strict:
            self._bucket.record(changes, self._quota, now_ms)

    def throttle_ms(self, now_ms: int) -> int:
        """The remaining throttle time, from the last change that exceeded the quota."""
        return max(0, self._throttle_ms - (now_ms - self._recorded_ms))


class ClientQuotas:
    """All client quotas of a broker, updated from the metadata image."""

    def __init__(
        self,
        window_count: int = 11,
        window_seconds: int = 1,
        controller_window_count: int = 11,
        controller_window_seconds: int = 1,
    ) -> None:
        self.produce = ClientQuota(window_count, window_seconds)
        self.fetch = ClientQuota(window_count, window_seconds)
        # Used time cannot be reclaimed: a client waits at most one window for it.
        self.request = ClientQuota(
            window_count, window_seconds, throttle_ms_max=window_seconds * 1000
        )
        self.mutations = MutationQuota(controller_window_count, controller_window_seconds)

    def update(self, parts: Mapping[str, str | None], key: str, value: float | None) -> bool:
        """Set a quota from metadata; False for entities or keys that are not a client's."""
        entity = entity_of(parts)
        by_key: dict[str, ClientQuota | MutationQuota] = {
            QuotaType.PRODUCE.value: self.produce,
            QuotaType.FETCH.value: self.fetch,
            QuotaType.REQUEST.value: self.request,
            QuotaType.CONTROLLER_MUTATION.value: self.mutations,
        }
        quota = by_key.get(key)
        if entity is None or quota is None:
            return False
        quota.update(entity, value)
        return True

    def record_request_time(
        self, user: str, client_id: str | None, nanoseconds: int, now_ms: int
    ) -> int:
        """Record the time that a request took; returns the milliseconds to throttle its client."""
        percentage = nanoseconds * _PERCENT_PER_NANOSECOND
        return self.request.record(user, client_id, percentage, now_ms)


T = TypeVar("T")


class _Recent(Generic[T]):
    """Measurements by client, least recently used first; idle and surplus ones are dropped."""

    def __init__(self) -> None:
        self._entries: OrderedDict[_Tags, tuple[T, list[int]]] = OrderedDict()

    def get(self, tags: _Tags, now_ms: int) -> T | None:
        entry = self._entries.get(tags)
        if entry is None:
            return None
        entry[1][0] = now_ms
        self._entries.move_to_end(tags)
        return entry[0]

    def add(self, tags: _Tags, measurement: T, now_ms: int) -> T:
        self._drop_idle(now_ms)
        self._entries[tags] = (measurement, [now_ms])
        if len(self._entries) > limits.QUOTA_MEASUREMENTS_MAX:
            self._entries.popitem(last=False)
        return measurement

    def _drop_idle(self, now_ms: int) -> None:
        while self._entries:
            oldest = next(iter(self._entries))
            if now_ms - self._entries[oldest][1][0] < _IDLE_MS_MAX:
                return
            del self._entries[oldest]

    def __len__(self) -> int:
        return len(self._entries)
