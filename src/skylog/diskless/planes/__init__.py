"""The control planes."""
