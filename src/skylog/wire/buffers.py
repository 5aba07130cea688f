"""The one name for "bytes that somebody else may own": record batches travel as these."""

from __future__ import annotations

Buffer = bytes | bytearray | memoryview
