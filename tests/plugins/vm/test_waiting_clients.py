# SPDX-License-Identifier: MIT
"""A newcomer takes the place of the client that has waited longest."""

import contextlib
import socket
from collections.abc import Iterator

import pytest
from burst_vm.waiting_clients import MOST, MOST_OF_ONE, WaitingClients


class Clients:
    """Clients that wait, and what each would notice of it."""

    def __init__(self, stack: contextlib.ExitStack) -> None:
        self._stack = stack
        self.waiting = WaitingClients()
        self.ours: list[socket.socket] = []
        self._theirs: list[socket.socket] = []

    def come(self, address: str) -> None:
        ours, theirs = map(self._stack.enter_context, socket.socketpair())
        theirs.setblocking(False)
        self.ours.append(ours)
        self._theirs.append(theirs)
        self.waiting.enter(ours, address)

    def shut_down(self) -> list[int]:
        """Return which of them see the end, by the order in which they came."""
        return [n for n, each in enumerate(self._theirs) if _is_ended(each)]


def _is_ended(client: socket.socket) -> bool:
    try:
        return client.recv(1) == b""
    except BlockingIOError:
        return False


@pytest.fixture
def clients() -> Iterator[Clients]:
    with contextlib.ExitStack() as stack:
        yield Clients(stack)


def test_the_oldest_of_an_address_that_has_many_goes(clients: Clients) -> None:
    clients.come("192.0.2.1")
    for _ in range(MOST_OF_ONE):
        clients.come("192.0.2.2")
    assert clients.shut_down() == []
    clients.come("192.0.2.2")
    assert clients.shut_down() == [1]
    assert not clients.waiting.leave(clients.ours[1])
    assert clients.waiting.leave(clients.ours[0])


def test_the_oldest_of_all_goes_where_there_are_too_many(clients: Clients) -> None:
    for number in range(MOST):
        clients.come(f"192.0.2.{number}")
    assert clients.shut_down() == []
    clients.come("198.51.100.1")
    assert clients.shut_down() == [0]


def test_who_has_sent_its_request_is_left_alone(clients: Clients) -> None:
    for _ in range(MOST_OF_ONE):
        clients.come("192.0.2.1")
    assert clients.waiting.leave(clients.ours[0])
    clients.come("192.0.2.1")
    clients.come("192.0.2.1")
    assert clients.shut_down() == [1]


@pytest.mark.parametrize(
    ("one", "other", "are_one"),
    [
        ("2001:db8::1", "2001:db8::2", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
        ("fe80::1%eth0", "fe80::2%eth0", True),
        ("::ffff:192.0.2.1", "192.0.2.1", True),
        ("::ffff:192.0.2.1", "::ffff:192.0.2.2", False),
        ("192.0.2.1", "192.0.2.2", False),
    ],
)
def test_addresses_that_one_host_may_choose_count_as_one(
    clients: Clients, one: str, other: str, *, are_one: bool
) -> None:
    for _ in range(MOST_OF_ONE):
        clients.come(one)
    clients.come(other)
    assert bool(clients.shut_down()) is are_one
