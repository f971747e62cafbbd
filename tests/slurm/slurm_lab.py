# SPDX-License-Identifier: MIT
"""A real Slurm on this host: slurmctld, several slurmd, and munge, all of a test's own.

Its nodes n0 to n5 are this host, by one slurmd each. Files, sockets and ports are the
lab's; the machine's own Slurm and munge are not touched. It has no accounting. What it
kills or drains past a time it does after ten minutes, as this host may be busy.

    batch   n[0-3], an hour at most
    few     n[0-3], one node for five minutes at most
    away    n[4-5], and it is down

Sources: slurm.conf(5), slurmd(8) (-N), munged(8).
"""

from __future__ import annotations

import contextlib
import os
import pwd
import secrets
import shlex
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
from burst_slurm.provider import SlurmProvider
from burst_slurm.settings import SlurmSettings

from burst.config import Seconds
from burst.provider import BurstSpec, Provider
from tests.support.marked import kill_all_with
from tests.support.ports import free_port
from tests.support.waiting import HANG_S, wait_until

PROGRAMS = ("slurmctld", "slurmd", "munged", "sbatch", "squeue", "srun", "scancel")
_CONFIG = """\
ClusterName=lab
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket={place}/munge.socket
StateSaveLocation={place}/state
SlurmdSpoolDir={place}/spool.%n
SlurmctldPidFile={place}/slurmctld.pid
SlurmdPidFile={place}/slurmd.%n.pid
SlurmctldLogFile={place}/slurmctld.log
SlurmdLogFile={place}/slurmd.%n.log
ProctrackType=proctrack/{proctrack}
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
SchedulerParameters=batch_sched_delay=0,sched_interval=2,sched_min_interval=0
ReturnToService=2
KillWait=600
UnkillableStepTimeout=600
Epilog={place}/epilog
BatchStartTimeout=600
MinJobAge=600
GresTypes=gpu
Licenses=matlab:2
NodeName=DEFAULT CPUs=4 Gres=gpu:k80:1 Features=intel
NodeName=n[0-5] NodeHostname={host} NodeAddr=127.0.0.1 Port={ports}
PartitionName=batch Nodes=n[0-3] Default=YES MaxTime=60 State=UP
PartitionName=few Nodes=n[0-3] MaxNodes=1 MaxTime=5 State=UP
PartitionName=away Nodes=n[4-5] MaxTime=60 State=DOWN
"""
_NODES = 6
# Ends at once, unless a test holds it.
_EPILOG = """\
#!/bin/sh
while [ -e {place}/held ]; do sleep 0.1; done
"""
# Submits, and then cannot say so.
_CUT = """\
#!/bin/sh
{sbatch} "$@" > {place}/answer || exit
[ ! -e {place}/cut ] || {{
  rm {place}/cut
  echo "sbatch: error: Socket timed out on send/recv operation" >&2
  exit 1
}}
echo Welcome to the lab
cat {place}/answer
"""


LINUXPROC, CGROUP = "linuxproc", "cgroup"
"""How Slurm knows the processes of a job. With the first, a signal to end it reaches
all of them; with the second, which is Slurm's default, only the first of each task."""
_CGROUPS = Path("/sys/fs/cgroup")


def missing(proctrack: str = LINUXPROC) -> str:
    """Return what this machine lacks for such a lab; empty if nothing."""
    absent = [name for name in PROGRAMS if not _program(name)]
    if (
        not absent
        and proctrack == CGROUP
        and not os.access(_CGROUPS / "freezer", os.W_OK)
    ):
        return f"a right to write to {_CGROUPS}/freezer"
    return f"programs of Slurm: {', '.join(absent)}" if absent else ""


def _program(name: str) -> str | None:
    """Return where a program is; daemons are in sbin, which not all have on PATH."""
    return shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")


