# SPDX-License-Identifier: MIT
"""Processes as proc(5) shows them, and signals that never go to a reused pid."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from burst.errors import Refused
from burst.kits.process_environs import PROC, has_ended, read_environs, read_stat

TAGS = ("BURST_OWNER", "BURST_PROVIDER", "BURST_ID", "BURST_HOST")
"""Variables in the environment of each follower and of the processes that it starts,
unless they clear it. Flux starts jobs with the environment of their submission."""
_KEPT = (*TAGS, "FLUX_URI")


class ProcessIdentity(msgspec.Struct, frozen=True):
    """What identifies a process, also after its pid was reused or the host rebooted."""

    pid: int
    start: int
    """When it was started, in clock ticks after boot."""
    boot: str


class Process(msgspec.Struct, frozen=True, kw_only=True):
    """A process as proc(5) shows it."""

    identity: ProcessIdentity
    parent: int
    group: int
    session: int
    user: int
    """Its effective user id. A guest's job on a follower has the guest's, and flux-imp
    beside it has root's."""
    environ: Mapping[str, str]
    """Its variables of TAGS, and FLUX_URI; empty if we may not read its environment."""
    ended: bool = False
    """Whether it is a zombie: it has ended, and its parent has not waited for it."""

    @property
    def pid(self) -> int:
        """The pid, for as long as the process lives."""
        return self.identity.pid

    @property
    def age(self) -> float:
        """Seconds since it was started, by a clock that cannot be set."""
        ticks = os.sysconf("SC_CLK_TCK")
        return time.clock_gettime(time.CLOCK_BOOTTIME) - self.identity.start / ticks


def scan(proc: Path = PROC) -> dict[int, Process]:
    """Return all processes that run, by pid. Raises Refused without a Linux /proc."""
    return {pid: found for pid, found in scan_all(proc).items() if not found.ended}


def scan_all(proc: Path = PROC) -> dict[int, Process]:
    """Return all processes by pid, zombies too. Raises Refused without a Linux /proc.

    With `hidepid`, /proc does not show processes of other users. It shows ours, as
    followers run as the user of the daemon.
    """
    try:
        boot = _boot(proc)
        pids = [int(name) for name in os.listdir(proc) if name.isdigit()]
    except OSError as error:
        raise Refused(
            f"processes cannot be read: {error}",
            "followers on this host need Linux and a readable /proc",
        ) from error
    seen = {pid: _read(proc, pid, boot) for pid in pids}
    found = {pid: process for pid, process in seen.items() if process}
    # Read last: if a pid was reused meanwhile, the environment is the new process's and
    # the identity that of the ended one, to which no signal is sent.
    environs = read_environs(found, proc)
    return {
        pid: msgspec.structs.replace(process, environ=_kept(environs.get(pid, b"")))
        for pid, process in found.items()
    }


def send(signum: signal.Signals, processes: Iterable[Process]) -> None:
    """Send a signal to each process that still lives, never to a reused pid.

    Raises Refused if one belongs to another user.
    """
    for process in processes:
        with contextlib.suppress(ProcessLookupError):
            handle = os.pidfd_open(process.pid)
            try:
                # A pidfd refers to one process even if the pid is reused. It is open
                # now, so the check that it is the right process stays true.
                again = _read(PROC, process.pid, process.identity.boot)
                if again and again.identity == process.identity and not again.ended:
                    signal.pidfd_send_signal(handle, signum)
            except PermissionError as error:
                raise Refused(
                    f"process {process.pid} belongs to another user",
                    "run the daemon as the user who started the followers",
                ) from error
            finally:
                os.close(handle)


def may_signal(process: Process) -> bool:
    """Tell whether this user may send a signal to the process (kill(2))."""
    return os.geteuid() in (0, process.user)


def identity_of(pid: int) -> ProcessIdentity:
    """Return the identity of a child of ours, also of a zombie."""
    return ProcessIdentity(pid, int(read_stat(pid)[19]), _boot(PROC))


def is_hidden(pid: int, proc: Path = PROC) -> bool:
    """Return whether a process that we may signal runs, but /proc does not show it.

    That happens with `hidepid` if its program has privileges of its own (proc(5)).
    """
    try:
        os.kill(pid, 0)
        read_stat(pid, proc)
    except ProcessLookupError:
        return False
    except PermissionError as error:
        return error.filename is not None  # of /proc, not of kill
    except FileNotFoundError:
        return True
    return False


def _boot(proc: Path) -> str:
    return (proc / "sys/kernel/random/boot_id").read_text().strip()


def _read(proc: Path, pid: int, boot: str) -> Process | None:
    """Return a process without its environment; None if there is no such process."""
    try:
        fields = read_stat(pid, proc)
        user = (proc / str(pid)).stat().st_uid
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return None
    return Process(
        identity=ProcessIdentity(pid, int(fields[19]), boot),
        parent=int(fields[1]),
        group=int(fields[2]),
        session=int(fields[3]),
        user=user,
        environ={},
        ended=has_ended(fields),
    )


def _kept(environ: bytes) -> dict[str, str]:
    pairs = (entry.partition(b"=") for entry in environ.split(b"\0"))
    named = {os.fsdecode(name): os.fsdecode(value) for name, _, value in pairs}
    return {name: named[name] for name in _KEPT if name in named}
