# SPDX-License-Identifier: MIT
"""Who may join, who may not, and how it is noticed that one is gone."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator
from contextlib import closing, contextmanager
from socket import socketpair
from threading import Thread

import msgspec
import pytest
import zmq
from burst_embedded.boot import read_broker_config
from burst_embedded.follower import FollowerBroker
from burst_embedded.handle import EmbeddedHandle
from burst_embedded.methods import JOIN
from burst_embedded.wire import (
    GOODBYE,
    PROTOCOL,
    Message,
    calling_socket,
    decode,
    serving_socket,
)

from burst.errors import LeadGone
from burst.kits import certificate
from burst.model.lead import JobState
from tests.contract.watching import Watch
from tests.embedded_instance import (
    EmbeddedInstance,
    embedded_instance,
    short_directory,
    write_files,
)
from tests.support.ports import free_port
from tests.support.waiting import HANG_S, wait_until

HOST = "burst-0-1"
RANK = 3
SLEEP = ("sleep", "600")


@pytest.fixture
def instance() -> Iterator[EmbeddedInstance]:
    with embedded_instance() as instance:
        yield instance


@pytest.fixture(scope="module")
def closed() -> Iterator[EmbeddedInstance]:
    """An instance that nobody joins: one for all who are turned away."""
    with embedded_instance() as instance:
        yield instance


@pytest.fixture
def watch(instance: EmbeddedInstance) -> Iterator[Watch]:
    with closing(instance.lead()) as lead:
        yield Watch(lead)


def join(instance: EmbeddedInstance, watch: Watch, host: str = HOST) -> None:
    instance.start_follower(host)
    watch.online(RANK)


def welcomed(instance: EmbeddedInstance) -> None:
    """Wait until it knows that it joined; before, it would join again.

    The lead says that it is online as soon as it has answered.
    """
    wait_until(lambda: "joined as rank" in instance.log(HOST), "the answer")


def code(instance: EmbeddedInstance, host: str = HOST) -> int:
    return instance.process(host).wait(HANG_S)


@contextmanager
def zmq_context() -> Iterator[zmq.Context[zmq.Socket[bytes]]]:
    """Leave no socket."""
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    yield context
    context.destroy(linger=0)


def say(instance: EmbeddedInstance, request: bytes) -> str:
    """Connect as a follower would, send a request, and return why it fails."""
    boot = read_broker_config(instance.config, HOST)
    with zmq_context() as context:
        socket = calling_socket(context, boot)
        socket.connect(boot.hosts[0].connect)
        assert socket.poll(int(HANG_S * 1000), zmq.POLLOUT)
        socket.send(request)
        while True:
            assert socket.poll(int(HANG_S * 1000))
            answer = decode(socket.recv())
            if answer.errnum:
                return answer.payload.decode()


SAME = PROTOCOL.rpartition(".")[0]
JOINS = [
    (
        ("9.0.0", HOST, RANK, 1),
        rf"client \(9.0.0\) version mismatched with server \({PROTOCOL}\)",
    ),
    ((f"{SAME}.7", "burst-0-2", RANK, 1), "burst-0-1 is configured as rank 3"),
    ((PROTOCOL, "burst-0-9", 11, 1), "nothing is configured as rank 11"),
    ((PROTOCOL, "lead-0", 0, 1), "the lead's own"),
]


def joining(version: str, hostname: str, rank: int, pid: int) -> bytes:
    who = {"version": version, "hostname": hostname, "rank": rank, "pid": pid}
    return Message(1, JOIN, msgspec.json.encode(who)).encode()


def test_who_joins_is_checked_as_flux_checks_it(closed: EmbeddedInstance) -> None:
    for join, why in JOINS:
        assert re.search(why, say(closed, joining(*join)))
        _, host, rank, _ = join
        assert f"rejecting {host} (rank {rank})" in closed.log("lead-0")


def test_a_follower_with_hosts_in_another_order_says_why_and_ends(
    instance: EmbeddedInstance,
) -> None:
    text = instance.config.read_text()
    instance.config.write_text(text.replace("burst-0-[0-3]", "burst-0-[3,2,1,0]"))
    instance.start_follower("burst-0-0")
    assert code(instance, "burst-0-0") == 1
    said = instance.log("burst-0-0")
    assert "burst-0-3 is configured as rank 5: mismatched config?" in said


def test_another_certificate_is_refused(closed: EmbeddedInstance) -> None:
    boot = read_broker_config(closed.config, HOST)
    other = msgspec.structs.replace(boot, certificate=certificate.create("other"))
    with pytest.raises(LeadGone):
        EmbeddedHandle(boot.hosts[0].connect, other)


def test_a_key_of_its_own_is_refused_by_address(closed: EmbeddedInstance) -> None:
    boot = read_broker_config(closed.config, HOST)
    public, secret = zmq.curve_keypair()
    with zmq_context() as context:
        socket = context.socket(zmq.DEALER)
        socket.setsockopt(zmq.CURVE_SERVERKEY, boot.certificate.public)
        socket.setsockopt(zmq.CURVE_PUBLICKEY, public)
        socket.setsockopt(zmq.CURVE_SECRETKEY, secret)
        socket.connect(boot.hosts[0].connect)
        refused = "refused 127.0.0.1: its key is not the certificate's"
        wait_until(lambda: refused in closed.log("lead-0"), refused)


def test_no_certificate_at_all_is_refused(closed: EmbeddedInstance) -> None:
    with zmq_context() as context:
        socket = context.socket(zmq.DEALER)
        monitor = socket.get_monitor_socket(zmq.EVENT_DISCONNECTED)
        socket.connect(read_broker_config(closed.config, HOST).hosts[0].connect)
        socket.send(joining(PROTOCOL, HOST, RANK, 1))
        assert monitor.poll(int(HANG_S * 1000))
        assert not socket.poll(0)


def test_the_secret_key_is_in_no_log(instance: EmbeddedInstance, watch: Watch) -> None:
    join(instance, watch)
    secret = read_broker_config(instance.config, HOST).certificate.secret.decode()
    welcomed(instance)
    instance.stop()
    for log in instance.directory.glob("*.log"):
        assert secret not in log.read_text()
    assert instance.log(HOST).count("joined as rank") == 1


def test_a_follower_may_be_there_before_its_lead(instance: EmbeddedInstance) -> None:
    instance.stop()
    instance.start_follower(HOST)
    wait_until(lambda: "waiting for the lead" in instance.log(HOST), "waiting")
    instance.start()
    with closing(instance.lead()) as lead:
        Watch(lead).online(RANK)


def test_the_newest_of_two_for_a_rank_wins(
    instance: EmbeddedInstance, watch: Watch
) -> None:
    join(instance, watch)
    job = instance.submit(slots=1, cores=4, command=SLEEP)
    watch.state(job, JobState.RUN)
    instance.start_second("follower", HOST)
    assert code(instance) == 1
    assert "another broker joined as this rank" in instance.log(HOST)
    assert watch.state(job, JobState.INACTIVE).result == "failed"
    watch.online(RANK)
    assert instance.output(instance.submit(slots=1, cores=4, command=("echo", "x")))


def test_goodbye_is_said_before_the_answer_is_read() -> None:
    """A lead that has answered would else wait for a broker that has ended."""
    stop, signaled = socketpair()
    with short_directory() as directory, stop, signaled:
        config = write_files(directory, free_port())
        boot = read_broker_config(config, "lead-0")
        context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        lead = serving_socket(context, boot)
        lead.bind(boot.hosts[0].bind)
        broker = FollowerBroker(read_broker_config(config, HOST), directory)
        running = Thread(target=lambda: broker.run(stop.fileno()))
        running.start()
        try:
            assert heard(lead).topic == JOIN
            signaled.send(b"x")
            running.join(HANG_S)
            broker.close()
            while (said := heard(lead)).topic != GOODBYE:
                assert said.topic
        finally:
            signaled.send(b"x")
            context.destroy(linger=0)


def heard(lead: zmq.Socket[bytes]) -> Message:
    assert lead.poll(int(HANG_S * 1000))
    return decode(lead.recv_multipart()[-1])


def test_a_silent_follower_is_lost_and_ends_when_it_is_back(
    instance: EmbeddedInstance, watch: Watch
) -> None:
    join(instance, watch)
    process = instance.process(HOST)
    welcomed(instance)
    os.kill(process.pid, signal.SIGSTOP)
    try:
        watch.until(lambda view: RANK not in view.online, "lost")
    finally:
        os.kill(process.pid, signal.SIGCONT)
    assert code(instance) == 1
    assert "has closed the connection" in instance.log(HOST)


@pytest.mark.parametrize(
    ("how", "status", "said"),
    [
        (signal.SIGTERM, 0, "the lead is stopping"),
        (signal.SIGKILL, 1, "has closed the connection"),
    ],
)
def test_a_follower_ends_with_its_lead(
    instance: EmbeddedInstance, how: int, status: int, said: str
) -> None:
    with closing(instance.lead()) as lead:
        join(instance, Watch(lead))
    welcomed(instance)
    process = instance.process("lead-0")
    process.send_signal(how)
    assert process.wait(HANG_S) == -how * status
    assert code(instance) == status
    assert said in instance.log(HOST)


def test_hosts_with_a_parent_join_the_lead_directly(
    instance: EmbeddedInstance, watch: Watch
) -> None:
    text = instance.config.read_text()
    entry = '{ host = "burst-0-1", parent = "burst-0-0" }'
    instance.config.write_text(
        text.replace("]\n[resource]", f"    {entry},\n]\n[resource]")
    )
    join(instance, watch)


def test_a_follower_without_an_address_to_go_to_says_so(
    instance: EmbeddedInstance,
) -> None:
    write_files(instance.directory, free_port())
    text = instance.config.read_text()
    for old, said in (
        ('default_connect = "tcp://127.0.0.1:%p"', "no connect address"),
        ('"tcp://127.0.0.1:%p"\nhosts', "no address to connect to"),
    ):
        new = '"tcp://127.0.0.1:x"\nhosts' if "hosts" in old else ""
        instance.config.write_text(text.replace(old, new))
        instance.start_follower(HOST)
        assert code(instance) == 1
        assert said in instance.log(HOST)
