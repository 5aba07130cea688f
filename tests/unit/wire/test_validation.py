"""Produce validation beyond Kafka's verdicts (tests/golden): copies, limits, header mode."""

from __future__ import annotations

import pytest

from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.limits import RECORD_ERRORS_MAX, VALIDATION_AT_ONCE_BYTES_MAX
from skylog.wire import validation
from skylog.wire.batch import Batch, Compression
from skylog.wire.records import decode_records, encode_batch
from skylog.wire.topic_rules import TopicRules
from skylog.wire.validation import ValidationError, is_long, validate
from tests.golden.records.cases import NOW, Case, batch, every_case, patched, record, with_body
from tests.unit.wire.record_bodies import WALKERS
from tests.unit.wire.test_compression import TEXT, zstd_bomb

STAMP = TopicRules(timestamp_type="LogAppendTime")


def refusal(data: bytes, rules: TopicRules | None = None) -> KafkaError:
    with pytest.raises(KafkaError) as error:
        validate(data, rules or TopicRules(), NOW, 9)
    return error.value


@pytest.mark.parametrize("codec", Compression)
@pytest.mark.parametrize("rules", [TopicRules(), STAMP])
def test_a_batch_kept_as_it_is_is_not_copied(codec: int, rules: TopicRules) -> None:
    frame = bytearray(b"frame" + batch(codec) + b"rest")
    view = memoryview(frame)[5:-4]
    checked = validate(view, rules, NOW, 9).batch
    assert isinstance(checked.buffer, memoryview)
    assert checked.buffer.obj is frame
    checked.buffer[0] = 0x55
    assert frame[5] == 0x55


def test_a_read_only_batch_is_copied_once_and_left_alone() -> None:
    data = batch()
    checked = validate(data, STAMP, NOW + 1, 9)
    assert data == batch()
    assert isinstance(checked.batch.buffer, memoryview)
    assert not checked.batch.buffer.readonly


def test_log_append_time_is_in_the_answer_and_in_the_header() -> None:
    checked = validate(bytearray(batch()), STAMP, NOW + 1, 9)
    assert checked.log_append_time == NOW + 1
    again = Batch(checked.batch.buffer)
    for one in (checked.batch, again):
        assert one.is_log_append_time
        assert one.max_timestamp == NOW + 1
        assert one.crc_ok()
    assert validate(bytearray(batch()), TopicRules(), NOW, 9).log_append_time == -1


def test_recompressed_batches_are_writable_and_keep_their_producer() -> None:
    data = batch(producer_id=5, producer_epoch=1, base_sequence=9)
    rules = TopicRules(compression_type="zstd")
    checked = validate(data, rules, NOW, 9).batch
    assert isinstance(checked.buffer, memoryview)
    assert not checked.buffer.readonly
    assert (checked.producer_id, checked.producer_epoch, checked.base_sequence) == (5, 1, 9)
    assert decode_records(checked) == decode_records(Batch(data))


def test_levels_are_used() -> None:
    text = b"".join(b"%d: %s\n" % (i, TEXT[i % 40 : i % 90]) for i in range(2000))
    data = encode_batch([(None, text)], timestamp=NOW)
    for name, low, high in (("gzip", 1, 9), ("lz4", 9, 12), ("zstd", -5, 19)):
        quick, small = (
            validate(
                data, TopicRules(compression_type=name, **{f"{name}_level": level}), NOW, 9
            ).batch.size
            for level in (low, high)
        )
        assert small < quick


def test_every_refused_record_has_its_line() -> None:
    data = encode_batch([(None, b"")] * 3, timestamp=NOW)
    error = refusal(data, TopicRules(compacted=True))
    assert isinstance(error, ValidationError)
    assert error.code is ErrorCode.INVALID_RECORD
    assert [index for index, _ in error.record_errors] == [0, 1, 2]
    assert "without a key" in error.record_errors[0][1]
    late = refusal(encode_batch([(None, b"")], timestamp=NOW + 10**10))
    assert isinstance(late, ValidationError)
    assert late.code is ErrorCode.INVALID_TIMESTAMP
    assert str(NOW + 10**10) in late.record_errors[0][1]
    assert str(NOW + 3_600_000) in late.record_errors[0][1]


def test_lines_of_refused_records_are_limited() -> None:
    for count in (RECORD_ERRORS_MAX, RECORD_ERRORS_MAX + 1):
        data = encode_batch([(None, b"")] * count, timestamp=NOW, codec=4)
        error = refusal(data, TopicRules(compacted=True))
        assert isinstance(error, ValidationError)
        assert len(error.record_errors) == RECORD_ERRORS_MAX


def test_only_refused_records_make_a_validation_error() -> None:
    assert not isinstance(refusal(batch(base_offset=1)), ValidationError)


