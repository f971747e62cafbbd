# SPDX-License-Identifier: MIT
"""The clients' side: connections, and what is said when one is gone."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import closing

import msgspec
import pytest
import zmq
from burst_embedded.connection import Connection
from burst_embedded.job import Job
from burst_embedded.wire import Fault, Output, fault_of

from burst.errors import (
    BurstError,
    ConfigError,
    Denied,
    JobspecError,
    LeadError,
    LeadGone,
    NoDaemon,
    ServiceTaken,
    StoreError,
    Unreadable,
)
from burst.model.jobid import JobId
from burst.model.lead import LeadIdentity
from tests.embedded_instance import (
    EmbeddedInstance,
    embedded_instance,
    short_directory,
)
from tests.support.waiting import HANG_S


@pytest.fixture(scope="module")
def instance() -> Iterator[EmbeddedInstance]:
    """One lead for all tests that do not end it."""
    with embedded_instance() as instance:
        yield instance


@pytest.fixture
def lone() -> Iterator[EmbeddedInstance]:
    """A lead of this test's own, which it may end."""
    with embedded_instance() as instance:
        yield instance


@pytest.mark.parametrize(
    "uri", ["", "local:///run/flux", "embedded://", "embedded://relative/control"]
)
def test_what_is_no_uri_is_refused(uri: str) -> None:
    with pytest.raises(ConfigError, match="embedded:// and the path"):
        Connection(uri)


def test_a_path_too_long_is_refused() -> None:
    with pytest.raises(ConfigError, match="107 bytes"):
        Connection(f"embedded:///{'x' * 100}/control")


def test_no_lead_is_said_at_once() -> None:
    with short_directory() as directory, pytest.raises(LeadGone, match="not there"):
        Connection(f"embedded://{directory}/control")


def test_the_socket_of_a_lead_that_was_killed_is_no_lead(
    lone: EmbeddedInstance,
) -> None:
    lone.kill()
    assert (lone.directory / "r" / "control").exists()
    with pytest.raises(LeadGone, match="not there"):
        Connection(lone.uri)


def test_the_end_of_the_lead_is_noticed_at_once(lone: EmbeddedInstance) -> None:
    job = lone.submit(nodes=4)
    with closing(Connection(lone.uri)) as client:
        stream = client.stream(Output | None, "attach", job)
        client.call(int, "sync")
        lone.kill()
        with pytest.raises(LeadGone, match="closed the connection"):
            next(stream)
        with pytest.raises(LeadGone, match="closed the connection"):
            client.call(int, "sync")


def test_a_lead_that_hangs_is_gone_and_its_late_answer_is_taken_for_no_other(
    instance: EmbeddedInstance,
) -> None:
    lead = instance.process("lead-0")
    with closing(Connection(instance.uri)) as client:
        os.kill(lead.pid, signal.SIGSTOP)
        try:
            with pytest.raises(LeadGone, match=r"within 0.3 s"):
                client.call(int, "sync", timeout=0.3)
        finally:
            os.kill(lead.pid, signal.SIGCONT)
        assert client.call(LeadIdentity, "identity").kind == "embedded"


def test_what_the_lead_says_is_raised(instance: EmbeddedInstance) -> None:
    with closing(Connection(instance.uri)) as client:
        with pytest.raises(LeadError, match="unknown job"):
            client.call(Job, "find", JobId(1))
        with pytest.raises(NoDaemon, match="burst daemon"):
            client.call(dict, "request", "status", {})
        with pytest.raises(JobspecError):
            client.call(int, "submit", {}, 16)
        with pytest.raises(LeadError, match="no method 'steal'"):
            client.call(None, "steal")
        with pytest.raises(LeadError, match="drain: "):
            client.call(None, "drain", "all")


def test_nonsense_is_logged_and_harms_nobody(instance: EmbeddedInstance) -> None:
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    socket = context.socket(zmq.DEALER)
    try:
        socket.connect(f"ipc://{instance.directory}/r/control")
        socket.send(b"nonsense")
        socket.send(msgspec.msgpack.encode({"type": "Call", "number": 1, "body": {}}))
        socket.send(b"\x81\xa1a" * 100_000)
        deadline = time.monotonic() + HANG_S
        while instance.log("lead-0").count("cannot be understood") < 3:
            assert time.monotonic() < deadline
            time.sleep(0.02)
    finally:
        context.destroy(linger=0)
    with closing(Connection(instance.uri)) as client:
        assert client.call(int, "sync") >= 0


def test_a_stream_says_why_it_could_not_be_opened(instance: EmbeddedInstance) -> None:
    with (
        closing(Connection(instance.uri)) as client,
        pytest.raises(LeadError, match="unknown job"),
    ):
        next(client.stream(Output | None, "attach", JobId(1)))
    client.close()
    with pytest.raises(LeadGone, match="was closed"):
        client.call(int, "sync")


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (Denied("x", "y"), Denied),
        (ServiceTaken("x"), ServiceTaken),
        (NoDaemon("x"), NoDaemon),
        (JobspecError("x"), JobspecError),
        (LeadError("x"), LeadError),
        (Unreadable("x"), LeadError),
        (StoreError("x"), StoreError),
        (BurstError("x", "y"), BurstError),
    ],
)
def test_errors_cross_the_wire(error: BurstError, kind: type[BurstError]) -> None:
    text = msgspec.msgpack.encode(fault_of(error))
    again = msgspec.msgpack.decode(text, type=Fault).error()
    assert type(again) is kind
    assert (again.what, again.advice) == (error.what, error.advice)
