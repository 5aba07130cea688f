"""The columns of a topic: those of Spark's own Kafka source, so that jobs move without a change."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pyarrow as pa

from skylog.kernel.errors import ConfigError

HEADER: Final = pa.struct([("key", pa.string()), ("value", pa.binary())])
SCHEMA: Final = pa.schema(
    [
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.timestamp("us", tz="UTC")),
        ("timestampType", pa.int32()),
        ("headers", pa.list_(HEADER)),
    ]
)
COLUMNS: Final[tuple[str, ...]] = tuple(SCHEMA.names)
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
