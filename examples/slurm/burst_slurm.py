# SPDX-License-Identifier: MIT
"""A provider for a Slurm cluster: a burst is one job, a follower one task of it.

The daemon's host has `sbatch`, `squeue` and `scancel`, and shares the directory `dir`
with the nodes. What exists is asked of Slurm each time, by the comment of the job; so a
daemon that comes after this one needs nothing of this one's memory.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence
from pathlib import Path

import msgspec

from burst import provider
from burst.kits import followers, private_dir
from burst.kits.atomic_file import write_atomically
from burst.kits.join_errors import explain_log, main_lines
from burst.kits.program import ErrorPattern, run
from burst.provider import BurstId, BurstSpec, BurstStatus, FollowerStatus, Offer, Phase

_SCRIPT = """#!/bin/sh
exec srun --kill-on-bad-exit sh -c 'shift "$SLURM_PROCID"; exec sh "$0" "$1"' {words}
"""
# States of squeue(1). A job in any that is not here may have nodes, or get some.
_ENDED = {"COMPLETED", "CANCELLED", "FAILED", "TIMEOUT", "NODE_FAIL", "PREEMPTED"}
_ENDED |= {"BOOT_FAIL", "DEADLINE", "OUT_OF_MEMORY"}
_STUCK = {"LAUNCH_FAILED", "REVOKED", "SPECIAL_EXIT", "STOPPED"}  # to be canceled
_PHASES = dict.fromkeys(("PENDING", "CONFIGURING", "REQUEUED"), Phase.PENDING)
_PHASES |= {"COMPLETING": Phase.ENDING, **dict.fromkeys(_ENDED | _STUCK, Phase.FAILED)}
Job = tuple[str, str, str]  # its id, state and reason, as squeue tells
_FOR_GOOD = "invalid (account|partition)|limit is invalid|node configuration"
_PATTERNS = (
    ErrorPattern(_FOR_GOOD, provider.Refused, "set another one"),
    ErrorPattern("not available now|policy", provider.InsufficientCapacity),
)


class SlurmSettings(msgspec.Struct, frozen=True, kw_only=True):
    """`[providers.NAME]` with `type = "slurm"`."""

    dir: str
    """Shared with the nodes; only this user may write it."""
    cores: int
    max_nodes: int
    time: provider.Seconds
    """The time limit of the job, and so the lifetime of a burst."""
    partition: str = ""
    flux: str = "flux"
    """The program on the nodes, of the lead's version."""


class SlurmProvider:
    """Followers as tasks of Slurm jobs."""

    Settings = SlurmSettings

    def __init__(self, name: str, settings: SlurmSettings, owner: str) -> None:
        self._settings = settings
        self._tag = f"burst/{owner}/{name}/"
        self._home = private_dir.PrivateDirectory(Path(settings.dir), owner, name)

    def offers(self) -> Sequence[Offer]:
        """Return the one offer, `nodes`."""
        s, shape = self._settings, provider.Shape(self._settings.cores)
        most, life = s.max_nodes, s.time
        return [Offer(name="nodes", shape=shape, max_nodes=most, lifetime=life)]

    def provision(self, spec: BurstSpec) -> None:
        """Write the followers' files, and submit the job unless there is one."""
        [offer], count = self.offers(), len(spec.hosts)
        fits = count <= offer.max_nodes and offer.shape.holds(spec.shape)
        named = spec.offer == offer.name and private_dir.is_safe_name(spec.burst_id)
        if not (fits and named):
            raise provider.SpecRefused(f"no offer {spec.offer!r} of {count} such nodes")
        self._home.open()
        place = self._home.path / spec.burst_id
        start = followers.write(place, spec, flux=self._settings.flux)
        with private_dir.disk_errors(place, writing=True):
            content = msgspec.json.encode(spec)
            write_atomically(place / "spec.json", content, private=True)
        if spec.burst_id not in self._jobs():
            script = _SCRIPT.format(words=shlex.join([str(start), *spec.hosts]))
            run(self._sbatch(spec, place), given=script, patterns=_PATTERNS)

    def observe(self) -> Sequence[BurstStatus]:
        """Return what has files, or a job that may have nodes."""
        self._home.check()
        jobs = self._jobs()
        live = {name for name, job in jobs.items() if job[1] not in _ENDED}
        names = sorted({*self._home.names(), *live})
        return [self._status(name, jobs.get(name)) for name in names]

    def reap(self, burst_id: BurstId) -> None:
        """Cancel the job; once it has ended, remove the files."""
        job = self._jobs().get(burst_id)
        if job and job[1] not in _ENDED:
            run(["scancel", job[0]])
            return
        self._home.check()
        if private_dir.is_safe_name(burst_id):
            followers.remove(self._home.path / burst_id)
        self._home.close()
        raise provider.NotFound(f"no job and no file of {burst_id} is left")

    def _sbatch(self, spec: BurstSpec, place: Path) -> list[str]:
        s, nodes = self._settings, len(spec.hosts)
        partition = [f"--partition={s.partition}"] if s.partition else []
        return [
            *("sbatch", "--parsable", "--no-requeue", f"--job-name={spec.burst_id}"),
            *(f"--comment={self._tag}{spec.burst_id}", f"--output={place}/log"),
            *(f"--nodes={nodes}", f"--ntasks={nodes}", f"--cpus-per-task={s.cores}"),
            *("--exclusive", f"--time={math.ceil(s.time / 60)}", *partition),
            f"--export={','.join(followers.INHERITED)}",
        ]

    def _jobs(self) -> dict[str, Job]:
        """Return our jobs by burst id, those that ended a few minutes ago too."""
        ask = ["squeue", "--me", "--noheader", "--states=all", "--format=%i|%T|%k|%r"]
        found: dict[str, Job] = {}
        for line in run(ask).splitlines():
            # Comments of others may be of several lines.
            number, state, comment, reason = [*line.split("|", 3), *"   "][:4]
            name = comment.removeprefix(self._tag)
            if name != comment and (state not in _ENDED or name not in found):
                found[name] = (number, state, reason)
        return found

    def _status(self, name: str, job: Job | None) -> BurstStatus:
        place = self._home.path / name
        spec, log = private_dir.load_json(place / "spec.json", BurstSpec), place / "log"
        said = log.read_text(errors="replace")[-9999:] if log.exists() else ""
        # squeue forgets a job some minutes after its end; its log tells that it was.
        gone = ("", "FAILED" if said else "PENDING", "there is no such job")
        _, state, reason = job or gone
        phase = _PHASES.get(state, Phase.RUNNING)
        why = "" if state == "RUNNING" else f"{state}: {reason}"
        hosts = spec.hosts if spec else ()
        last = "\n".join(main_lines(said)[-20:]).strip()
        words = explain_log(said) or (last if phase is Phase.FAILED else "")
        return BurstStatus(
            burst_id=BurstId(name),
            phase=phase,
            followers=tuple(FollowerStatus(host, phase, why) for host in hosts),
            why=": ".join(text for text in (why, words) if text),
        )
