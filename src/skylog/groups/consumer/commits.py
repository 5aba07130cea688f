"""Which members may commit and read offsets of a consumer group, and in which epoch."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from skylog.groups.consumer.consumer_group import ConsumerGroup
from skylog.groups.consumer.member import ConsumerMember
from skylog.kernel.errors import ErrorCode, KafkaError
from skylog.kernel.ids import Uuid

# The first version of OffsetCommit that supports members of the consumer protocol.
_EPOCHS_VERSION: Final = 9


def check_commit(
    group: ConsumerGroup,
    member_id: str,
    epoch: int,
    partitions: Iterable[tuple[str, Uuid, int]],
    version: int,
) -> None:
    """Raise unless the member may commit all these partitions (name, id and number) now.

    An epoch before the member's own is valid for partitions that it has owned since then.
    """
    if epoch < 0 and not group.members:
        return  # an administrator, or a consumer that assigns partitions to itself
    member = group.member(member_id)
    if member.classic is None and version < _EPOCHS_VERSION:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_VERSION,
            f"OffsetCommit version {_EPOCHS_VERSION} or above must be used"
            " by members using the consumer group protocol",
        )
    check_epoch(member, epoch, partitions)


def check_commit_in_transaction(
    group: ConsumerGroup, member_id: str, epoch: int, partitions: Iterable[tuple[str, Uuid, int]]
) -> None:
    """The same for a transaction; producers know only one error code for a wrong epoch."""
    member = group.member(member_id)
    try:
        check_epoch(member, epoch, partitions)
    except KafkaError as error:
        raise KafkaError(ErrorCode.ILLEGAL_GENERATION, error.message) from error


def check_epoch(
    member: ConsumerMember, epoch: int, partitions: Iterable[tuple[str, Uuid, int]]
) -> None:
    if epoch == member.epoch:
        return
    what = "member epoch" if member.classic is None else "generation id"
    if epoch > member.epoch:
        raise _stale(
            member, f"Received {what} {epoch} is newer than current member epoch {member.epoch}."
        )
    for name, topic_id, partition in partitions:
        since = member.partition_epoch(topic_id, partition)
        if since is None:
            raise _stale(
                member,
                f"Partition {name}-{partition} is not assigned or pending revocation for member.",
            )
        if epoch < since:
            raise _stale(
                member,
                f"Received {what} {epoch} is older than assignment epoch {since}"
                f" for partition {name}-{partition}.",
            )


def check_fetch(group: ConsumerGroup, member_id: str | None, epoch: int) -> None:
    """Raise for a member that reads in another epoch than its own."""
    if member_id is None and epoch < 0:
        return
    member = group.member(member_id or "")
    if epoch != member.epoch:
        what = "member epoch" if member.classic is None else "generation id"
        raise _stale(
            member,
            f"The received {what} {epoch} does not match the expected member epoch {member.epoch}.",
        )


def _stale(member: ConsumerMember, why: str) -> KafkaError:
    classic = member.classic is not None
    return KafkaError(
        ErrorCode.ILLEGAL_GENERATION if classic else ErrorCode.STALE_MEMBER_EPOCH, why
    )
