"""The bytes that a broker holds for clients, and which connections are closed at the limit."""

from __future__ import annotations

import pytest

from skylog.broker.net.in_flight import InFlight, Memory
from skylog.kernel import limits


class Client:
    def __init__(self, *, in_work: bool = False) -> None:
        self.address = "client"
        self.in_work = in_work
        self.aborted = False

    def abort(self) -> None:
        self.aborted = True


def test_up_to_the_limit_all_may_stay() -> None:
    memory = InFlight("requests", 100, spare_work=True)
    clients = [Client() for _ in range(4)]
    for client in clients:
        memory.hold(client, 25)
    assert memory.total == 100
    assert not any(client.aborted for client in clients)


def test_beyond_it_the_oldest_go_and_no_more_than_must() -> None:
    memory = InFlight("requests", 100, spare_work=True)
    old, middle, young = Client(), Client(), Client()
    memory.hold(old, 40)
    memory.hold(middle, 40)
    memory.hold(old, 41)  # more bytes do not make a connection newer
    memory.hold(young, 20)
    assert (old.aborted, middle.aborted, young.aborted) == (True, False, False)
    assert memory.total == 60


def test_a_connection_without_bytes_loses_its_age() -> None:
    memory = InFlight("answers", 100, spare_work=False)
    quick, slow = Client(), Client()
    memory.hold(quick, 50)
    memory.hold(slow, 50)
    memory.hold(quick, 0)
    memory.hold(quick, 51)
    assert (quick.aborted, slow.aborted) == (False, True)


@pytest.mark.parametrize("spare_work", [True, False])
def test_work_is_let_finish_where_its_bytes_would_stay_anyway(spare_work: bool) -> None:
    memory = InFlight("requests", 100, spare_work=spare_work)
    working, new = Client(in_work=True), Client()
    memory.hold(working, 90)
    memory.hold(new, 11)
    assert working.aborted != spare_work
    assert new.aborted == spare_work


def test_the_remaining_budget_shrinks_before_the_limit() -> None:
    memory = InFlight("answers", 100, spare_work=False)
    assert memory.left == 50
    memory.hold(Client(), 30)
    assert memory.left == 20
    memory.hold(Client(), 60)
    assert memory.left == 0


def test_an_operator_may_set_the_limit_of_requests() -> None:
    for setting, limit in ((-1, limits.REQUEST_BYTES_IN_FLIGHT_MAX), (1000, 1000)):
        memory = Memory(setting)
        inside, beyond = Client(), Client()
        memory.requests.hold(inside, limit)
        assert not inside.aborted
        memory.requests.hold(beyond, 1)
        assert inside.aborted
