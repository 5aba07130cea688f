"""What the check of a wheel reads from a module."""

from __future__ import annotations

from tools.dist import glibc_needed


def test_the_latest_glibc_that_a_module_needs() -> None:
    table = b"\0libc.so.6\0GLIBC_2.2.5\0GLIBC_2.14\0memcpy\0GLIBC_2.9\0"
    assert glibc_needed(table) == (2, 14)
    assert glibc_needed(b"\x7fELF\0PyInit__rows\0") == (0,)