class SlurmLab:
    """The cluster; all of it ends with the block."""

    def __init__(self, place: Path, proctrack: str = LINUXPROC) -> None:
        self.place = place
        self._proctrack = proctrack
        self.dir = place / "shared"
        self.bin = place / "bin"
        self._daemons: dict[str, subprocess.Popen[bytes]] = {}
        self.settings = SlurmSettings(
            dir=str(self.dir), cores=4, max_nodes=4, time=Seconds(3600)
        )

    def __enter__(self) -> SlurmLab:
        try:
            self._start()
        except BaseException:
            self._kill()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self.cancel_all()
        finally:
            self._kill()

    @property
    def environment(self) -> dict[str, str]:
        """By which Slurm's programs, and our provider, find this cluster."""
        path = f"{self.bin}:{os.environ['PATH']}"
        return {"SLURM_CONF": str(self.place / "slurm.conf"), "PATH": path}

    def provider(
        self,
        owner: str = "owner-a",
        name: str = "slurm",
        *,
        pace: float = 1.0,
        **changes: Any,
    ) -> SlurmProvider:
        """Return a provider whose clock is so many times as fast from now on."""
        settings = msgspec.structs.replace(self.settings, **changes)
        begun = time.time()
        return SlurmProvider(
            name,
            settings,
            owner,
            clock=lambda: begun + pace * (time.time() - begun),
        )

    def slurm(self, *words: str) -> str:
        """Return what one of Slurm's programs prints. Fails if it does."""
        done = subprocess.run(
            words,
            env={**os.environ, **self.environment},
            capture_output=True,
            text=True,
            timeout=HANG_S,
            check=False,
        )
        assert done.returncode == 0, (words, done.stdout, done.stderr)
        return done.stdout.strip()

    def jobs(self, form: str = "%i %T %j") -> list[str]:
        """Return a line for each job that has not ended."""
        return self.slurm("squeue", "--noheader", f"--format={form}").splitlines()

    def cancel_all(self) -> None:
        """Cancel all jobs, and wait for their end."""
        self.slurm("scancel", "--me")
        wait_until(lambda: not self.jobs(), lambda: f"an end of {self.jobs()}")

    def stop_controller(self) -> None:
        """Have slurmctld answer nobody, as one that hangs."""
        self._daemons["slurmctld"].send_signal(signal.SIGSTOP)

    def go_on_controller(self) -> None:
        self._daemons["slurmctld"].send_signal(signal.SIGCONT)
        wait_until(self._answers, self.log)

    @contextlib.contextmanager
    def controller_away(self) -> Iterator[None]:
        """Stop slurmctld, and start it again with what it knew."""
        daemon = self._daemons["slurmctld"]
        daemon.terminate()
        daemon.wait(HANG_S)
        try:
            yield
        finally:
            self._run("slurmctld", "-D")
            wait_until(self._answers, self.log)

    @contextlib.contextmanager
    def epilog_held(self) -> Iterator[None]:
        """Have the epilogs of jobs that end in the block last until its end."""
        held = self.place / "held"
        held.touch()
        try:
            yield
        finally:
            held.unlink()

    # What the contract needs of a cluster.

    @contextlib.contextmanager
    def unreachable(self) -> Iterator[None]:
        """Slurm's programs are told of a controller that is not there."""
        dead = self.place / "dead.conf"
        text = (self.place / "slurm.conf").read_text()
        found = next(line for line in text.splitlines() if "SlurmctldPort" in line)
        dead.write_text(text.replace(found, f"SlurmctldPort={free_port()}"))
        before = os.environ["SLURM_CONF"]
        os.environ["SLURM_CONF"] = str(dead)
        try:
            yield
        finally:
            os.environ["SLURM_CONF"] = before

    @contextlib.contextmanager
    def stalled(self) -> Iterator[None]:
        self.slurm("scontrol", "update", "PartitionName=batch", "State=DOWN")
        yield
        self.slurm("scontrol", "update", "PartitionName=batch", "State=UP")

    def full(self, owner: str) -> Provider:
        # By its clock the job has soon waited long enough for the partition.
        return self.provider(owner, partition="away", pace=30.0)

    @contextlib.contextmanager
    def crash(self, *, submitted: bool) -> Iterator[None]:
        if not submitted:
            with self.unreachable():
                yield
            return
        self.lose_an_answer()
        yield

    def lose_an_answer(self) -> Path:
        """Lose the next answer of sbatch; return a file that is gone once it is."""
        cut = self.place / "cut"
        cut.touch()
        return cut

    def public(self) -> str:
        """Return what others can see of all jobs, and more: their scripts."""
        numbers = self.jobs("%i")
        scripts = (
            self.slurm("scontrol", "write", "batch_script", n, "-") for n in numbers
        )
        return "\n".join([self.slurm("scontrol", "show", "job"), *scripts])

    def tasks(self, spec: BurstSpec) -> int:
        """Count the nodes of jobs that have not ended."""
        found = (line.split() for line in self.jobs("%D %j"))
        return sum(int(n) for n, name in found if name.endswith(f".{spec.burst_id}"))

    def _start(self) -> None:
        self._write_files()
        munge = self.place / "munge"
        munge.mkdir(mode=0o700)
        key = munge / "key"
        key.write_bytes(secrets.token_bytes(1024))
        key.chmod(0o600)
        names = {"key-file": "key", "pid-file": "pid", "log-file": "log"}
        files = [f"--{option}={munge / name}" for option, name in names.items()]
        files += [f"--seed-file={munge / 'seed'}"]
        self._run(
            *("munged", "--foreground", "--force", *files),
            f"--socket={self.place / 'munge.socket'}",
        )
        wait_until((self.place / "munge.socket").exists, "munged to listen")
        self._run("slurmctld", "-D", "-c")
        for number in range(_NODES):
            self._run("slurmd", "-D", "-N", f"n{number}", name=f"n{number}")
        self.wait_idle()

    def wait_idle(self) -> None:
        """Wait until Slurm has all nodes, and nothing is on them."""
        wait_until(self._is_idle, self.log)

    def _is_idle(self) -> bool:
        return f"{_NODES} idle" in self._answers()

    def _answers(self) -> list[str]:
        """Return how many nodes are in which state; empty if nobody answers."""
        for name, daemon in self._daemons.items():
            assert daemon.poll() is None, (self.place / f"{name}.out").read_text()
        try:
            return self.slurm("sinfo", "--noheader", "--format=%D %T").splitlines()
        except AssertionError:
            return []

    def log(self) -> str:
        """Return the end of what slurmctld has written."""
        return (self.place / "slurmctld.log").read_text()[-3000:]

    def _write_files(self) -> None:
        for name in ("state", "bin"):
            (self.place / name).mkdir()
        ports: set[int] = set()
        while len(ports) <= _NODES:
            ports.add(free_port())
        first, *others = ports
        text = _CONFIG.format(
            host=socket.gethostname().split(".")[0],
            port=first,
            ports=f"[{','.join(map(str, others))}]",
            user=pwd.getpwuid(os.geteuid()).pw_name,
            place=self.place,
            proctrack=self._proctrack,
        )
        cgroups = f"CgroupPlugin=cgroup/v1\nCgroupMountpoint={_CGROUPS}\n"
        (self.place / "cgroup.conf").write_text(cgroups)
        (self.place / "slurm.conf").write_text(text)
        (self.place / "gres.conf").write_text("Name=gpu Type=k80 File=/dev/null\n")
        epilog = self.place / "epilog"
        epilog.write_text(_EPILOG.format(place=shlex.quote(str(self.place))))
        epilog.chmod(0o755)
        sbatch = shutil.which("sbatch")
        assert sbatch
        script = _CUT.format(sbatch=sbatch, place=shlex.quote(str(self.place)))
        (self.bin / "sbatch").write_text(script)
        (self.bin / "sbatch").chmod(0o755)

    def _run(self, program: str, *words: str, name: str = "") -> None:
        path = _program(program)
        assert path
        with (self.place / f"{name or program}.out").open("wb") as log:
            self._daemons[name or program] = subprocess.Popen(
                # They end with this process, however it ends.
                ["setpriv", "--pdeathsig=KILL", path, *words],
                env={**os.environ, **self.environment},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def _kill(self) -> None:
        """Kill the daemons, and what is left of jobs: slurmstepd has left them."""
        for daemon in self._daemons.values():
            daemon.kill()
            daemon.wait()
        kill_all_with(f"SLURM_CONF={self.place}/slurm.conf")
