"""The extension modules in C, found in one place. For each there is Python that does the same.

setup.py builds them where there is a C compiler. An installation without them works, slower; a node
says so when it starts, and by the gauge ``skylog_native``.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from types import ModuleType
from typing import Final, Literal, TypeAlias

Library: TypeAlias = Literal["walker", "compact", "columns", "rows"]

# As in native.h: raised whenever the arguments of a function or a struct change.
VERSION: Final = 1
MODULES: Final[Mapping[Library, str]] = {
    "walker": "skylog.wire._walker",
    "compact": "skylog.log._compact",
    "columns": "skylog.bulk._columns",
    "rows": "skylog.bulk._rows",
}


def load_native(library: Library) -> ModuleType | None:
    """The module, or None where this installation has none, or one of another version."""
    try:
        module = import_module(MODULES[library])
    except ImportError:
        return None
    return module if module.VERSION == VERSION else None


def native_libraries() -> dict[Library, bool]:
    """Whether each is there; none of them needs anything but itself to be loaded."""
    return {library: load_native(library) is not None for library in MODULES}
