"""The columns of a topic: those of Spark's own Kafka source, so that jobs move without a change."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pyarrow as pa

from skylog.bulk.names import COLUMNS
from skylog.kernel.errors import ConfigError

HEADER: Final = pa.struct([("key", pa.string()), ("value", pa.binary())])
_TYPES: Final = (
    pa.binary(),
    pa.binary(),
    pa.string(),
    pa.int32(),
    pa.int64(),
    pa.timestamp("us", tz="UTC"),
    pa.int32(),
    pa.list_(HEADER),
)
SCHEMA: Final = pa.schema(list(zip(COLUMNS, _TYPES, strict=True)))
CREATE_TIME: Final = 0
LOG_APPEND_TIME: Final = 1


def schema_of(columns: Sequence[str]) -> pa.Schema:
    """The schema of some columns, in the order given; ConfigError for what is none."""
    unknown = [name for name in columns if name not in COLUMNS]
    if unknown or not columns or len(set(columns)) != len(columns):
        raise ConfigError(
            f"columns has {', '.join(columns) or 'none'};"
            f" allowed are some of {', '.join(COLUMNS)}, each once"
        )
    return pa.schema([SCHEMA.field(name) for name in columns])
