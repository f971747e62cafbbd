# SPDX-License-Identifier: MIT
"""Control groups of followers and of their jobs, to kill jobs with their follower.

The daemon's user may not send signals to a guest's processes. It may kill a control
group that it owns, with all processes in it. So if the daemon's own group was delegated
to its user (`Delegate=yes` of a systemd unit), each follower has a group below it:

    GROUP/burst.OWNER.PROVIDER.BURST.HOST

Otherwise there are no such groups, and a guest's process that outlives a killed
follower is only reported. Version 2 only, Linux 5.14 or later.

With `[exec] service = "sdexec"` a job is a transient unit of the owner's systemd,
outside the session and the control group of its follower. The unit's file has the
follower's environment, so FLUX_URI tells which follower started it. This user owns the
unit's control group, and may kill all processes in it, whatever their user.

    RUNTIME/systemd/transient/imp-shell-RANK-JOBID.service
    CGROUPS/user.slice/user-UID.slice/user@UID.service/SLICE/imp-shell-….service

Sources: cgroups(7), the kernel's cgroup-v2.rst (Delegation, cgroup.kill); sdexec.c and
bulk-exec.c of flux-core; systemd.unit(5).
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from burst.kits.systemd_user import runtime_directory

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


_CGROUPS = Path("/sys/fs/cgroup")


class Units:
    """The units of this user's systemd; none if the user has no systemd."""

    def __init__(self, runtime: Path | None = None, cgroups: Path = _CGROUPS) -> None:
        self._files = (runtime or runtime_directory()) / "systemd" / "transient"
        user = os.geteuid()
        self._groups = (
            cgroups / "user.slice" / f"user-{user}.slice" / f"user@{user}.service"
        )

    def kill(self, rundirs: Iterable[Path]) -> bool:
        """Kill jobs left by followers with these rundirs; tell whether there were none.

        Call it once the followers have ended: a broker ends its jobs in an orderly way.
        Raises OSError.
        """
        left = list(self._left(frozenset(map(str, rundirs))))
        for group in left:
            with contextlib.suppress(FileNotFoundError):
                (group / "cgroup.kill").write_text("1")
        return not left

    def _left(self, rundirs: frozenset[str]) -> Iterator[Path]:
        if not self._files.is_dir():
            return
        marks = [f'"FLUX_URI=local://{rundir}/local"' for rundir in rundirs]
        for file in self._files.glob("*.service"):
            if any(mark in _read(file) for mark in marks):
                for group in self._groups.glob(f"*/{file.name}"):
                    if _is_populated(group):
                        yield group


def _read(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except FileNotFoundError:  # it has ended since it was listed
        return ""


def _is_populated(group: Path) -> bool:
    return "populated 1" in _read(group / "cgroup.events")
