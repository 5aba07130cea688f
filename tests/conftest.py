"""How property tests draw: the same examples on every run of the suite, others in ``make sim``."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

_CALM = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow], "database": None}
settings.register_profile("steady", derandomize=True, **_CALM)
settings.register_profile("seeded", print_blob=True, **_CALM)
settings.load_profile("steady")
