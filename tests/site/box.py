# SPDX-License-Identifier: MIT
"""A host of its own on this machine: systemd as PID 1, over the machine's files.

A box has namespaces of its own (pid, mount, uts, ipc, network, control group). Its root
is an overlay of the machine's, with what changes in memory: what is installed on the
machine is installed in it, and nothing that is done in it reaches the machine. Users
log in, units start and stop, and control groups (version 2) are systemd's, as on a
host.

    with Box("head") as box:
        box.run("root", "systemctl", "start", "munge")
        box.run("ann", "id", "-un")          returns what it printed

All its processes are in one control group, `burst-site-…`, which a process outside of
it ends and removes together with the box's directory once whoever made the box is gone,
however that ended.

Needs root, systemd with its PAM module, dbus, and util-linux; `missing()` says what is
not there.

Sources: unshare(1), systemd(1), cgroups(7), "The Container Interface" of systemd.
"""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import IO

from tests.site.box_root import PATH, SYSTEMD, init_script
from tests.support.waiting import HANG_S, wait_until

_TOOLS = ("ip", "loginctl", "mount", "nsenter", "setpriv", "systemctl", "unshare")
_PAM = "**/security/pam_systemd.so"
_BUS = Path("/usr/lib/systemd/user/dbus.socket")
_CGROUPS = (Path("/sys/fs/cgroup/unified"), Path("/sys/fs/cgroup"))


@cache
def missing() -> str:
    """Return what a box lacks on this machine, empty if it has all."""
    if os.geteuid() != 0:
        return "root"
    needed = {
        "systemd": SYSTEMD.exists(),
        "the PAM module of systemd (libpam-systemd)": any(Path("/lib").glob(_PAM)),
        "the bus of a user (dbus-user-session)": _BUS.exists(),
        "control groups of version 2 that can be written": _can_group(),
        **{tool: bool(shutil.which(tool)) for tool in _TOOLS},
    }
    absent = [name for name, there in needed.items() if not there]
    return ", ".join(absent) or _lacks_namespaces()


def _can_group() -> bool:
    return os.access(_cgroups(), os.W_OK)


def _lacks_namespaces() -> str:
    tried = subprocess.run(
        ["unshare", "--mount", "--pid", "--fork", "true"], check=False
    )
    return "the right to make namespaces" if tried.returncode else ""


def _cgroups() -> Path:
    """Return where control groups of version 2 are."""
    found = [each for each in _CGROUPS if (each / "cgroup.controllers").exists()]
    return found[0] if found else Path("/nonexistent")


