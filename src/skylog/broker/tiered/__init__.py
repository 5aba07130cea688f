"""Tiered storage of classic topics, as the broker's other parts meet it."""
