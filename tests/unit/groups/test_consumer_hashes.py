"""The hash of a group's topics is Kafka's; the values come from the library of Kafka 4.3.1."""

from __future__ import annotations

import pytest

from skylog.groups.consumer.hashing import metadata_hash, topic_hash
from skylog.groups.consumer.world import FixedTopics, TopicInfo
from skylog.groups.consumer.xxh3 import xxh3_64
from skylog.kernel.ids import Uuid


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        (0, 0x2D06800538D394C2),
        (1, 0x13E608BC156DEFED),
        (3, 0xA9088DDA485B481C),
        (4, 0x6D9253B16C8B1ED3),
        (8, 0x60539DB630471163),
        (9, 0xFEFF668361D723A8),
        (16, 0xB8C859B0F030B585),
        (17, 0x714A04408E79B80F),
        (32, 0x19FF4EE1D6BA1A55),
        (33, 0x3E44983AD21679C8),
        (64, 0x287EB1FA9E4BE2C1),
        (65, 0x829218DE4D798646),
        (96, 0xF084E7CFBC624743),
        (97, 0x1DAA83271A8E7B7C),
        (128, 0x67425A03650261BF),
        (129, 0xC664BF3311C6ABC4),
        (240, 0x64556DC6B462A6CF),
        (241, 0x8BEADD3A8874FE17),
        (1024, 0x9B81661C641C72B1),
        (1025, 0x806C2072ED713576),
        (3000, 0xC89178BB873C6B3D),
    ],
)
def test_xxh3(size: int, expected: int) -> None:
    assert xxh3_64(bytes((i * 7 + 3) & 0xFF for i in range(size))) == expected


def test_topics() -> None:
    plain = TopicInfo("t", Uuid((1).to_bytes(16, "big")), ((),) * 4)
    assert topic_hash(plain) == 10299706083806713110
    racked = TopicInfo(
        "ünï𝄞",
        Uuid((-2).to_bytes(8, "big", signed=True) + (7).to_bytes(8, "big")),
        (("b", "a"), ("rack",)),
    )
    assert topic_hash(racked) == 12067051137600911265


def test_groups() -> None:
    topics = FixedTopics({"t": (Uuid((1).to_bytes(16, "big")), 4)})
    assert metadata_hash(["t", "gone"], topics) == -954534464913970981
    assert metadata_hash(["gone"], topics) == 0
