"""Reads remote segments: for consumers, by offset and by time."""
