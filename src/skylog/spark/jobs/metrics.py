"""Requests to object storage as counted by brokers, from their ``/metrics`` pages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from urllib.error import URLError
from urllib.parse import urlsplit
from urllib.request import urlopen

from prometheus_client.parser import text_string_to_metric_families

from skylog.kernel.errors import ConfigError

_REQUESTS: Final = "skylog_objects_requests"
_PAGE_BYTES_MAX: Final = 64 * 1024 * 1024
_SECONDS: Final = 10.0


def counted_requests(urls: Sequence[str]) -> dict[str, float]:
    """Requests by operation, of all brokers together; ConfigError names an invalid page."""
    found: dict[str, float] = {}
    for url in urls:
        for name, count in _parse(url, _page(url)).items():
            found[name] = found.get(name, 0.0) + count
    return found


def _page(url: str) -> str:
    if urlsplit(url).scheme not in ("http", "https"):
        raise ConfigError(
            f"{url} is not the address of a metrics page, such as http://host:port/metrics"
        )
    try:
        with urlopen(url, timeout=_SECONDS) as answer:  # noqa: S310 - the scheme is checked above
            data: bytes = answer.read(_PAGE_BYTES_MAX)
    except (URLError, OSError, ValueError) as error:
        raise ConfigError(f"cannot read metrics from {url}: {error}") from error
    return data.decode("utf-8", "replace")


def _parse(url: str, text: str) -> dict[str, float]:
    try:
        return {
            sample.labels["operation"]: sample.value
            for family in text_string_to_metric_families(text)
            if family.name == _REQUESTS
            for sample in family.samples
            if sample.name == f"{_REQUESTS}_total"
        }
    except (ValueError, KeyError) as error:
        raise ConfigError(f"{url} is not a metrics page: {error}") from error
