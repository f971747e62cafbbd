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

PROC = Path("/proc")
TAGS = ("BURST_OWNER", "BURST_PROVIDER", "BURST_ID", "BURST_HOST")
"""Variables of each follower and of the processes that it starts, unless these clear
their environment. Flux starts jobs with the environment of their submission instead."""
_KEPT = (*TAGS, "FLUX_URI")
# PF_KTHREAD of the flags in proc_pid_stat(5).
_KERNEL_THREAD = 0x00200000
# After how many seconds a process without an environment is read again, and again. The
# longer ones are for a busy host, where it may have no turn within execve(2).
_PAUSES = (0.002,) * 10 + (0.02,) * 5


class ProcessIdentity(msgspec.Struct, frozen=True):
    """What identifies a process, also after its pid was reused or the host rebooted."""

    pid: int
    start: int
    """Clock ticks after boot."""
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
    """Those of the variables above that it has; empty if we may not read it."""
    bare: bool = False
    """Whether it shows no environment, as any process in execve(2) for a moment."""
    ended: bool = False
    """Whether it is a zombie: it has ended, and its parent has not waited for it."""

    @property
    def pid(self) -> int:
        """The pid, for as long as the process lives."""
        return self.identity.pid

    @property
    def age(self) -> float:
        """Seconds since it was started, by a clock that nobody sets."""
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
    for pause in _PAUSES:
        bare = [p.pid for p in seen.values() if p and p.bare]
        if not bare:
            break
        # Without its tags a process of ours would not be recognized.
        time.sleep(pause)
        seen |= {pid: _read(proc, pid, boot) for pid in bare}
    return {pid: process for pid, process in seen.items() if process}


def send(signum: signal.Signals, processes: Iterable[Process]) -> None:
    """Send a signal to each of these that still lives, never to a reused pid.

    Raises Refused if one belongs to another user.
    """
    for process in processes:
        with contextlib.suppress(ProcessLookupError):
            handle = os.pidfd_open(process.pid)
            try:
                # A pidfd stays with one process although its pid may be reused. Whether
                # it is the right one is read after it was opened.
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
    return ProcessIdentity(pid, int(_stat(PROC, pid)[19]), _boot(PROC))


def is_hidden(pid: int, proc: Path = PROC) -> bool:
    """Return whether a process that we may signal runs, but /proc does not show it.

    That is so with `hidepid` where its program has rights of its own (proc(5)).
    """
    try:
        os.kill(pid, 0)
        _stat(proc, pid)
    except ProcessLookupError:
        return False
    except PermissionError as error:
        return error.filename is not None  # of /proc, not of kill
    except FileNotFoundError:
        return True
    return False


def _boot(proc: Path) -> str:
    return (proc / "sys/kernel/random/boot_id").read_text().strip()


def _stat(proc: Path, pid: int) -> list[str]:
    """Return the fields after the name."""
    stat = (proc / str(pid) / "stat").read_text(errors="replace")
    # The name, in parentheses, may hold spaces and parentheses itself.
    return stat.rpartition(")")[2].split()


def _read(proc: Path, pid: int, boot: str) -> Process | None:
    try:
        fields = _stat(proc, pid)
        user = (proc / str(pid)).stat().st_uid
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return None
    content = _environ(proc / str(pid) / "environ")
    # A process that ends is a zombie before the last of its threads has ended.
    ended = fields[0] in "ZX" and int(fields[17]) <= 1
    pairs = (entry.partition(b"=") for entry in (content or b"").split(b"\0"))
    named = {os.fsdecode(name): os.fsdecode(value) for name, _, value in pairs}
    return Process(
        identity=ProcessIdentity(pid, int(fields[19]), boot),
        parent=int(fields[1]),
        group=int(fields[2]),
        session=int(fields[3]),
        user=user,
        environ={name: named[name] for name in _KEPT if name in named},
        bare=content == b"" and not (ended or int(fields[6]) & _KERNEL_THREAD),
        ended=ended,
    )


def _environ(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return None
