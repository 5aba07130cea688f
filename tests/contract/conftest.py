"""Checks are in separate modules; a failure should show their values all the same."""

import pytest

for part in ("plane_commits", "plane_reads", "plane_deletes", "support"):
    pytest.register_assert_rewrite(f"tests.contract.{part}")
