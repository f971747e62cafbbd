# SPDX-License-Identifier: MIT
"""Control groups of followers, to kill the jobs of guests with their follower.

The daemon's user may not send signals to a guest's processes. It may kill a control
group that it owns, with all processes in it. So if the daemon's own group was delegated
to its user (`Delegate=yes` of a systemd unit), each follower has a group below it:

    GROUP/burst.OWNER.PROVIDER.BURST.HOST

Otherwise there are no such groups, and a guest's process that outlives a killed
follower is only reported. Version 2 only, Linux 5.14 or later.

Sources: cgroups(7), the kernel's cgroup-v2.rst (Delegation, cgroup.kill).
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterable
from pathlib import Path

_PREFIX = "burst."


class Cgroups:
    """The groups of one provider's followers."""

    def __init__(self, home: str, group: Path | None) -> None:
        """`home` is the name of the provider's directory, `group` one that we own."""
        self._home = home
        self._group = group

    def add(self, burst: str, host: str, pid: int) -> None:
        """Move a follower that was just started into a group of its own.

        This must be done before it runs jobs. Raises OSError.
        """
        if self._group is not None:
            place = self._place(self._group, burst, host)
            place.mkdir(exist_ok=True)
            with contextlib.suppress(ProcessLookupError):  # it has ended already
                (place / "cgroup.procs").write_text(str(pid))

    def kill(self, burst: str, hosts: Iterable[str]) -> None:
        """Kill all processes in the groups of these followers, whatever their user."""
        if self._group is not None:
            for host in hosts:
                _kill(self._place(self._group, burst, host))

    def remove(self, burst: str) -> bool:
        """Remove the groups of a burst whose followers ended; tell if none is left.

        Processes that still run in a group, such as a job that left its follower's
        session, are killed. Raises OSError.
        """
        places = (
            self._group.glob(f"{_PREFIX}{self._home}.{burst}.*") if self._group else ()
        )
        left = [place for place in places if not _remove(place)]
        for place in left:
            _kill(place)
        return not left

    def _place(self, group: Path, burst: str, host: str) -> Path:
        return group / f"{_PREFIX}{self._home}.{burst}.{host}"


def _kill(place: Path) -> None:
    with contextlib.suppress(FileNotFoundError):
        (place / "cgroup.kill").write_text("1")


def _remove(place: Path) -> bool:
    """Remove a group, unless something runs in it."""
    try:
        place.rmdir()
    except OSError as error:
        if error.errno == errno.EBUSY:
            return False
        raise
    return True


def own_group(proc: Path = Path("/proc/self")) -> Path | None:
    """Return this process's control group, if it was delegated to its user; or None.

    None also for root, who may send signals to all processes.
    """
    if os.geteuid() == 0:
        return None
    return delegated_group(proc, os.geteuid())


def delegated_group(proc: Path, user: int) -> Path | None:
    """Return a process's version 2 group if this user owns it, else None.

    `proc` is the process's directory in /proc.
    """
    mounts = (line.split() for line in (proc / "mounts").read_text().splitlines())
    root = next((fields[1] for fields in mounts if fields[2] == "cgroup2"), None)
    lines = (proc / "cgroup").read_text().splitlines()
    name = next((line[3:] for line in lines if line.startswith("0::")), None)
    if root is None or name is None:
        return None
    group = Path(root, name.lstrip("/"))
    try:
        ours = group.stat().st_uid == user
    except FileNotFoundError:  # it is outside of this process's namespace
        return None
    return group if ours and (group / "cgroup.kill").exists() else None
