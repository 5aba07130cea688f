"""Errors of bulk readers, apart from those of brokers."""

from __future__ import annotations

from skylog.kernel.errors import SkylogError


class DataLossError(SkylogError):
    """Records to be read no longer exist: deleted by retention, or with their topic."""

    def __init__(
        self, topic: str, partition: int, start_offset: int, end_offset: int, why: str
    ) -> None:
        super().__init__(
            f"topic {topic} partition {partition}: offsets {start_offset} to {end_offset - 1}"
            f" are gone: {why}"
        )
        self.topic = topic
        self.partition = partition
        self.start_offset = start_offset
        self.end_offset = end_offset

    def __reduce__(self) -> tuple[object, ...]:
        """Errors of tasks are sent to their driver."""
        return _rebuilt, (self.__dict__, str(self))


def _rebuilt(fields: dict[str, object], text: str) -> DataLossError:
    error = DataLossError.__new__(DataLossError)
    error.args = (text,)
    error.__dict__.update(fields)
    return error
