"""The assembly of a node; ``wiring.py`` is the only composition root."""