def test_offset_deltas_must_be_dense() -> None:
    for codec in Compression:
        error = refusal(with_body(record(b"\0\0\x04" + b"\x02k" + b"\x02v" + b"\0"), codec))
        assert error.code is ErrorCode.INVALID_RECORD
        assert error.message == "record 0: bad offset"


def test_bombs_are_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(validation, "RECORDS_DECOMPRESSED_BYTES_MAX", 1_000_000)
    rules = TopicRules(message_bytes_max=1000)
    bomb = with_body(zstd_bomb(100), 4, raw=True)
    assert refusal(bomb, rules).code is ErrorCode.MESSAGE_TOO_LARGE
    fits = encode_batch([(None, bytes(999_000))], timestamp=NOW, codec=4)
    assert validate(fits, rules, NOW, 9).batch.record_count == 1


class TestHeaderMode:
    rules = TopicRules(full=False)

    def test_records_are_not_looked_at(self) -> None:
        broken = with_body(b"\xff" * 20)
        assert refusal(broken).code is ErrorCode.INVALID_RECORD
        assert validate(broken, self.rules, NOW, 9).batch.record_count == 1

    def test_headers_are(self) -> None:
        good = batch()
        assert refusal(good[:-1] + b"\xff", self.rules).code is ErrorCode.CORRUPT_MESSAGE
        assert refusal(patched(good, 57, "i", 9), self.rules).code is ErrorCode.INVALID_RECORD
        late = patched(good, 35, "q", NOW + 10**10)
        assert refusal(late, self.rules).code is ErrorCode.INVALID_TIMESTAMP
        assert validate(patched(good, 35, "q", -1), self.rules, NOW, 9).batch.max_timestamp == -1

    def test_recompressing_looks_at_records_all_the_same(self) -> None:
        rules = TopicRules(full=False, compression_type="gzip")
        assert refusal(with_body(b"\xff" * 20), rules).code is ErrorCode.INVALID_RECORD
        assert validate(batch(), rules, NOW, 9).batch.codec == Compression.GZIP

    def test_stamps(self) -> None:
        rules = TopicRules(full=False, timestamp_type="LogAppendTime")
        checked = validate(batch(), rules, NOW + 9, 9)
        assert checked.log_append_time == checked.batch.max_timestamp == NOW + 9
        assert checked.batch.crc_ok()


class TestIsLong:
    rules = TopicRules()

    @pytest.fixture(autouse=True)
    def _as_with_the_walker_in_c(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(validation, "_AT_ONCE_BYTES_MAX", VALIDATION_AT_ONCE_BYTES_MAX)

    def test_small_batches_are_done_at_once(self) -> None:
        for codec in (0, 2, 3, 4):
            assert not is_long(batch(codec), self.rules)
        assert not is_long(b"", self.rules)
        assert not is_long(b"\xff" * 70, self.rules)

    def test_large_ones_are_not(self) -> None:
        assert is_long(bytes(VALIDATION_AT_ONCE_BYTES_MAX + 1), self.rules)

    def test_neither_are_small_ones_that_can_grow(self) -> None:
        assert is_long(with_body(zstd_bomb(100), 4, raw=True), self.rules)
        assert is_long(encode_batch([(None, bytes(5_000_000))], timestamp=0, codec=1), self.rules)

    def test_compressing_takes_longer(self) -> None:
        data = encode_batch([(None, bytes(VALIDATION_AT_ONCE_BYTES_MAX // 8))], timestamp=0)
        assert is_long(data, TopicRules(compression_type="gzip"))

    def test_header_mode_is_never_long_for_what_could_grow(self) -> None:
        bomb = with_body(zstd_bomb(100), 4, raw=True)
        assert not is_long(bomb, TopicRules(full=False))


def test_nearly_all_batches_are_judged_by_one_call() -> None:
    ordinary = memoryview(bytearray(batch()))
    rules = TopicRules()
    earliest, latest = rules.timestamps(NOW)
    for one in WALKERS.values():
        assert one.is_plain(ordinary, rules.plain_bytes_max, earliest, latest, keyed=False)
    assert STAMP.plain_bytes_max == TopicRules(full=False).plain_bytes_max == 0
    assert TopicRules(compression_type="zstd").plain_bytes_max == 0
    assert TopicRules(compression_type="uncompressed").plain_bytes_max > 0


@pytest.mark.parametrize("case", every_case(), ids=lambda case: case.name)
def test_the_one_call_changes_no_verdict(case: Case) -> None:
    def verdict(data: object) -> object:
        try:
            checked = validate(data, case.rules(), NOW, case.version)  # type: ignore[arg-type]
        except KafkaError as error:
            return error.code, error.message
        return bytes(checked.batch.buffer)

    assert verdict(memoryview(bytearray(case.records))) == verdict(case.records)
