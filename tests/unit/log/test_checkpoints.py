from __future__ import annotations

import pytest

from skylog.kernel.ids import Uuid
from skylog.log.checkpoints import (
    Malformed,
    decode_clean_shutdown,
    decode_epochs,
    decode_offsets,
    decode_partition_metadata,
    decode_snapshot,
    encode_clean_shutdown,
    encode_epochs,
    encode_offsets,
    encode_partition_metadata,
    encode_snapshot,
)
from skylog.log.epochs import LeaderEpochs
from skylog.log.names import (
    doomed_directory_name,
    file_name,
    is_deleted_directory,
    parse_directory_name,
    parse_file_name,
)
from skylog.log.producers import ProducerEntry, RememberedBatch


def test_offsets_by_partition() -> None:
    text = encode_offsets({("a-b", 0): 12, ("c", 11): 0})
    assert text == "0\n2\na-b 0 12\nc 11 0\n"
    assert decode_offsets(text) == {("a-b", 0): 12, ("c", 11): 0}
    assert decode_offsets("") == {}


@pytest.mark.parametrize(
    "text", ["1\n0\n", "0\n", "0\n2\na 0 1\n", "0\n1\na 0\n", "0\n1\na x 1\n", "0\nx\n", "x"]
)
def test_a_malformed_checkpoint_is_told(text: str) -> None:
    with pytest.raises(Malformed):
        decode_offsets(text)
    with pytest.raises(Malformed):
        decode_epochs(text)


def test_epochs_and_partition_metadata() -> None:
    assert encode_epochs([(0, 0), (3, 17)]) == "0\n2\n0 0\n3 17\n"
    assert decode_epochs("0\n2\n0 0\n3 17\n") == [(0, 0), (3, 17)]
    topic_id = Uuid(range(16))
    text = encode_partition_metadata(topic_id)
    assert text == f"version: 0\ntopic_id: {topic_id}"
    assert decode_partition_metadata(text) == topic_id
    for broken in ("", "version: 1\ntopic_id: x", "version: 0\ntopic_id: zz", "version: 0"):
        with pytest.raises(Malformed):
            decode_partition_metadata(broken)


def test_the_clean_mark_tells_the_broker_epoch() -> None:
    assert encode_clean_shutdown(31) == '{"version":0,"brokerEpoch":31}'
    assert decode_clean_shutdown('{"version":0,"brokerEpoch":31}') == 31
    for other in ("", "{}", "[]", "null", '{"brokerEpoch":null}'):
        assert decode_clean_shutdown(other) == -1


def test_a_snapshot_keeps_the_last_batch_of_each_producer() -> None:
    last = RememberedBatch(9, 100, 2, 77)
    known = ProducerEntry(1, 3, 5, 77, 60, (RememberedBatch(6, 90, 1, 70), last))
    silent = ProducerEntry(2, 0, 7, 99)
    data = encode_snapshot([known, silent])
    assert len(data) == 10 + 2 * 46
    assert decode_snapshot(data) == [ProducerEntry(1, 3, 5, 77, 60, (last,)), silent]
    assert decode_snapshot(encode_snapshot([])) == []


def test_a_damaged_snapshot_is_told() -> None:
    data = encode_snapshot([ProducerEntry(1)])
    for position in range(len(data)):
        broken = bytearray(data)
        broken[position] ^= 0x10
        with pytest.raises(Malformed):
            decode_snapshot(bytes(broken))
    for size in range(len(data)):
        with pytest.raises(Malformed):
            decode_snapshot(data[:size])


def test_epochs_answer_as_kafka_does() -> None:
    epochs = LeaderEpochs([(1, 0), (3, 10), (7, 25)])
    assert [epochs.of(offset) for offset in (0, 9, 10, 24, 25, 99)] == [1, 1, 3, 3, 7, 7]
    assert epochs.end_of(7, 40) == (7, 40)
    assert epochs.end_of(8, 40) == (-1, -1)
    assert epochs.end_of(-1, 40) == (-1, -1)
    assert epochs.end_of(0, 40) == (0, 0)
    assert epochs.end_of(1, 40) == (1, 10)
    assert epochs.end_of(2, 40) == (1, 10)
    assert epochs.end_of(6, 40) == (3, 25)
    assert LeaderEpochs().end_of(0, 40) == (-1, -1)
    assert LeaderEpochs().of(0) == -1


def test_epochs_change_with_the_log() -> None:
    epochs = LeaderEpochs([(1, 0), (3, 10), (7, 25)])
    assert not epochs.assign(7, 30)
    assert epochs.assign(9, 25)
    assert list(epochs) == [(1, 0), (3, 10), (9, 25)]
    assert epochs.truncate_end(10)
    assert list(epochs) == [(1, 0)]
    epochs.assign(4, 20)
    assert epochs.truncate_start(15)
    assert list(epochs) == [(1, 15), (4, 20)]
    assert not epochs.truncate_start(15)
    assert epochs.truncate_start(50)
    assert list(epochs) == [(4, 50)]


def test_names_are_kafkas() -> None:
    assert file_name(17, ".log") == "00000000000000000017.log"
    assert parse_file_name("00000000000000000017.log.deleted") == (17, ".log", ".deleted")
    assert parse_file_name("leader-epoch-checkpoint") is None
    assert parse_directory_name("a-b-3") == ("a-b", 3)
    for other in ("a", "a-", "-1", "a-01", "a-x", "a/b-1"):
        assert parse_directory_name(other) is None
    doomed = doomed_directory_name("x" * 249, 12, "0" * 32, "-delete")
    assert len(doomed) == 255
    assert is_deleted_directory(doomed)
    assert parse_directory_name(doomed) is None
    # A topic's name may look like that of a deleted one, except for the id.
    assert parse_directory_name("orders-delete-0") == ("orders-delete", 0)
