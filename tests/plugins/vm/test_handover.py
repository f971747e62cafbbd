# SPDX-License-Identifier: MIT
"""VMs fetch their files once, over TLS, by the script that user data has."""

from __future__ import annotations

import contextlib
import json
import logging
import socket
import stat
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec
import pytest
from burst_vm import fetch, listener
from burst_vm.provider import VmProvider
from burst_vm.waiting_clients import MOST_OF_ONE

from burst.errors import Transient
from burst.kits import certificate
from burst.kits.rotation import rotate
from burst.provider import BurstSpec, Phase
from burst.testing import example_spec
from tests.plugins.vm.fake_cloud import FakeCloud
from tests.support.own_name import OWN_NAME, needs_name
from tests.support.reaping import reap_until_gone
from tests.support.waiting import HANG_S

# On a VM, files are given to a user by name.
pytestmark = needs_name


def run_fetch(
    cloud: FakeCloud, name: str = "vm", **changes: Any
) -> subprocess.CompletedProcess[str]:
    """Run the script as the first VM would, in a directory of this name."""
    home = cloud.path / name
    home.mkdir(exist_ok=True)
    given = {**cloud.handover(), "home": str(home), **changes}
    (home / "handover.json").write_text(json.dumps(given))
    command = [sys.executable, fetch.__file__, str(home / "handover.json")]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def ask(cloud: FakeCloud, **changes: Any) -> Any:
    """Return the listener's answer to the first VM."""
    return fetch.ask({**cloud.handover(), "home": "/run/vm", **changes})


@pytest.fixture
def spec(cloud: FakeCloud) -> BurstSpec:
    return cloud.spec(1)


@pytest.fixture
def provider(cloud: FakeCloud, spec: BurstSpec) -> VmProvider:
    """Give one that has made a burst of one VM, and listens as long as it exists."""
    provider = cloud.provider(user=OWN_NAME)
    provider.provision(spec)
    return provider


def test_a_vm_gets_what_its_follower_needs(
    cloud: FakeCloud, spec: BurstSpec, provider: VmProvider
) -> None:
    done = run_fetch(cloud)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    home = cloud.path / "vm"
    assert {p.name for p in home.iterdir()} == {
        *("handover.json", "burst.cert", "broker.toml", "start")
    }
    ours = certificate.read(Path(spec.lead.certificate))
    assert certificate.read(home / "burst.cert") == ours
    assert str(home / "burst.cert") in (home / "broker.toml").read_text()
    assert f"--config-path={home}/broker.toml" in (home / "start").read_text()
    for name in ("burst.cert", "broker.toml", "start"):
        assert stat.S_IMODE((home / name).stat().st_mode) == 0o600
    [status] = provider.observe()
    assert status.phase is Phase.RUNNING


def test_a_certificate_that_was_replaced_meanwhile_is_the_one_of_the_running_lead(
    cloud: FakeCloud,
) -> None:
    spec = cloud.spec(1)
    path = Path(spec.lead.certificate)
    # The lead started with it, and reads no other before it is restarted.
    lead = msgspec.structs.replace(spec.lead, started=path.stat().st_mtime)
    provider = cloud.provider(user=OWN_NAME)
    provider.provision(msgspec.structs.replace(spec, lead=lead))
    before = certificate.read(path)
    rotate(path)
    assert run_fetch(cloud).returncode == 0
    assert certificate.read(cloud.path / "vm/burst.cert") == before


@pytest.mark.usefixtures("provider")
def test_a_reboot_fetches_nothing(cloud: FakeCloud) -> None:
    run_fetch(cloud)
    assert run_fetch(cloud, port=1).returncode == 0


@pytest.mark.usefixtures("provider")
def test_a_token_is_taken_once_and_a_second_use_is_warned_of(
    cloud: FakeCloud, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "burst"):
        assert "files" in ask(cloud)
        assert caplog.messages == []
        assert ask(cloud) == {"error": "the token was used before"}
    [said] = caplog.messages
    assert "127.0.0.1" in said
    assert "somebody else has read the user data" in said
    done = run_fetch(cloud, "thief")
    assert done.returncode == 1
    assert "the token was used before" in done.stderr
    assert not (cloud.path / "thief/burst.cert").exists()


@pytest.mark.usefixtures("provider")
def test_of_many_at_once_one_gets_the_files(cloud: FakeCloud) -> None:
    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(lambda _: ask(cloud), range(32)))
    assert sum("files" in answer for answer in answers) == 1


