"""Generated message classes; see tools/generate_messages.py."""
