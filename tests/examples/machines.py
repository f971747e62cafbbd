# SPDX-License-Identifier: MIT
"""Virtual hosts with an SSH server each: network namespaces of this host.

They share its files and its processes; each has addresses of its own.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.support.waiting import HANG_S, wait_until

LEAD = "10.213.0.1"
"""Of the host, on the bridge to which all machines are connected."""
_BRIDGE = "burst-ssh"
_LOCK = Path("/run/burst-ssh.lock")
# Each namespace with what runs in it, of a run that was killed.
_REMOVE = f"""\
for name in $(ip netns list | grep -o '^machine-[0-9]*'); do
    ip netns pids $name | xargs -r kill -KILL
    ip netns del $name
done
ip link show {_BRIDGE} > /dev/null 2>&1 || exit 0
ip link del {_BRIDGE}
"""
_SERVER = """\
Port 22
ListenAddress {address}
HostKey {place}/host
AuthorizedKeysFile {place}/client.pub
StrictModes no
UsePAM no
PidFile {place}/{name}.pid
"""
_CLIENT = """\
Host machine-*
    IdentityFile {place}/client
    StrictHostKeyChecking no
    UserKnownHostsFile /dev/null
    LogLevel ERROR
"""
SSHD = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin") or ""
MISSING = [
    name
    for name, there in (
        ("root", os.geteuid() == 0),
        ("sshd", SSHD),
        ("ssh", shutil.which("ssh")),
        ("ip", shutil.which("ip")),
    )
    if not there
]


def run(*command: str) -> None:
    """Run a program. Raises CalledProcessError."""
    subprocess.run(command, check=True, capture_output=True, timeout=HANG_S)


class Machines:
    """Those that run, and an `ssh` that knows them, in the directory `bin`."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.names: list[str] = []


@contextmanager
def machines(place: Path, count: int) -> Iterator[Machines]:
    """Yield so many machines; they and all that runs there are gone after it."""
    for key in ("host", "client"):
        run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(place / key))
    Path("/run/sshd").mkdir(exist_ok=True)
    made = Machines(place)
    with ExitStack() as stack:
        # There is one network of these addresses: another run waits for its turn.
        fcntl.flock(stack.enter_context(_LOCK.open("w")), fcntl.LOCK_EX)
        run("sh", "-ec", _REMOVE)
        run("ip", "link", "add", _BRIDGE, "type", "bridge")
        stack.callback(run, "ip", "link", "del", _BRIDGE)
        run("ip", "addr", "add", f"{LEAD}/24", "dev", _BRIDGE)
        run("ip", "link", "set", _BRIDGE, "up")
        names = [f"machine-{number}" for number in range(count)]
        client = [_CLIENT.format(place=place)]
        for number, name in enumerate(names, 11):
            address = f"10.213.0.{number}"
            stack.enter_context(_machine(place, name, address))
            client.append(f"Host {name}\n    HostName {address}\n")
            made.names.append(name)
        (place / "client.conf").write_text("".join(client))
        (place / "bin").mkdir()
        ssh = place / "bin" / "ssh"
        ssh.write_text(
            # The first value of an option counts: a busy machine takes longer.
            f"#!/bin/sh\nexec {shutil.which('ssh')} -F {place}/client.conf"
            ' -oConnectTimeout=20 "$@"\n'
        )
        ssh.chmod(0o755)
        yield made


@contextmanager
def _machine(place: Path, name: str, address: str) -> Iterator[None]:
    inside = ("ip", "-n", name)
    with ExitStack() as stack:
        run("ip", "netns", "add", name)
        stack.callback(run, "ip", "netns", "del", name)
        port = f"b-{name.removeprefix('machine-')}"
        peer = ("type", "veth", "peer", "name", "eth0", "netns", name)
        run("ip", "link", "add", port, *peer)
        run("ip", "link", "set", port, "master", _BRIDGE, "up")
        run(*inside, "addr", "add", f"{address}/24", "dev", "eth0")
        run(*inside, "link", "set", "eth0", "up")
        run(*inside, "link", "set", "lo", "up")
        config = place / f"{name}.conf"
        config.write_text(_SERVER.format(address=address, place=place, name=name))
        log = stack.enter_context((place / f"{name}.log").open("wb"))
        command = ["ip", "netns", "exec", name, SSHD, "-D", "-e", "-f", str(config)]
        server = subprocess.Popen(command, stderr=log)
        stack.callback(server.wait)
        stack.callback(server.terminate)
        said = place / f"{name}.log"
        wait_until(lambda: "listening on" in said.read_text(), said.read_text)
        yield
