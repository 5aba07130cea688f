"""The numbers of skylog's own APIs: one table, none used twice, none of Kafka's."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

from skylog.wire.apis import ApiKey

SCHEMAS = Path(__file__).parents[3] / "schemas"
# Whose numbers they are. Reserved ones may be free still.
NUMBERS = {
    "diskless coordinators": [*range(93, 99), 100],
    "bulk reads and writes, inspection, diskless brokers": range(500, 510),
    "tiered storage": range(510, 513),
    "migration": range(520, 526),
}
KAFKA_LAST = 92


def private_requests() -> dict[str, int]:
    schemas = [json.loads(path.read_text()) for path in SCHEMAS.glob("*.json")]
    return {one["name"]: one["apiKey"] for one in schemas if one["type"] == "request"}


def test_no_number_is_used_twice() -> None:
    twice = {key for key, count in Counter(private_requests().values()).items() if count > 1}
    assert not twice
    # A number that is used twice would make one name an alias of the other.
    assert list(ApiKey.__members__) == [key.name for key in ApiKey]


def test_every_number_is_in_the_table() -> None:
    reserved = [number for numbers in NUMBERS.values() for number in numbers]
    assert len(reserved) == len(set(reserved))
    assert set(private_requests().values()) <= set(reserved)
    assert {key for key in ApiKey if key > KAFKA_LAST} == set(private_requests().values())


def test_an_answer_has_the_number_of_its_request() -> None:
    requests = private_requests()
    for path in SCHEMAS.glob("*Response.json"):
        schema = json.loads(path.read_text())
        assert schema["apiKey"] == requests[schema["name"].replace("Response", "Request")]
