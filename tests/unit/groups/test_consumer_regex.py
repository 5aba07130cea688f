"""Subscriptions by regular expression: RE2, resolved periodically against the existing topics."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any

import pytest

from skylog.groups.consumer.apis import ConsumerGroupApis
from skylog.groups.consumer.re2 import compile_regex, matcher
from skylog.groups.consumer.requests import RegexesResolved
from skylog.groups.requests import Request
from skylog.groups.settings import GroupSettings
from skylog.kernel.clock import ManualClock
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.limits import GROUP_REGEX_CHARACTERS_MAX
from skylog.wire.messages.consumer_group_describe_request import ConsumerGroupDescribeRequest
from skylog.wire.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from tests.unit.groups.consumer_support import ConsumerBench, EditableTopics, topic_id
from tests.unit.groups.support import GROUP, Call

REFRESH_MS = 10_000


@pytest.mark.parametrize("regex", ["(", "[a", "a{2,1}", "(?=a)", r"(a)\1", "a**", "a{5000}", "\\"])
def test_bad_expressions(regex: str) -> None:
    with pytest.raises(KafkaError) as caught:
        compile_regex(regex)
    assert caught.value.code is ErrorCode.INVALID_REGULAR_EXPRESSION
    assert f"SubscribedTopicRegex `{regex}` is not a valid regular expression: " in str(
        caught.value
    )


def test_expressions_are_short() -> None:
    compile_regex("a" * GROUP_REGEX_CHARACTERS_MAX)
    with pytest.raises(KafkaError) as caught:
        compile_regex("a" * (GROUP_REGEX_CHARACTERS_MAX + 1))
    assert caught.value.code is ErrorCode.INVALID_REGULAR_EXPRESSION
    assert len(str(caught.value)) < 200


def test_an_expression_that_would_take_for_ever_elsewhere() -> None:
    # Exponential for backtracking engines; a client's pattern must not block a broker.
    assert not compile_regex("(a+)+$")("a" * 200 + "b")


@pytest.mark.parametrize(
    ("regex", "expected"),
    [
        ("apple", {"apple"}),
        ("a.*", {"apple", "apples", "an-apple"}),
        ("(?i)APPLE", {"apple", "Apple"}),
        ("", set()),
        ("(", set()),
    ],
)
def test_whole_names_match(regex: str, expected: set[str]) -> None:
    assert set(filter(matcher(regex), ["apple", "apples", "an-apple", "Apple"])) == expected


def by_regex(bench: ConsumerBench, member: str, regex: str, epoch: int = 0) -> Call:
    if epoch:
        return bench.beat(member, epoch, subscribed_topic_regex=regex)
    return bench.enter(member, subscribed_topic_names=None, subscribed_topic_regex=regex)


def resolve(bench: ConsumerBench, **topics: set[str]) -> None:
    """The topics that the coordinator finds; keyword arguments are expressions."""
    found = {regex: frozenset(names) for regex, names in topics.items()}
    bench.run(RegexesResolved(GROUP, bench.topics.version, bench.now_ms, found))


class Asked(ConsumerBench):
    """Records which expressions a heartbeat wants resolved."""

    def ask(self, message: Any, version: int = 5) -> Call:
        call = super().ask(message, version)
        self.wanted = sorted(getattr(call.reply, "regexes", ()))
        return call


def test_a_pattern_is_looked_up_and_then_followed() -> None:
    bench = Asked()
    joined = by_regex(bench, "a", "t")
    assert joined.reply.member_epoch == 1
    assert bench.wanted == ["t"]
    by_regex(bench, "b", "t")
    assert bench.wanted == [], "it is being looked up"
    resolve(bench, t={"t"})
    first = bench.beat("a", 1)
    assert len(first.reply.assignment.topic_partitions[0].partitions) == 2
    assert bench.consumers.regexes["t"].topics == {"t"}
    assert bench.reload().consumers.regexes == bench.consumers.regexes
    assert bench.consumers.is_subscribed_to("t")


def test_patterns_are_looked_up_when_topics_come_and_not_too_often() -> None:
    bench = Asked()
    by_regex(bench, "a", "t")
    resolve(bench, t={"t"})
    epoch = bench.beat("a", 1).reply.member_epoch
    bench.advance(REFRESH_MS)
    bench.topics.put("t2", topic_id(2), 1)
    bench.beat("a", epoch)
    assert bench.wanted == [], "not yet"
    bench.advance(1)
    bench.beat("a", epoch)
    assert bench.wanted == ["t"]
    resolve(bench, t={"t"})
    assert bench.consumers.epoch == epoch, "nothing else matched"
    for _ in range(GroupSettings().regex_refresh_interval_ms // 30_000):
        bench.advance(30_000)
        bench.beat("a", epoch)
        assert bench.wanted == []
    bench.advance(30_000)
    bench.beat("a", epoch)
    assert bench.wanted == ["t"], "in any case"


def test_a_look_up_that_failed_is_tried_again() -> None:
    bench = Asked()
    by_regex(bench, "a", "t")
    bench.run(RegexesResolved(GROUP))
    bench.beat("a", 1)
    assert bench.wanted == [], "not at once"
    bench.advance(REFRESH_MS)
    bench.beat("a", 1)
    assert bench.wanted == ["t"]


def test_a_group_has_so_many_patterns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("skylog.groups.consumer.pattern_lookup.GROUP_REGEXES_MAX", 2)
    bench = Asked()
    by_regex(bench, "a", "t")
    by_regex(bench, "b", "u")
    assert by_regex(bench, "c", "v").code is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert by_regex(bench, "c", "u").code is ErrorCode.NONE


def test_the_last_subscriber_takes_its_pattern_along() -> None:
    bench = Asked()
    by_regex(bench, "a", "t")
    by_regex(bench, "b", "t")
    resolve(bench, t={"t"})
    bench.beat("a", -1)
    assert set(bench.consumers.regexes) == {"t"}
    bench.beat("b", -1)
    assert not bench.consumers.regexes
    assert not bench.consumers.is_subscribed_to("t")
    assert not bench.reload().consumers.regexes


def test_names_and_patterns_together() -> None:
    bench = Asked()
    bench.topics.put("u", topic_id(2), 1)
    bench.enter("a", "u", subscribed_topic_regex="t")
    resolve(bench, t={"t"})
    found = bench.beat("a", 2).reply.assignment.topic_partitions
    assert {t.topic_id for t in found} == {topic_id(1), topic_id(2)}


def test_a_member_that_changes_to_a_known_pattern_and_to_none() -> None:
    bench = Asked()
    bench.topics.put("u", topic_id(2), 1)
    by_regex(bench, "a", "t")
    resolve(bench, t={"t"})
    member = bench.member("b", "u")
    epoch = bench.consumers.epoch
    by_regex(bench, "b", "t", member.epoch)
    assert bench.consumers.epoch == epoch + 1
    by_regex(bench, "b", "", bench.of("b").epoch)
    assert bench.consumers.epoch == epoch + 2
    assert by_regex(bench, "b", "(", bench.of("b").epoch).code is (
        ErrorCode.INVALID_REGULAR_EXPRESSION
    )
    assert bench.of("b").regex == ""


def test_matches_of_an_unused_pattern() -> None:
    bench = Asked()
    by_regex(bench, "a", "t")
    bench.beat("a", 1, subscribed_topic_regex="", subscribed_topic_names=["t"])
    resolve(bench, t={"t"})
    assert not bench.consumers.regexes
    bench.beat("a", -1)
    bench.run(RegexesResolved("no group"))


class Machines:
    """A coordinator whose machines are all one bench."""

    def __init__(self, bench: ConsumerBench) -> None:
        self.bench = bench
        self.tasks: list[asyncio.Task[None]] = []

    async def submit(self, group_id: str, request: Any) -> Any:
        call = self.bench.run(request)
        if call.error is not None:
            raise KafkaError(call.error)
        return call.reply

    def by_partition(self, group_ids: Iterable[str]) -> list[list[str]]:
        return [[group_id] for group_id in group_ids]

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        self.tasks.append(asyncio.get_running_loop().create_task(work))


async def test_the_coordinator_looks_topics_up_that_the_member_may_see(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("skylog.groups.consumer.apis.GROUP_REGEX_NAMES_PER_TURN", 2)
    topics = EditableTopics()
    for number, name in enumerate(["t1", "t2", "t3", "secret-t", "other"], 1):
        topics.put(name, topic_id(number), 1)
    bench = ConsumerBench(topics=topics)
    machines = Machines(bench)
    apis = ConsumerGroupApis(bench.settings, machines, topics, ManualClock())
    message = ConsumerGroupHeartbeatRequest(
        GROUP, "a", 0, None, None, 1_000, None, ".*t.*", None, []
    )
    answer = await apis.heartbeat(Request(message, 1), lambda name: name != "secret-t")
    assert answer.error_code == 0
    await asyncio.gather(*machines.tasks)
    assert bench.consumers.regexes[".*t.*"].topics == {"t1", "t2", "t3", "other"}
    described = await apis.describe(Request(ConsumerGroupDescribeRequest([GROUP, ""]), 1))
    assert [group.error_code for group in described] == [0, ErrorCode.INVALID_GROUP_ID]


async def test_a_failure_does_not_keep_a_group_looking() -> None:
    bench = ConsumerBench()
    machines = Machines(bench)
    apis = ConsumerGroupApis(bench.settings, machines, bench.topics, ManualClock())

    def broken(name: str) -> bool:
        raise ZeroDivisionError

    message = ConsumerGroupHeartbeatRequest(GROUP, "a", 0, None, None, 1_000, None, "t", None, [])
    await apis.heartbeat(Request(message, 1), broken)
    await machines.tasks[0]
    assert not bench.consumers.resolving
