"""Quotas: Kafka's arithmetic against its own results, precedence, throttling, limits."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skylog.kernel import limits
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.rates import INT32_MAX, Rate, TokenBucket, throttle_ms
from skylog.security.quotas import DEFAULT, UNLIMITED, ClientQuota, ClientQuotas, MutationQuota

GOLDEN = Path(__file__).parents[2] / "golden" / "quotas" / "rates.txt"
NOW = 1_700_000_000_000


def test_rates_and_buckets_agree_with_kafka() -> None:
    rates: dict[tuple[int, int], tuple[Rate, TokenBucket]] = {}
    rows = [line.split() for line in GOLDEN.read_text().splitlines() if line[0] != "#"]
    assert len(rows) == 240
    for row in rows:
        samples, window_ms, quota, now = map(int, row[:4])
        value, expected_rate, elapsed, throttle, tokens = map(float, row[4:])
        rate, bucket = rates.setdefault(
            (samples, window_ms), (Rate(samples, window_ms), TokenBucket(samples, window_ms))
        )
        rate.record(value, now)
        bucket.record(value, quota, now)
        observed = rate.measure(now)
        assert observed == pytest.approx(expected_rate)
        assert rate.elapsed_ms(now) == elapsed
        assert throttle_ms(observed, quota, rate.elapsed_ms(now)) == throttle
        assert bucket.measure(quota, now) == pytest.approx(tokens)


# From the most specific to the least; the last column is who shares the measurement.
PRECEDENCE = [
    ({"user": "u", "client-id": "c"}, 1.0),
    ({"user": "u", "client-id": None}, 2.0),
    ({"user": "u"}, 3.0),
    ({"user": None, "client-id": "c"}, 4.0),
    ({"user": None, "client-id": None}, 5.0),
    ({"user": None}, 6.0),
    ({"client-id": "c"}, 7.0),
    ({"client-id": None}, 8.0),
]


@pytest.mark.parametrize("first", range(len(PRECEDENCE)))
def test_the_most_specific_quota_counts(first: int) -> None:
    quotas = ClientQuotas()
    for parts, value in PRECEDENCE[first:]:
        assert quotas.update(parts, "producer_byte_rate", value)
    assert quotas.produce.limit("u", "c") == PRECEDENCE[first][1]
    assert quotas.fetch.limit("u", "c") == UNLIMITED


def test_removing_quotas_uncovers_the_next() -> None:
    quotas = ClientQuotas()
    for parts, value in PRECEDENCE:
        quotas.update(parts, "consumer_byte_rate", value)
    for parts, value in PRECEDENCE:
        assert quotas.fetch.limit("u", "c") == value
        quotas.update(parts, "consumer_byte_rate", None)
    assert quotas.fetch.limit("u", "c") == UNLIMITED
    assert not quotas.fetch.enabled


def test_invalid_client_quotas_are_refused() -> None:
    quotas = ClientQuotas()
    assert not quotas.update({"ip": "1.2.3.4"}, "connection_creation_rate", 1.0)
    assert not quotas.update({"user": "u"}, "no_such_key", 1.0)
    assert not quotas.update({}, "producer_byte_rate", 1.0)
    assert not quotas.update({"user": "u", "planet": "x"}, "producer_byte_rate", 1.0)


def test_a_users_clients_share_the_users_quota_but_not_a_default_pair() -> None:
    shared = ClientQuota(11, 1)
    shared.update(("u", None), 1000)
    assert shared.record("u", "a", 10_000, NOW) == 0
    assert shared.record("u", "b", 10_000, NOW) > 0
    apart = ClientQuota(11, 1)
    apart.update((DEFAULT, DEFAULT), 1000)
    assert apart.record("u", "a", 10_000, NOW) == 0
    assert apart.record("u", "b", 10_000, NOW) == 0
    assert apart.record("u", "b", 10_000, NOW) > 0


def test_throttle_is_the_silence_that_brings_the_rate_down() -> None:
    quota = ClientQuota(11, 1)
    quota.update((None, DEFAULT), 1000)
    # 30,000 bytes in what counts as ten seconds: 3000/s, two windows of ten seconds too many.
    assert quota.record("u", "c", 30_000, NOW) == 20_000
    assert quota.record("u", "c", 0, NOW + 20_000) == 0


def test_taking_back_what_was_counted() -> None:
    quota = ClientQuota(11, 1)
    quota.update((None, "c"), 1000)
    assert quota.record("u", "c", 30_000, NOW) == 20_000
    quota.record_unchecked("u", "c", -30_000, NOW)
    assert quota.record("u", "c", 10_000, NOW) == 0


def test_no_client_id_has_no_client_quota() -> None:
    quota = ClientQuota(11, 1)
    quota.update((None, DEFAULT), 1)
    assert quota.record("u", None, 1_000_000, NOW) == 0
    assert quota.record("u", "c", 1_000_000, NOW) > 0


def test_window_value_max() -> None:
    quota = ClientQuota(11, 2)
    assert quota.window_value_max("u", "c") == UNLIMITED
    quota.update(("u", None), 500)
    assert quota.window_value_max("u", "c") == 500 * 10 * 2


def test_request_time_waits_at_most_a_window() -> None:
    quotas = ClientQuotas()
    assert quotas.record_request_time("u", "c", 10**12, NOW) == 0
    quotas.update({"user": "u"}, "request_percentage", 1.0)
    assert quotas.record_request_time("u", "c", 10**12, NOW) == 1000
    assert quotas.record_request_time("v", "c", 10**12, NOW) == 0


def test_zero_quota_waits_as_long_as_an_answer_can_say() -> None:
    assert throttle_ms(1, 0, 1000) == INT32_MAX
    assert throttle_ms(1e300, 1, 1000) == INT32_MAX
    assert throttle_ms(1e300, 1e-320, 1000) == INT32_MAX


def test_measurements_are_bounded_and_idle_ones_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "QUOTA_MEASUREMENTS_MAX", 3)
    quota = ClientQuota(11, 1)
    quota.update((None, DEFAULT), 1000)
    for client in ("a", "b", "c"):
        quota.record("u", client, 20_000, NOW)
    assert quota.record("u", "a", 0, NOW) == 10_000
    quota.record("u", "d", 1, NOW)  # drops b, the one that was not used for the longest time
    assert quota.record("u", "a", 0, NOW) == 10_000
    assert quota.record("u", "b", 0, NOW) == 0
    assert len(quota._rates) == 3
    quota.record("u", "e", 1, NOW + 3_600_000)
    assert len(quota._rates) == 1


def test_strict_mutations_are_refused_once_the_bucket_is_overdrawn() -> None:
    quota = MutationQuota(10, 1)
    quota.update(("u", None), 2)  # burst: 20
    request = quota.request("u", "c", NOW, strict=True)
    request.record(30, NOW)
    assert request.throttle_ms(NOW) == 0
    with pytest.raises(KafkaError) as refused:
        request.record(1, NOW)
    assert refused.value.code is ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert request.throttle_ms(NOW) == 5000
    assert request.throttle_ms(NOW + 4000) == 1000
    later = quota.request("u", "c", NOW + 5000, strict=True)
    later.record(1, NOW + 5000)


def test_lenient_mutations_are_done_and_wait() -> None:
    quota = MutationQuota(10, 1)
    quota.update(("u", None), 2)
    request = quota.request("u", "c", NOW, strict=False)
    request.record(30, NOW)
    assert request.throttle_ms(NOW) == 5000
    free = quota.request("v", "c", NOW, strict=True)
    free.record(10**9, NOW)
    assert free.throttle_ms(NOW) == 0


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 200), st.integers(0, 20_000)), min_size=1, max_size=60))
def test_a_client_that_waits_as_told_stays_within_its_quota(
    requests: list[tuple[int, int]],
) -> None:
    """Over any time it gets the quota, and on top of that what a window holds and one request."""
    quota = ClientQuota(11, 1)
    quota.update((DEFAULT, None), 1000)
    burst = quota.window_value_max("u", "c") + 1000 + 20_000
    now, total = NOW, 0
    for delay_ms, value in requests:
        now += delay_ms
        total += value
        now += quota.record("u", "c", value, now)
        assert total <= 1000 * (now - NOW) / 1000 + burst
