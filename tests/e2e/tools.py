# SPDX-License-Identifier: MIT
"""The programs that `make e2e` needs, and how they are installed on Debian."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import msgspec

# Programs and the Debian packages that have them. What is not here, Go, Flux and
# Fluxion, is a person's to install: Debian's own Go is too old, and it has no Flux.
PACKAGES = {
    "cc": ("gcc", "libc6-dev"),
    "chromium": ("chromium",),
    "dbus-user-session": ("dbus-user-session",),
    "debootstrap": ("debootstrap",),
    "docker": ("docker.io",),
    "dockerd": ("docker.io",),
    "ip": ("iproute2",),
    "iptables": ("iptables",),
    "lmp": ("lammps",),
    "loginctl": ("systemd",),
    "mpicc.openmpi": ("libopenmpi-dev", "openmpi-bin"),
    "munged": ("munge",),
    "nsenter": ("util-linux",),
    "openssl": ("openssl",),
    "pam_systemd": ("libpam-systemd",),
    "prometheus": ("prometheus",),
    "promtool": ("prometheus",),
    "sbatch": ("slurm-client",),
    "setpriv": ("util-linux",),
    "slurmctld": ("slurmctld",),
    "slurmd": ("slurmd",),
    "ssh": ("openssh-client",),
    "sshd": ("openssh-server",),
    "systemctl": ("systemd",),
    "tar": ("tar",),
    "unshare": ("util-linux",),
}
# What is named as programs are, and is a file.
FILES = {
    "dbus-user-session": "usr/lib/systemd/user/dbus.socket",
    "fluxion": "opt/fluxion/lib/flux/modules/sched-fluxion-qmanager.so",
    "pam_systemd": "usr/lib/*/security/pam_systemd.so",
}
ROOT = "root"
"""Named among programs where they have to be run as root."""
_LEAST_GO = (1, 24)
# Linux lets each user have 128. Hosts of three stages need about 200.
_INOTIFY, _INSTANCES = Path("/proc/sys/fs/inotify/max_user_instances"), 1024


def _find(name: str) -> str | None:
    """Return where a program or one of FILES is, None where it is not."""
    if name in FILES:
        return next(map(str, Path("/").glob(FILES[name])), None)
    return shutil.which(name)


def _run(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    return subprocess.run(
        list(command), env=environment, capture_output=True, text=True, check=False
    )


class Machine(msgspec.Struct, frozen=True):
    """What is installed here; tests give one of their own."""

    which: Callable[[str], str | None] = _find
    run: Callable[[Sequence[str]], subprocess.CompletedProcess[str]] = _run
    uid: Callable[[], int] = os.geteuid
    inotify: Path = _INOTIFY

    def lacks(self, needed: Iterable[str]) -> list[str]:
        """Return a sentence for each of these that is missing."""
        return [said for name in needed if (said := self._lack(name))]

    def install(self, needed: Iterable[str]) -> None:
        """Install what is missing and Debian has, if this is root on Debian.

        What could not be installed is still missing afterwards; why is printed.
        """
        missing = [name for name in needed if self._lack(name)]
        found = (PACKAGES.get(name, ()) for name in missing)
        packages = sorted({package for each in found for package in each})
        if not packages or self.uid() or not self.which("apt-get"):
            return
        say(f"installing {' '.join(packages)}")
        install = ["apt-get", "-q", "-y", "install", "--no-install-recommends"]
        for command in (["apt-get", "-q", "update"], [*install, *packages]):
            done = self.run(command)
            if done.returncode:
                say(f"{' '.join(command)} failed: {done.stderr.strip()}")

    def allow_hosts(self) -> bool:
        """Raise how many inotify instances a user may have; return whether it is high.

        A host with too few ends while it boots.
        """
        try:
            if int(self.inotify.read_text()) < _INSTANCES:
                self.inotify.write_text(f"{_INSTANCES}\n")
        except OSError as error:
            say(f"{self.inotify} stays: {error}; one stage with hosts at a time")
            return False
        return True

    def _lack(self, name: str) -> str:
        if name == ROOT:
            return "root is needed" if self.uid() else ""
        if not self.which(name):
            packages = " ".join(PACKAGES.get(name, ()))
            how = f" (apt-get install {packages})" if packages else ""
            where = f"in /{FILES[name]}" if name in FILES else "on PATH"
            return f"{name} is not {where}{how}"
        return self._old_go() if name == "go" else ""

    def _old_go(self) -> str:
        version = self.run(["go", "env", "GOVERSION"]).stdout.strip()
        found = re.match(r"go(\d+)\.(\d+)", version)
        if found and tuple(map(int, found.groups())) >= _LEAST_GO:
            return ""
        least = ".".join(map(str, _LEAST_GO))
        return f"go is {version or 'of an unknown version'}, and {least} is needed"


def say(text: str) -> None:
    """Tell a person at once; a stage's output has lines of its own."""
    sys.stderr.write(f"make e2e: {text}\n")
