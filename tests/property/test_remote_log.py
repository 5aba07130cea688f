"""The remote log against a model that looks at every segment: any records in any order."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from skylog.tiered.lineage import Lineage
from skylog.tiered.metadata.machine import Outcome, RemoteLog
from skylog.tiered.metadata.records import segment_started
from skylog.tiered.segments import TRANSITIONS, RemoteSegment, SegmentState
from skylog.wire.metadata_records import decode_remote_log, encode_remote_log
from skylog.wire.schema import Message
from tests.unit.tiered.remote_records import PARTITION, TOPIC, segment, update

OFFSETS = 24
EPOCHS = 4


@st.composite
def segments(draw: st.DrawFn) -> RemoteSegment:
    start = draw(st.integers(0, OFFSETS - 2))
    end = draw(st.integers(start, OFFSETS - 1))
    epochs = sorted(draw(st.sets(st.integers(0, EPOCHS - 1), min_size=1, max_size=3)))
    starts = [start, *sorted(draw(st.integers(start, end)) for _ in epochs[1:])]
    return segment(
        draw(st.integers(0, 5)),
        start,
        end,
        tuple(zip(epochs, starts, strict=True)),
        txn_index_empty=draw(st.booleans()),
        copier_epoch=draw(st.integers(-1, 3)),
    )


@st.composite
def records(draw: st.DrawFn) -> Message:
    one = draw(segments())
    log_start = draw(st.integers(-1, OFFSETS))
    state = draw(st.sampled_from(SegmentState))
    if state is SegmentState.COPY_STARTED:
        return segment_started(one, log_start)
    return update(one, state, one.copier_epoch, log_start)


@st.composite
def histories(draw: st.DrawFn) -> list[Message]:
    """Runs of one segment's life, cut off anywhere and mixed with others."""
    made: list[Message] = []
    for _ in range(draw(st.integers(1, 12))):
        if draw(st.integers(0, 3)) == 0:
            made.append(draw(records()))
            continue
        one = draw(segments())
        made.append(segment_started(one, draw(st.integers(-1, 5))))
        for state in list(SegmentState)[1 : draw(st.integers(1, 4))]:
            at = draw(st.integers(0, len(made)))
            record = update(one, state, one.copier_epoch)
            made.insert(at, record) if draw(st.booleans()) else made.append(record)
    return made


@dataclass
class Model:
    """All that ever was, in plain lists."""

    states: dict[bytes, SegmentState] = field(default_factory=dict)
    begun: dict[bytes, RemoteSegment] = field(default_factory=dict)
    finished: list[bytes] = field(default_factory=list)
    highest: dict[int, int] = field(default_factory=dict)
    fence: int = -1
    told: list[tuple[int, int]] = field(default_factory=list)

    def apply(self, record: Message) -> None:
        epoch = record.copier_epoch  # type: ignore[attr-defined]
        void = 0 <= epoch < self.fence
        self.fence = max(self.fence, epoch)
        id_ = record.remote_log_segment_id.id  # type: ignore[attr-defined]
        state = SegmentState(record.remote_log_segment_state)  # type: ignore[attr-defined]
        before = self.states.get(id_)
        if hasattr(record, "segment_leader_epochs"):
            if before not in {None, SegmentState.COPY_STARTED}:
                return
            epochs = tuple((e.leader_epoch, e.offset) for e in record.segment_leader_epochs)
            self.begun[id_] = segment(
                int.from_bytes(id_, "big"),
                record.start_offset,  # type: ignore[attr-defined]
                record.end_offset,  # type: ignore[attr-defined]
                epochs,
            )
        elif void or before is None or state not in TRANSITIONS[before]:
            return
        self.states[id_] = state
        if not void:
            self.told.append((record.copier_epoch, record.log_start_offset))  # type: ignore[attr-defined]
        if state is SegmentState.COPY_FINISHED and before is not state:
            self.finish(id_)
        if state is SegmentState.DELETE_STARTED and id_ in self.finished:
            self.finished.remove(id_)
        if state is SegmentState.DELETE_FINISHED:
            del self.states[id_]

    def finish(self, id_: bytes) -> None:
        self.finished.append(id_)
        for epoch in range(EPOCHS):
            offsets = [offset for offset in range(OFFSETS) if self.has(id_, epoch, offset)]
            if offsets:
                self.highest[epoch] = max(self.highest.get(epoch, -1), offsets[-1])

    def has(self, id_: bytes, epoch: int, offset: int) -> bool:
        one = self.begun[id_]
        if not one.start_offset <= offset <= one.end_offset:
            return False
        return [e for e, start in one.epochs if start <= offset][-1] == epoch

    def reach(self, id_: bytes, epoch: int) -> int:
        return max(o for o in range(OFFSETS) if self.has(id_, epoch, o))

    def segment_for(self, epoch: int, offset: int) -> bytes | None:
        best = None
        for id_ in self.finished:
            if self.has(id_, epoch, offset) and (
                best is None or self.reach(id_, epoch) >= self.reach(best, epoch)
            ):
                best = id_
        return best

    def run(self, epoch: int, offset: int) -> list[bytes]:
        found: dict[bytes, None] = {}
        while (id_ := self.segment_for(epoch, offset)) is not None:
            found[id_] = None
            offset += 1
        return list(found)

    def covered_end(self, offset: int, lineage: Lineage) -> int:
        while (epoch := lineage.epoch_of(offset)) is not None and self.segment_for(epoch, offset):
            offset += 1
        return offset


