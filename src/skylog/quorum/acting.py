"""Carries out the effects of the quorum's machine on disk."""

from __future__ import annotations

from skylog.kernel.clock import Clock
from skylog.kernel.errors import StorageError, invariant
from skylog.kernel.executor import Executor
from skylog.kernel.logging import get_logger
from skylog.quorum.control import leader_change
from skylog.quorum.effects import (
    AppendFetched,
    AppendVoters,
    BeginEpoch,
    Effect,
    InstallSnapshot,
    SaveElection,
    TruncateTo,
    WriteSnapshot,
)
from skylog.quorum.election import ElectionState
from skylog.quorum.election_file import ElectionFile
from skylog.quorum.log import MetadataLog
from skylog.quorum.machine import QuorumMachine
from skylog.quorum.publishing import Publishing
from skylog.quorum.voters import Voter
from skylog.wire.control_records import ControlType, control_record

_logger = get_logger("quorum.acting")


class Acting:
    """One replica's log and election file, as the machine's effects change them."""

    def __init__(
        self,
        log: MetadataLog,
        local: Voter,
        election_file: ElectionFile,
        publishing: Publishing,
        executor: Executor,
        clock: Clock,
    ) -> None:
        self._log = log
        self._local = local
        self._election_file = election_file
        self._publishing = publishing
        self._executor = executor
        self._clock = clock

    async def carry_out(self, effect: Effect, machine: QuorumMachine) -> list[Effect]:
        """Carry out one effect; returns the effects that follow from it."""
        log = self._log
        match effect:
            case SaveElection(election):
                await self._save(election)
            case BeginEpoch():
                self._begin_epoch(effect, machine)
            case AppendVoters(voters):
                record = control_record(ControlType.KRAFT_VOTERS, voters.to_record(), 0)
                log.append_control([record], machine.epoch, self._clock.now_ms())
            case AppendFetched(records):
                batches = log.append_fetched(records, machine.epoch, self._clock.now_ms())
                self._publishing.fetched(batches)
                # The next fetch tells the leader that this is durable.
                await self._executor.run(log.sync)
                return machine.log_synced(log.end_offset, self._now_ms())
            case TruncateTo(offset):
                _logger.info("log truncated", offset=offset, end=log.end_offset)
                log.truncate(offset)
                self._publishing.truncated(offset)
            case WriteSnapshot(snapshot_id, position, data):
                await self._executor.run(lambda: log.write_piece(snapshot_id, position, data))
            case InstallSnapshot(snapshot_id):
                snapshot = await self._executor.run(lambda: log.install(snapshot_id))
                self._publishing.installed(snapshot_id.offset, snapshot.records)
                _logger.info("snapshot fetched", offset=snapshot_id.offset)
        return []

    async def _save(self, election: ElectionState) -> None:
        try:
            await self._executor.run(lambda: self._election_file.write(election))
        except OSError as error:
            raise StorageError(f"the election state cannot be saved: {error}") from error

    def _begin_epoch(self, begun: BeginEpoch, machine: QuorumMachine) -> None:
        log, voters = self._log, machine.voters
        invariant(voters.voters, "an epoch needs voters")
        log.begin_epoch(begun.epoch)
        records = [leader_change(self._local.key.id, voters.keys, begun.granting)]
        known = voters.get(self._local.key.id)
        moved = known is not None and known != self._local and known.key == self._local.key
        if log.voters_offset < 0 or moved:
            # Formatting left them beside the log; other nodes learn of them, and of a controller
            # that has moved, from the log.
            quorum = log.quorum.with_voter(self._local) if moved else log.quorum
            records += quorum.to_control()
        log.append_control(records, begun.epoch, self._clock.now_ms())

    def _now_ms(self) -> int:
        return int(self._clock.monotonic() * 1000)
