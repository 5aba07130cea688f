"""Invariants that hold in every history, whatever goes wrong."""

from __future__ import annotations

from sim.replication.log import Record, SimLog


class Checks:
    """Observes all brokers."""

    def __init__(self) -> None:
        # Records that some broker has shown as committed, by offset.
        self.committed: dict[int, Record] = {}
        self.acked: dict[int, int] = {}  # value, offset
        self.refused: set[int] = set()
        self.leaders: dict[int, int] = {}
        self._deleted_to = 0
        self._watermarks: dict[tuple[int, int, int], int] = {}
        # An unclean leader election happened: committed records may be lost.
        self.lenient = False

    def led(self, broker: int, epoch: int, log: SimLog | None) -> None:
        """At most one leader in an epoch, and its log has everything that is committed."""
        assert self.leaders.setdefault(epoch, broker) == broker, f"two leaders of {epoch}"
        if self.lenient or log is None:
            return
        assert log.log_start_offset <= self._deleted_to, f"leader {broker} lost its log start"
        for offset, record in self.committed.items():
            if offset >= log.log_start_offset:
                assert log.at(offset) == record, f"leader {broker} of {epoch} lacks {offset}"

    def deleted(self, log_start: int) -> None:
        """Records were deleted on request."""
        self._deleted_to = max(self._deleted_to, log_start)

    def moved(self, broker: int, life: int, epoch: int, log: SimLog, high_watermark: int) -> None:
        """One record at an offset, on all brokers, for ever; a leader's high watermark never
        decreases."""
        key = broker, life, epoch
        assert high_watermark >= self._watermarks.get(key, 0), "the high watermark went back"
        assert high_watermark <= log.log_end_offset, "committed beyond the end"
        self._watermarks[key] = high_watermark
        if self.lenient:
            return
        for offset in range(high_watermark - 1, log.base - 1, -1):
            record = log.at(offset)
            assert record is not None, f"{broker} lacks {offset}"
            known = self.committed.setdefault(offset, record)
            assert known == record, f"{broker} has {record} at {offset}, {known} was committed"

    def acknowledged(self, value: int, offset: int) -> None:
        self.acked[value] = offset

    def settled(self, logs: dict[int, SimLog]) -> None:
        """At the end all logs are the same, and no acknowledged record is missing."""
        ends = {broker: log.log_end_offset for broker, log in logs.items()}
        assert len(set(ends.values())) == 1, f"logs end at {ends}"
        start = max(log.log_start_offset for log in logs.values())
        some = next(iter(logs.values()))
        for broker, log in logs.items():
            for offset in range(start, log.log_end_offset):
                if self.lenient and offset < max(log.base, some.base):
                    continue  # epochs of remote records may be lost with an unclean leader
                assert log.at(offset) == some.at(offset), f"{broker} differs at {offset}"
        values = {record[1] for record in some.records}
        assert not values & self.refused, "a refused record is in the log"
        if self.lenient:
            return
        for value, offset in self.acked.items():
            if offset >= start:
                found = some.at(offset)
                assert found is not None and found[1] == value, f"{value} at {offset} is lost"