def replayed(history: list[Message]) -> RemoteLog:
    log = RemoteLog(PARTITION, TOPIC)
    for offset, record in enumerate(history):
        decoded = decode_remote_log(encode_remote_log(record))
        assert decoded is not None
        log.apply(decoded, offset)
    return log


def answers(log: RemoteLog) -> object:
    """All that can be asked of a remote log."""
    lineage = Lineage([(0, 0), (1, 6), (3, 15)], OFFSETS)
    spots = [(epoch, offset) for epoch in range(EPOCHS) for offset in range(OFFSETS)]
    return (
        [log.segment_for(*spot) for spot in spots],
        [log.next_with_txn_index(*spot) for spot in spots],
        [log.highest_offset(epoch) for epoch in range(EPOCHS)],
        [log.covered_end(offset, lineage) for offset in range(OFFSETS)],
        [sorted(map(repr, log.segments(epoch))) for epoch in range(EPOCHS)],
        sorted(map(repr, log.all())),
        sorted(map(repr, log.unfinished())),
        (log.fence, log.log_starts, log.next_offset, log.finished_bytes, log.delete_state),
        lineage.told_start(log),
    )


@settings(max_examples=300, deadline=None)
@given(histories())
def test_any_history_gives_the_answers_of_the_model(history: list[Message]) -> None:
    model, log = Model(), replayed(history)
    for record in history:
        model.apply(record)
    assert log.fence == model.fence
    assert log.log_start == max((start for _, start in model.told), default=-1)
    for lineage in (Lineage([(1, 4), (3, 9)], 20), Lineage([(0, 0), (2, 6)], 11), Lineage([], 7)):
        ends = [(epoch, start) for epoch, start, _ in lineage.oldest_first()]
        told = [
            min(start, *(at for later, at in ends if later > epoch >= 0), lineage.log_end_offset)
            for epoch, start in model.told
        ]
        assert lineage.told_start(log) == max(told, default=-1)
    assert {one.id: one.state for one in log.all()} == model.states
    assert log.finished_bytes == sum(model.begun[id_].size for id_ in model.finished)
    for epoch in range(EPOCHS):
        assert log.highest_offset(epoch) == model.highest.get(epoch)
        listed = [one.start_offset for one in log.segments(epoch)]
        assert listed == sorted(listed)
        for offset in range(OFFSETS):
            found = log.segment_for(epoch, offset)
            assert (found.id if found else None) == model.segment_for(epoch, offset)
            assert [one.id for one in log.run(epoch, offset)] == model.run(epoch, offset)
    lineage = Lineage([(0, 0), (1, 6), (3, 15)], OFFSETS)
    for offset in range(OFFSETS + 1):
        assert log.covered_end(offset, lineage) == model.covered_end(offset, lineage)


@settings(max_examples=150, deadline=None)
@given(histories(), st.data())
def test_a_snapshot_and_the_rest_are_the_whole_log(
    history: list[Message], data: st.DataObject
) -> None:
    at = data.draw(st.integers(0, len(history)))
    head, kept = replayed(history[:at]).snapshot()
    log = RemoteLog.restored(head, kept)
    # Read again from before the snapshot: what it contains is not applied twice.
    for offset in range(data.draw(st.integers(0, at)), len(history)):
        outcome = log.apply(history[offset], offset)
        assert (outcome is Outcome.SEEN) is (offset < at)
    assert answers(log) == answers(replayed(history))