def test_a_token_is_for_one_follower_and_a_few_minutes(cloud: FakeCloud) -> None:
    provider = cloud.provider()
    provider.provision(cloud.spec(2))
    mine = cloud.handover(0)["host"]
    other = {"burst-0-0": "burst-0-1", "burst-0-1": "burst-0-0"}[mine]
    assert ask(cloud, host=other) == {"error": "the token is wrong"}
    cloud.now += 901
    assert ask(cloud) == {"error": "the token is too old"}
    cloud.now -= 901
    assert "files" in ask(cloud)
    assert provider.observe()


@pytest.mark.parametrize(
    "changes",
    [
        {"token": "0" * 64},
        {"token": "x" * 5000},
        {"token": 3},
        {"burst": "burst-9-000000"},
        {"burst": "../owner.vm/BURST"},
        {"host": "../x"},
        {"home": "relative"},
        {"home": "/run/../etc"},
        {"home": "/a b"},
    ],
    ids=str,
)
@pytest.mark.usefixtures("provider")
def test_nothing_else_gets_files(cloud: FakeCloud, changes: dict[str, Any]) -> None:
    assert set(ask(cloud, **changes)) == {"error"}
    assert "files" in ask(cloud), "a wrong request takes no token"


@pytest.mark.usefixtures("provider")
def test_who_is_not_the_listener_gets_no_token(cloud: FakeCloud) -> None:
    with pytest.raises(SystemExit, match="not the listener"):
        ask(cloud, fingerprint="0" * 64)
    assert "files" in ask(cloud)


def test_after_restarts_tokens_are_as_before(cloud: FakeCloud, spec: BurstSpec) -> None:
    provider = cloud.provider()
    provider.provision(spec)
    del provider
    restarted = cloud.provider()
    restarted.observe()
    assert "files" in ask(cloud)
    del restarted
    again = cloud.provider()
    again.observe()
    assert ask(cloud) == {"error": "the token was used before"}


@pytest.mark.usefixtures("provider")
def test_the_notes_are_private_and_have_no_secret_of_a_vm_nor_has_its_user_data(
    cloud: FakeCloud, spec: BurstSpec
) -> None:
    secret = certificate.read(Path(spec.lead.certificate)).secret.decode()
    files = [path for path in cloud.path.rglob("notes/**/*") if path.is_file()]
    assert len(files) == 3
    for path in files:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert cloud.handover()["token"] not in path.read_text()
        assert secret not in path.read_text()
    assert secret not in json.dumps(cloud.handover())
    assert secret not in cloud.asked[0]["ex_userdata"]


def test_the_port_is_open_while_bursts_live(cloud: FakeCloud, spec: BurstSpec) -> None:
    provider = cloud.provider()
    provider.observe()
    assert not reachable(cloud)
    provider.provision(spec)
    assert reachable(cloud)
    reap_until_gone(provider, spec.burst_id)
    assert not reachable(cloud)


@pytest.mark.usefixtures("provider")
def test_a_client_that_speaks_no_tls_holds_up_nobody(cloud: FakeCloud) -> None:
    where = ("127.0.0.1", cloud.port)
    with socket.create_connection(where) as silent:
        with socket.create_connection(where, timeout=10) as loud:
            loud.sendall(b"GET / HTTP/1.0\r\n\r\n" * 100)
            said = b""
            with contextlib.suppress(OSError):
                said = loud.recv(1000)
            assert b"files" not in said
        assert "files" in ask(cloud)
        assert silent.fileno() > 0


@pytest.mark.usefixtures("provider")
def test_clients_that_send_nothing_take_no_place_of_a_vm(cloud: FakeCloud) -> None:
    where, other = ("127.0.0.1", cloud.port), ("127.0.0.2", 0)
    with contextlib.ExitStack() as stack:
        for _ in range(3 * MOST_OF_ONE):
            silent = socket.create_connection(where, HANG_S, source_address=other)
            stack.enter_context(silent)
        assert "files" in ask(cloud)


def test_each_vm_whose_token_was_used_before_is_logged(
    cloud: FakeCloud, caplog: pytest.LogCaptureFixture
) -> None:
    """Also where all of them have one address, behind a router."""
    provider = cloud.provider(user=OWN_NAME)
    provider.provision(cloud.spec(2))
    for _ in range(2):
        for number in range(2):
            fetch.ask({**cloud.handover(number), "home": "/run/vm"})
    told = [m for m in caplog.messages if "the token was used before, for" in m]
    assert [m for m in told if "burst-0-0" in m]
    assert [m for m in told if "burst-0-1" in m]


