# SPDX-License-Identifier: MIT
"""Why a real follower does not join a real lead, as its provider tells it."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest
import zmq
from burst_local.provider import LocalProvider

from burst.kits import certificate, follower_facts
from burst.kits.join_errors import explain_log, has_joined
from burst.model.lead import LeadIdentity
from burst.provider import BurstSpec, Phase
from burst.testing import example_spec
from tests.flux_instance import FLUX
from tests.plugins.local.harness import LocalHarness, open_bench
from tests.support.fluxlead import FluxLead, flux_lead
from tests.support.ports import free_port
from tests.support.waiting import wait_until

pytestmark = pytest.mark.flux


@pytest.fixture(scope="module")
def lead() -> Iterator[FluxLead]:
    with flux_lead() as lead:
        yield lead


@pytest.fixture
def local() -> Iterator[LocalHarness]:
    with open_bench() as local:
        yield local


@pytest.fixture(scope="module")
def broken_zmq(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library that breaks a broker's ZeroMQ."""
    compiler = shutil.which("cc")
    if compiler is None or not Path("/usr/include/zmq.h").exists():
        pytest.skip("want of a C compiler and zmq.h")
    library = tmp_path_factory.mktemp("zmq") / "broken_zmq.so"
    source = Path(__file__).with_name("broken_zmq.c")
    subprocess.run(
        [compiler, "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True
    )
    return library


class Follower:
    """One follower of this lead, and what is told of it."""

    def __init__(self, local: LocalHarness, identity: LeadIdentity) -> None:
        self._local = local
        self._spec = example_spec(identity, 0, "local", nodes=1)
        self._provider: LocalProvider | None = None

    @property
    def spec(self) -> BurstSpec:
        return self._spec

    def start(self, **environment: str) -> None:
        settings = msgspec.structs.replace(
            self._local.settings, environment=environment
        )
        self._provider = LocalProvider("here", settings, self._local.owner)
        self._provider.provision(self._spec)

    @property
    def why(self) -> str:
        assert self._provider
        return self._local.status(self._provider).why

    @property
    def phase(self) -> Phase:
        assert self._provider
        return self._local.status(self._provider).phase

    @property
    def log(self) -> str:
        host = self._spec.hosts[0]
        return self._local.home.burst(self._spec.burst_id).follower(host).log_end()

    def wait_for(self, *words: str) -> None:
        """Wait until one of these is told."""
        wait_until(
            lambda: any(each in self.why for each in words),
            lambda: f"{words}: {self.log}",
        )


def at(lead: FluxLead, local: LocalHarness, endpoint: str = "") -> Follower:
    identity = lead.identity(local.owner)
    if endpoint:
        identity = msgspec.structs.replace(identity, endpoint=endpoint)
    return Follower(local, identity)


@contextmanager
def program(says: bytes) -> Iterator[str]:
    """Another program than a lead, which says this to all that connect; its address.

    With nothing to say it never answers.
    """
    kept: list[socket.socket] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            while True:
                try:
                    guest, _ = server.accept()
                except OSError:
                    return
                kept.append(guest)
                if says:
                    guest.recv(64)
                    guest.sendall(says)

        threading.Thread(target=serve, daemon=True).start()
        yield f"tcp://127.0.0.1:{server.getsockname()[1]}"
        server.shutdown(socket.SHUT_RDWR)
    for guest in kept:
        guest.close()


def test_one_that_joins_has_nothing_to_explain(
    lead: FluxLead, local: LocalHarness
) -> None:
    follower = at(lead, local)
    follower.start()
    wait_until(lambda: has_joined(follower.log), "it to join")
    wait_until(lambda: "burst-0-0" in lead.online(), "the lead to see it")
    assert follower.why == ""
    told = len(follower.log)
    for _ in range(3):
        lead.run("--requires=host:burst-0-0", "true")
    assert follower.why == ""
    assert len(follower.log) - told < 1000, "it is silent once it has joined"


def test_a_port_at_which_nothing_listens(lead: FluxLead, local: LocalHarness) -> None:
    endpoint = f"tcp://127.0.0.1:{free_port()}"
    follower = at(lead, local, endpoint)
    follower.start()
    follower.wait_for(f"burst-0-0 it cannot connect to {endpoint}: nothing listens")
    assert "check address and port under [lead]" in follower.why
    assert follower.phase is Phase.RUNNING
    # The lead may take a moment to miss the follower of the test before.
    wait_until(lambda: lead.online() == {"lead-0"}, "only the lead to be up")


LISTENS = "than the lead listens at "


@pytest.mark.parametrize(
    ("says", "told"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", LISTENS),
        (b"", "it is connected to "),
    ],
    ids=["http", "silent"],
)
def test_a_port_at_which_another_program_listens(
    says: bytes, told: str, lead: FluxLead, local: LocalHarness
) -> None:
    with program(says) as endpoint:
        follower = at(lead, local, endpoint)
        follower.start()
        # Flux reads the events of a connection late at times: then it has no answer.
        follower.wait_for(f"{told}{endpoint}", f"no answer from {endpoint}: ")
        assert "a program other than the lead listens" in follower.why


def test_a_lead_without_curve(lead: FluxLead, local: LocalHarness) -> None:
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    with context, context.socket(zmq.ROUTER) as plain:
        port = plain.bind_to_random_port("tcp://127.0.0.1")
        peer = f"tcp://127.0.0.1:{port}"
        follower = at(lead, local, peer)
        follower.start()
        # As of another program; then it is not known how the handshake failed.
        follower.wait_for(
            f"at {peer} speaks ZeroMQ without CURVE", f"no answer from {peer}: "
        )


def test_a_name_that_cannot_be_resolved(lead: FluxLead, local: LocalHarness) -> None:
    follower = at(lead, local, "tcp://lead.invalid:8050")
    follower.start()
    follower.wait_for(
        "it cannot resolve the lead's host name lead.invalid: set address"
    )
    words = "connect retried"
    wait_until(lambda: follower.log.count(words) > 3, "it to try again")
    end = follower.log.splitlines()[-3:]
    assert "host name lead.invalid" in explain_log("\n".join(end)), "by the end alone"


def test_another_certificate(lead: FluxLead, local: LocalHarness) -> None:
    path = local.directory / "other.cert"
    certificate.write(certificate.create("other"), path)
    identity = lead.identity(local.owner)
    follower = Follower(local, msgspec.structs.replace(identity, certificate=str(path)))
    follower.start()
    follower.wait_for("the lead does not accept its certificate")
    attempts = "handshake failed"
    wait_until(lambda: follower.log.count(attempts) > 3, "it to try again")
    assert "the lead does not accept its certificate" in follower.why
    assert "certificate" not in lead.log()


def test_hosts_in_another_order(lead: FluxLead, local: LocalHarness) -> None:
    identity = lead.identity(local.owner)
    entries = identity.bootstrap.hosts
    swapped = msgspec.structs.replace(entries[1], host="burst-0-[1,0,2-3]")
    spec_of = example_spec(identity, 0, "local", nodes=1)
    wrong = msgspec.structs.replace(
        identity,
        hosts=("lead-0", "burst-0-1", "burst-0-0", "burst-0-2", "burst-0-3"),
        bootstrap=msgspec.structs.replace(
            identity.bootstrap, hosts=(entries[0], swapped)
        ),
    )
    provider = LocalProvider("here", local.settings, local.owner)
    provider.provision(msgspec.structs.replace(spec_of, lead=wrong, ranks=(2,)))
    wait_until(lambda: local.status(provider).phase is Phase.FAILED, "its end")
    why = local.status(provider).why
    assert why.startswith(
        "burst-0-0 exited with status 1: its list of hosts is not the lead's: "
    )
    said = "burst-0-1 is configured as rank 2: mismatched config?"
    wait_until(lambda: said in lead.log(), lambda: f"{said!r} in {lead.log()}")


@pytest.mark.parametrize(
    ("broken", "why"),
    [
        ("version", "it runs Flux 0.87.0, and the lead runs 0.88.0:"),
        ("curve", "its ZeroMQ was built without CURVE"),
    ],
)
def test_another_version_of_flux_and_a_zeromq_without_libsodium(
    broken: str, why: str, lead: FluxLead, local: LocalHarness, broken_zmq: Path
) -> None:
    follower = at(lead, local)
    follower.start(LD_PRELOAD=str(broken_zmq), BROKEN_ZMQ=broken)
    wait_until(lambda: follower.phase is Phase.FAILED, lambda: follower.log)
    assert follower.why.startswith(f"burst-0-0 exited with status 1: {why}")
    assert "rmmod" not in follower.why, "only what matters of the log"
    assert "0.87.0" not in lead.log()


def test_the_probe_finds_a_zeromq_without_libsodium_before_any_burst(
    broken_zmq: Path,
) -> None:
    shaken = {"LD_PRELOAD": str(broken_zmq), "BROKEN_ZMQ": "curve"}
    done = subprocess.run(
        ["/bin/sh", "-c", follower_facts.script(FLUX)],
        env={"PATH": os.environ["PATH"], **shaken},
        capture_output=True,
        text=True,
        check=True,
    )
    facts, _ = follower_facts.parse(done.stdout)
    assert facts
    assert facts.version.startswith("commands: 0.")
    assert "Operation not supported" in facts.curve
