"""The parts of a node put together; ``wiring.py`` is the only composition root."""