@pytest.mark.usefixtures("provider")
def test_a_client_that_is_refused_again_and_again_is_logged_once(
    cloud: FakeCloud, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(20):
        assert "error" in ask(cloud, token="x")
    assert len([m for m in caplog.messages if "gets no files" in m]) == 1


def test_munges_key_is_given_where_it_is_set(cloud: FakeCloud, spec: BurstSpec) -> None:
    key = cloud.path / "munge.key"
    key.write_bytes(bytes(range(256)))
    provider = cloud.provider(munge_key=str(key))
    provider.provision(spec)
    answer = ask(cloud)
    assert answer["restart"] == ["munge"]
    path, content, user = answer["files"][0]
    assert (path, user) == ("/etc/munge/munge.key", "munge")
    assert len(content) == 344
    assert provider.observe()


def reachable(cloud: FakeCloud) -> bool:
    try:
        socket.create_connection(("127.0.0.1", cloud.port), HANG_S).close()
    except OSError:
        return False
    return True


def test_a_provider_after_a_reload_has_the_port_of_the_one_before(
    cloud: FakeCloud, spec: BurstSpec
) -> None:
    before = cloud.provider(user="somebody")
    before.provision(spec)
    after = cloud.provider(user=OWN_NAME)
    after.observe()
    del before
    assert run_fetch(cloud).returncode == 0
    reap_until_gone(after, spec.burst_id)
    # Another identity: key and certificate are gone with the last burst.
    after.provision(spec)
    assert cloud.handover(0)["fingerprint"] != cloud.handover(1)["fingerprint"]
    assert "files" in fetch.ask({**cloud.handover(1), "home": "/run/vm"})


def test_where_the_key_was_deleted_vms_know_the_next_one(
    cloud: FakeCloud, spec: BurstSpec
) -> None:
    provider = cloud.provider()
    provider.provision(spec)
    (cloud.path / "notes/owner.vm/listener.pem").unlink()
    other = example_spec(spec.lead, 1, "nodes", 1)
    provider.provision(other)
    assert cloud.handover(0)["fingerprint"] != cloud.handover(1)["fingerprint"]
    assert "files" in fetch.ask({**cloud.handover(1), "home": "/run/vm"})


@pytest.mark.usefixtures("provider")
def test_two_providers_cannot_have_one_port(cloud: FakeCloud, spec: BurstSpec) -> None:
    with pytest.raises(Transient, match="set bind and port"):
        cloud.provider("another").provision(spec)


@pytest.mark.usefixtures("provider")
def test_a_token_is_not_taken_while_the_files_cannot_be_read(
    cloud: FakeCloud, spec: BurstSpec, caplog: pytest.LogCaptureFixture
) -> None:
    path = Path(spec.lead.certificate)
    content = path.read_text()
    path.unlink()
    with (
        caplog.at_level(logging.WARNING, "burst"),
        pytest.raises(ValueError, match="char 0"),
    ):
        ask(cloud)  # as for an answer that is cut off, after which a VM asks again
    assert "gets no files yet" in caplog.text
    path.touch(mode=0o600)
    path.write_text(content)
    assert "files" in ask(cloud)


def test_a_client_that_sends_a_byte_now_and_then_loses_its_place() -> None:
    here, there = socket.socketpair()
    ended = threading.Event()

    def drip() -> None:
        while not ended.wait(0.05):
            there.sendall(b"x")

    client = threading.Thread(target=drip)
    with here, there:
        client.start()
        begun = time.monotonic()
        try:
            with pytest.raises(TimeoutError):
                listener.read_line(here, 0.5)
        finally:
            ended.set()
            client.join()
        assert time.monotonic() - begun < HANG_S


def test_a_line_is_what_is_before_its_end() -> None:
    here, there = socket.socketpair()
    with here, there:
        there.sendall(b"a line\nmore")
        assert listener.read_line(here, HANG_S) == b"a line"
        there.sendall(b"x" * 5000)
        assert len(listener.read_line(here, HANG_S)) == 4096


def test_a_vm_asks_as_long_as_its_token_is_taken(cloud: FakeCloud) -> None:
    cloud.provider().provision(cloud.spec(1))
    assert cloud.handover()["lasts"] == 900
    begun = time.monotonic()
    done = run_fetch(cloud, port=1, lasts=fetch.PAUSE_S - 1)
    assert done.returncode == 1
    assert "no answer yet" in done.stderr
    assert "the listener did not answer" in done.stderr
    assert time.monotonic() - begun < HANG_S
