"""Copies of the newest records on the broker's own disk: the local filler."""