class Box:
    """One host; `close` ends it, and nothing of it is left."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.directory = Path(tempfile.mkdtemp(prefix=f"bs-{name}-", dir="/tmp"))
        self.directory.chmod(0o755)
        self.cgroup = _cgroups() / f"burst-site-{self.directory.name}"
        self.shared = self.directory / "shared"
        """The same directory here and in the box."""
        self.shared.mkdir()
        self.cgroup.mkdir()
        self._start_cleaner()
        try:
            self._boot()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Box:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _start_cleaner(self) -> None:
        """Start what removes the box, once this process ended or `close` told it."""
        script = self.directory / "clean"
        script.write_text(_CLEAN.format(cgroup=self.cgroup, directory=self.directory))
        # A session of its own: what is sent to a terminal's processes is not for it.
        self._cleaner = subprocess.Popen(
            ["sh", str(script), str(os.getpid())],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            cwd="/",
        )

    def _boot(self) -> None:
        script = self.directory / "init"
        script.write_text(init_script(self.name, self.directory, self.shared))
        enter = (
            f"echo 0 > {self.cgroup}/cgroup.procs; exec unshare --cgroup sh {script}"
        )
        spaces = ("--pid", "--mount", "--uts", "--ipc", "--net")
        alone = ("--fork", "--kill-child", *spaces, "--propagation", "private")
        with (self.directory / "box.log").open("wb") as log:
            self._outer = subprocess.Popen(
                ["unshare", *alone, "sh", "-c", enter],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
                start_new_session=True,
            )
        wait_until(self._has_booted, lambda: f"box {self.name}: {self.log()}")

    def _has_booted(self) -> bool:
        ended = self._outer.poll()
        assert ended is None, f"box {self.name} ended with {ended}: {self.log()}"
        pid = self._outer.pid
        with suppress(OSError):
            children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
            if children:
                self.pid = int(children[0])
                # It is systemd from the moment that its root is the box's.
                is_systemd = Path(f"/proc/{self.pid}/comm").read_text() == "systemd\n"
                return is_systemd and self._is_running()
        return False

    def _is_running(self) -> bool:
        done = self.try_run("root", "systemctl", "is-system-running")
        # One of the machine's own services may not start here.
        return done.stdout.strip() in {"running", "degraded"}

    @property
    def lives(self) -> bool:
        """Whether it is on: it may power itself off."""
        return self._outer.poll() is None

    def log(self) -> str:
        """Return what making the box, and systemd, printed."""
        return (self.directory / "box.log").read_text(errors="replace")

    def journal(self, unit: str) -> str:
        """Return what a unit printed."""
        return self.try_run("root", "journalctl", "-o", "cat", "-u", unit).stdout

    def close(self) -> None:
        """Kill all that runs in it, and remove what it had."""
        (self.directory / "over").touch()
        self._cleaner.wait()
        if hasattr(self, "_outer"):
            self._outer.kill()
            self._outer.wait()

    def command(
        self, user: str, command: Sequence[str], env: Mapping[str, str] | None = None
    ) -> list[str]:
        """Return the argv that runs a command in the box as a user."""
        home = "/root" if user == "root" else f"/home/{user}"
        # First of all programs is this Python's `burst`.
        path = f"{PATH}:{Path(sys.executable).parent}"
        given = {"HOME": home, "USER": user, "LOGNAME": user, "PATH": path}
        given |= {"LANG": "C.UTF-8", "SHELL": "/bin/bash", **(env or {})}
        ids = () if user == "root" else (f"--reuid={user}", f"--regid={user}")
        groups = () if user == "root" else ("--init-groups",)
        return [
            *("nsenter", f"--target={self.pid}", "--all", "--wdns=/"),
            *("env", "-i", *(f"{key}={value}" for key, value in given.items())),
            *(("setpriv", *ids, *groups) if ids else ()),
            *command,
        ]

    def start(
        self, user: str, *command: str, log: IO[bytes]
    ) -> subprocess.Popen[bytes]:
        """Start a command as a user; `log` gets what it prints."""
        return subprocess.Popen(
            self.command(user, command),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            cwd="/",
        )

    def try_run(
        self,
        user: str,
        *command: str,
        env: Mapping[str, str] | None = None,
        given: str = "",
        limit: float = HANG_S,
    ) -> subprocess.CompletedProcess[str]:
        """Run a command as a user and return how it ended; it may fail."""
        return subprocess.run(
            self.command(user, command, env),
            input=given,
            capture_output=True,
            text=True,
            cwd="/",
            timeout=limit,
            check=False,
        )

    def run(
        self, user: str, *command: str, env: Mapping[str, str] | None = None
    ) -> str:
        """Run a command as a user and return what it printed."""
        done = self.try_run(user, *command, env=env)
        assert done.returncode == 0, (user, command, done.stdout, done.stderr)
        return done.stdout

    def read(self, path: str | Path) -> bytes:
        """Return what is in a file of the box."""
        return subprocess.run(
            self.command("root", ["cat", str(path)]), check=True, capture_output=True
        ).stdout

    def write(self, path: str | Path, text: str, mode: str = "644") -> None:
        """Write a file of root's, and the directories above it."""
        place, number = str(path), secrets.token_hex(4)
        made = self.shared / number
        made.write_text(text)
        self.run("root", "install", "-D", "-m", mode, str(made), place)
        made.unlink()


# Whoever made the box may be killed, and all that belongs to it with it but this.
_CLEAN = """\
until [ -e {directory}/over ] || ! kill -0 "$1"; do sleep 0.1; done
echo 1 > {cgroup}/cgroup.kill
while [ -d {cgroup} ]; do
    find {cgroup} -depth -type d -exec rmdir {{}} +
    sleep 0.05
done
rm -rf {directory}
"""
