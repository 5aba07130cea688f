"""Finds a message class by name. Its module is imported on first use: there are hundreds."""

from __future__ import annotations

import importlib
import re
from functools import cache

from skylog.wire.schema import Message


@cache
def message_class(name: str) -> type[Message]:
    spaced = re.sub(r"([A-Z]+)([A-Z][a-z])", r"\1_\2", name)
    module = re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", spaced).lower()
    found: type[Message] = getattr(importlib.import_module(f"skylog.wire.messages.{module}"), name)
    return found
