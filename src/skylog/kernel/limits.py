"""A limit for everything: names say what is limited, the unit stands last but one."""

from __future__ import annotations

from typing import Final

# Replicated machines: callers that wait for the high watermark or for a later answer.
RUNTIME_PENDING_REQUESTS_MAX: Final = 20_000

# The metadata log, as in Kafka: its largest batch, and the batches of a snapshot.
METADATA_BATCH_BYTES_MAX: Final = 8 * 1024 * 1024
# A quorum-state or meta.properties file is a few lines; anything larger is not one.
QUORUM_FILE_BYTES_MAX: Final = 64 * 1024

# Connections. A client that has not proved who it is gets little memory and little time.
UNAUTHENTICATED_REQUEST_BYTES_MAX: Final = 512 * 1024
HANDSHAKE_SECONDS_MAX: Final = 30.0
# An answer that nobody reads holds memory; after this long without progress it is given up.
WRITE_STALL_SECONDS_MAX: Final = 60.0
# Requests read ahead of the one in work; beyond that the client's socket is the queue.
CONNECTION_REQUESTS_WAITING_MAX: Final = 64
LISTEN_BACKLOG: Final = 512

# Log lines: values may come from clients.
LOG_FIELD_CHARACTERS_MAX: Final = 2_000
LOG_TRACEBACK_CHARACTERS_MAX: Final = 20_000

# Settings: a file or a value larger than this is no configuration.
SETTINGS_FILE_BYTES_MAX: Final = 1024 * 1024
SETTING_VALUE_CHARACTERS_MAX: Final = 64 * 1024
