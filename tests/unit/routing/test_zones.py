"""The zone of a client."""

from __future__ import annotations

import pytest

from skylog.routing.zones import zone_of_client, zone_of_client_id

RACKS = {"a", "b", "us-east-1a", "us-east-1a-x"}


@pytest.mark.parametrize(
    ("client_id", "zone"),
    [
        ("diskless_az=a", "a"),
        ("app,diskless_az=b", "b"),
        ("app diskless_az=b,more=c", "b"),
        ("app|diskless_az=b|x", "b"),
        # Frameworks append to the client id.
        ("diskless_az=us-east-1a-producer-3", "us-east-1a"),
        ("diskless_az=us-east-1a-x-3", "us-east-1a-x"),
        ("diskless_az=ab", None),
        ("diskless_az=z", None),
        ("diskless_az=", None),
        ("diskless_az=a=b", "a"),
        ("xdiskless_az=a", None),
        ("DISKLESS_AZ=a", None),
        ("app", None),
        ("", None),
        (None, None),
        ("diskless_az=" + "-" * 30_000, None),
    ],
)
def test_the_zone_in_a_client_id(client_id: str | None, zone: str | None) -> None:
    assert zone_of_client_id(client_id, RACKS) == zone


@pytest.mark.parametrize(
    ("client_id", "listener", "zone"),
    [
        ("app", "INSIDE_B", "b"),
        ("app", "inside_b", "b"),
        ("diskless_az=a", "INSIDE_B", "a"),
        ("diskless_az=nowhere", "INSIDE_B", "b"),
        ("app", "OTHER", None),
        # A zone that only the map names is valid: all its brokers may be offline.
        ("diskless_az=c", "OTHER", "c"),
    ],
)
def test_a_client_id_goes_before_its_listener(
    client_id: str, listener: str, zone: str | None
) -> None:
    by_listener = {"INSIDE_B": "b", "INSIDE_C": "c"}
    assert zone_of_client(client_id, listener, {"a", "b"}, by_listener) == zone
