"""A limit for everything: names say what is limited, the unit stands last but one."""

from __future__ import annotations

from typing import Final

# Replicated machines: callers that wait for the high watermark or for a later answer.
RUNTIME_PENDING_REQUESTS_MAX: Final = 20_000

# The metadata log, as in Kafka: its largest batch, and the batches of a snapshot.
METADATA_BATCH_BYTES_MAX: Final = 8 * 1024 * 1024
# A quorum-state or meta.properties file is a few lines; anything larger is not one.
QUORUM_FILE_BYTES_MAX: Final = 64 * 1024
