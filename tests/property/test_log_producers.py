"""Idempotent producers against a second, plain implementation of Kafka's rules."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.wire.batch import SEQUENCE_MAX
from tests.unit.log.support import NOW, batch, open_log

Answer = tuple[int, bool] | ErrorCode
Sent = tuple[int, int, int]  # first sequence, count, base offset


class Model:
    """What Kafka answers."""

    def __init__(self) -> None:
        self.end = 0
        self.epochs: dict[int, int] = {}
        self.sent: dict[int, list[Sent]] = {}

    def put(self, producer: int, epoch: int, sequence: int, count: int) -> Answer:
        known = self.epochs.get(producer)
        sent = self.sent.get(producer, [])
        if known == epoch:
            for first, size, offset in sent[-5:]:
                if (first, size) == (sequence, count):
                    return offset, True
        if known is not None:
            if epoch < known:
                return ErrorCode.INVALID_PRODUCER_EPOCH
            expected = 0
            if epoch == known:
                first, size, _ = sent[-1]
                expected = (first + size) % (SEQUENCE_MAX + 1)
            if sequence != expected:
                return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        if known != epoch:
            sent = self.sent[producer] = []
            self.epochs[producer] = epoch
        sent.append((sequence, count, self.end))
        self.end += count
        return sent[-1][2], False


@st.composite
def histories(draw: st.DrawFn) -> list[tuple[int, int, int, int]]:
    """Mostly what a correct producer sends, new batches and retries, with some errors."""
    start = draw(st.sampled_from([0, 7, SEQUENCE_MAX - 3]))
    following: dict[int, int] = {}
    history: list[tuple[int, int, int, int]] = []
    for _ in range(draw(st.integers(1, 40))):
        kind = draw(st.sampled_from(["next", "next", "next", "repeat", "repeat", "slip", "epoch"]))
        producer = draw(st.integers(0, 1))
        if kind == "repeat" and history:
            history.append(draw(st.sampled_from(history[-8:])))
            continue
        epoch = max((e for p, e, _, _ in history if p == producer), default=0)
        sequence = following.get(producer, start)
        if kind == "epoch":
            epoch += draw(st.sampled_from([-1, 1, 1]))
            sequence = draw(st.sampled_from([0, 0, sequence]))
        elif kind == "slip":
            sequence = (sequence + draw(st.integers(-2, 2))) % (SEQUENCE_MAX + 1)
        count = draw(st.integers(1, 3))
        history.append((producer, max(epoch, 0), sequence, count))
        following[producer] = (sequence + count) % (SEQUENCE_MAX + 1)
    return history


@settings(max_examples=150, deadline=None)
@given(history=histories(), restarts=st.booleans())
def test_every_answer_is_kafkas(history: list[tuple[int, int, int, int]], restarts: bool) -> None:
    model = Model()
    with tempfile.TemporaryDirectory() as directory:
        log = open_log(Path(directory))
        for producer, epoch, sequence, count in history:
            expected = model.put(producer, epoch, sequence, count)
            try:
                placed = batch(*[b"v"] * count, producer=(producer, epoch, sequence))
                info = log.appender.append([placed], 0, NOW)
                answer: Answer = (info.first_offset, info.duplicate)
            except KafkaError as error:
                answer = error.code
            assert answer == expected
            assert log.log_end_offset == model.end
            if restarts:
                log = open_log(Path(directory))
                # Recovery reads the batches again: no snapshot, so all five are known.
                for path in Path(directory).glob("*.snapshot"):
                    path.unlink()
