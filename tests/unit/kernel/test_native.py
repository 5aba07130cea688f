"""Which modules in C are used, and what they refuse."""

from __future__ import annotations

from types import BuiltinFunctionType, ModuleType, SimpleNamespace
from typing import Any

import pytest

from skylog.kernel import native
from skylog.kernel.native import MODULES, Library, load_native, native_libraries

BUILT = [name for name, built in native_libraries().items() if built]
LIBRARIES = [
    pytest.param(name, marks=[] if name in BUILT else [pytest.mark.skip("not built")])
    for name in MODULES
]


def test_a_module_that_is_missing_or_of_another_version_is_not_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found: dict[str, Any] = {
        MODULES["walker"]: SimpleNamespace(VERSION=native.VERSION),
        MODULES["rows"]: SimpleNamespace(VERSION=native.VERSION + 1),
    }

    def import_module(name: str) -> Any:
        if name not in found:
            raise ImportError(name)
        return found[name]

    monkeypatch.setattr(native, "import_module", import_module)
    assert load_native("walker") is found[MODULES["walker"]]
    assert native_libraries() == {"walker": True, "compact": False, "columns": False, "rows": False}


def functions(module: ModuleType) -> list[Any]:
    return [value for value in vars(module).values() if isinstance(value, BuiltinFunctionType)]


@pytest.mark.parametrize("name", LIBRARIES)
def test_invalid_arguments_are_refused(name: Library) -> None:
    module = load_native(name)
    assert module is not None
    assert functions(module)
    for function in functions(module):
        with pytest.raises(TypeError):
            function()
        with pytest.raises(TypeError):
            function(*[None] * 9)
        with pytest.raises((TypeError, ValueError, BufferError)):
            function(*[b""] * 8)


@pytest.mark.skipif("walker" not in BUILT, reason="not built")
def test_a_number_that_does_not_fit_is_refused() -> None:
    module = load_native("walker")
    assert module is not None
    with pytest.raises(OverflowError):
        module.is_plain(b"", 0, 0, 2**63, 0)
    with pytest.raises(OverflowError, match="32 bits"):
        module.walk(b"", 2**31, 0, 0, 0, 0)
    with pytest.raises(BufferError):
        module.locate(b"", b"", 0, 0)
    with pytest.raises(ValueError, match="wrong size"):
        module.locate(bytes(7), bytearray(8), 1, 0)


@pytest.mark.skipif("walker" not in BUILT, reason="not built")
def test_a_buffer_is_let_go_after_the_call_and_after_a_refusal() -> None:
    module = load_native("walker")
    assert module is not None
    data = bytearray(10)
    module.is_plain(data, 0, 0, 0, 0)
    with pytest.raises(TypeError):
        module.is_plain(data, 0, 0, None, 0)
    with pytest.raises(TypeError):
        module.is_plain(data, 0)
    data += b"more"  # BufferError if it were still held
