"""How far a table follows its topic.

Pure.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import Any, Final

from skylog.kernel.errors import ConfigError
from skylog.spark.jobs.chunks import Offsets, decode_offsets, encode_offsets
from skylog.spark.jobs.table.columns import Columns

_VERSION: Final = 1


@dataclass(frozen=True, slots=True)
class State:
    """What a table stores about its topic; ``chunk`` is the number of the next one."""

    topic: str
    topic_id: str
    format: str
    columns: Columns = field(default_factory=Columns)
    chunk: int = 0
    offsets: Offsets = field(default_factory=dict)

    def after(self, end: Offsets) -> State:
        """The state with the next chunk in the table."""
        return replace(self, chunk=self.chunk + 1, offsets={**self.offsets, **end})

    def encode(self) -> str:
        return json.dumps(
            {
                "version": _VERSION,
                "topic": self.topic,
                "topic_id": self.topic_id,
                "format": self.format,
                "chunk": self.chunk,
                "offsets": encode_offsets(self.offsets),
                "columns": self.columns.encode(),
            }
        )

    @classmethod
    def decode(cls, text: str | bytes, where: str) -> State:
        """ConfigError if it is not of this release."""
        try:
            found: Any = json.loads(text)
            if found["version"] != _VERSION:
                raise ValueError(f"version {found['version']}")
            return cls(
                str(found["topic"]),
                str(found["topic_id"]),
                str(found["format"]),
                Columns.decode(found["columns"]),
                int(found["chunk"]),
                decode_offsets(found["offsets"]),
            )
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise ConfigError(f"{where} is not a state of this release: {error!r}") from None
