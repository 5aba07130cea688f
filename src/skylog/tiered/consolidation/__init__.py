"""Segments of diskless partitions: from the write-ahead log to the tiered store."""
