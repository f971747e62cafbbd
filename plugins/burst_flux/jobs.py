# SPDX-License-Identifier: MIT
"""Jobs of the other instance, by calls of the `flux` program, and its errors.

Flux's Python bindings are not used: those of the daemon are the lead's, the other
instance may be reached by ssh, and a call of a program that hangs ends with its
process. A job is found by its name, `burst.OWNER.PROVIDER.BURST`, among those of this
user; that in which the lead itself runs, if there is one, by its memo `uri`
(flux-uri(1)), which `burst lead batch` sets: a broker with `[bootstrap]` in its
configuration has no attributes `jobid` and `parent-uri`.
"""

from __future__ import annotations

import contextlib
import math
import os
import socket
from collections.abc import Iterable, Sequence, Set
from urllib.parse import urlsplit

import msgspec

from burst.decode import from_json
from burst.errors import (
    InsufficientCapacity,
    NotFound,
    Refused,
    SpecRefused,
    Transient,
)
from burst.kits.program import ErrorPattern, run
from burst.model.ranks import parse_hostlist
from burst.model.resource_set import decode_resource_set, shape_of
from burst.model.shape import Shape
from burst_flux.settings import FluxSettings

# How ssh is called applies to any connection. All other variables belong to the
# instance or the job in which this process runs.
_KEPT = ("FLUX_SSH", "FLUX_SSH_RCMD")
_FOREIGN = ("FLUX_", "PMI_")
# The message contains all that ssh wrote, such as a site's notice about what is not
# permitted.
_UNREACHED = ErrorPattern("unable to connect to flux", Transient)
# Messages of flux-core and flux-accounting. Any other error is Transient.
_SUBMIT = (
    _UNREACHED,
    ErrorPattern(
        r"(submission.* is|is currently) disabled|max active jobs|at max-",
        InsufficientCapacity,
    ),
    ErrorPattern("unsatisfiable|infeasible|exceeds|feasib", SpecRefused),
    ErrorPattern(
        "not a valid queue|queue not valid|no such queue|cannot find user|invalid"
        "|unrecognized arg|not supported|not permitted|requires owner"
        "|expected one argument",
        Refused,
        "change that in the provider's table",
    ),
)
_SIGNALED_S = 30.0
# A broker whose job is canceled this much before that signal has left by then.
_MARGIN_S = 5.0
_JOB = (
    # A second job of this name, as after a submission whose answer was lost, waits
    # until the first has ended.
    *("--dependency=singleton", "--cwd=/", "--env=-*", "--rlimit=-*", "--label-io"),
    # Followers use their whole nodes. The end of one task must not end the others,
    # because jobs run there.
    *("--setopt=cpu-affinity=off", "--setopt=gpu-affinity=off", "--setopt=pmi=off"),
    "--setopt=exit-timeout=none",
    # At the limit itself Flux also sends SIGALRM, which would end the scripts.
    f"--signal=SIGTERM@{_SIGNALED_S:.0f}s",
)
_CANCEL = (_UNREACHED, ErrorPattern("is inactive|unknown job", NotFound))


class JobException(msgspec.Struct, frozen=True):
    """The exception of a job, as flux-jobs(1) prints it; no exception: empty `type`."""

    type: str = ""
    severity: int = 0
    note: str = ""


class FluxJob(msgspec.Struct, frozen=True):
    """One job, as flux-jobs(1) prints it in JSON."""

    jobid: str
    """The job's id in f58."""
    state: str
    """DEPEND, PRIORITY, SCHED, RUN, CLEANUP or INACTIVE (RFC 21)."""
    t_submit: float
    name: str = ""
    """Empty for a job without a name, which flux-jobs(1) leaves out."""
    t_run: float = 0.0
    expiration: float = 0.0
    """When its time limit ends, seconds since the epoch; 0 if not known, or never."""
    urgency: int = 16
    queue: str = ""
    dependencies: tuple[str, ...] = ()
    uri: str = ""
    """URI of the instance that the job is, by its memo; empty without such a memo."""
    ranks: str = ""
    """An idset; empty before it runs."""
    nodelist: str = ""
    exception: JobException = JobException()

    @property
    def over(self) -> bool:
        """Whether it has ended, so that nothing of it runs or will run."""
        return self.state == "INACTIVE"

    def is_leaving(self, now: float) -> bool:
        """Return whether its followers were told to leave, or will be at once.

        If such a job is canceled, Flux sends SIGTERM to its followers again, and a
        broker that gets it while it leaves does not end.
        """
        ends = self.expiration or math.inf
        return self.state == "CLEANUP" or now > ends - _SIGNALED_S - _MARGIN_S


class _Listed(msgspec.Struct, frozen=True):
    jobs: tuple[FluxJob, ...]


class OtherFlux:
    """A Flux instance other than the lead's."""

    def __init__(self, flux: str, uri: str, limit: float) -> None:
        self._limit = limit
        self._flux = flux
        self._uri = uri
        self._resolved = ""

    def active(self) -> Sequence[FluxJob]:
        """Return this user's jobs that are not over, the oldest first.

        Raises Transient or Refused, as all methods do.
        """
        return self._jobs()

    def named(self, name: str) -> Sequence[FluxJob]:
        """Return the jobs of that name: those that live, then those that are over."""
        return sorted(self._jobs("-a", f"--name={name}"), key=lambda job: job.over)

    def submit(self, *words: str) -> None:
        """Submit a job with options of flux-submit(1).

        Also raises InsufficientCapacity and SpecRefused. If it raises, the job may
        exist all the same.
        """
        self.ask("submit", "--quiet", *words, patterns=_SUBMIT)

    def cancel(self, jobs: Sequence[FluxJob], now: float) -> None:
        """Cancel these jobs unless they are leaving; some or all may be gone."""
        numbers = [job.jobid for job in jobs if not job.is_leaving(now)]
        with contextlib.suppress(NotFound):
            if numbers:
                self.ask("cancel", *numbers, patterns=_CANCEL)

    def closed(self, queue: str) -> str:
        """Return why no job starts in a queue, such as `stopped`; empty if jobs start.

        `queue` is empty if the instance has only one queue, without a name.
        """
        chosen = [f"--queue={queue}"] if queue else []
        words = ("--no-header", "--format={submission}|{scheduling}")
        told = self.ask("queue", "list", *chosen, *words, patterns=_SUBMIT)
        states = {word for line in told.splitlines() for word in line.split("|")}
        return " and ".join(sorted(states & {"disabled", "stopped"}))

    def nodes_that_hold(
        self, shape: Shape, queue: str, but: Set[int] = frozenset()
    ) -> int:
        """Return how many nodes, up or down, have at least this shape.

        It counts the nodes of a queue, or of all queues if empty, without the ranks
        `but`. Flux's schedulers compare the cores of a job with `--exclusive` with
        those of a node only while no node is free.
        """
        chosen = [f"--queue={queue}"] if queue else []
        said = self.ask("resource", "R", "--states=all", *chosen, patterns=_SUBMIT)
        return count_nodes(said, shape, but)

    def ask(self, *words: str, patterns: Sequence[ErrorPattern] = ()) -> str:
        """Return what a flux command prints that runs on this instance."""
        environment = {
            **{name: v for name, v in os.environ.items() if _is_kept(name)},
            "FLUX_URI": self._find(),
            "SHELL": "/bin/sh",
        }
        try:
            return run(
                [self._flux, *words],
                limit=self._limit,
                environment=environment,
                patterns=patterns,
            )
        except Transient:
            # The instance may have another address at the next call.
            self._resolved = ""
            raise

    def _find(self) -> str:
        if self._uri.startswith(("local://", "ssh://")):
            return self._uri
        if not self._resolved:
            said = run([self._flux, "uri", self._uri], limit=self._limit)
            self._resolved = said.strip()
        return self._resolved

    def _jobs(self, *words: str) -> Sequence[FluxJob]:
        said = self.ask("jobs", "--json", "--count=0", *words)
        try:
            found = from_json(said, _Listed).jobs
        except msgspec.MsgspecError as error:
            raise Transient(f"`flux jobs` did not print a list: {error}") from error
        return sorted(found, key=lambda job: job.t_submit)


def count_nodes(resources: str, shape: Shape, but: Set[int] = frozenset()) -> int:
    """Return how many nodes of an R (RFC 20) hold that shape, without the ranks `but`.

    Raises Transient if `resources` is not an R.
    """
    try:
        groups = decode_resource_set(resources).groups
        holding = [g.ranks for g in groups if shape_of(g.children).holds(shape)]
    except ValueError as error:
        raise Transient(f"`flux resource R` did not print R: {error}") from error
    return sum(len(ranks - but) for ranks in holding)


def job_options(
    settings: FluxSettings, name: str, nodes: int, seconds: int
) -> Sequence[str]:
    """Return the options of flux-submit(1) for a job of this name, nodes and time.

    The job has one task on each node.
    """
    return [
        *(f"--job-name={name}", f"--time-limit={seconds}s", *_JOB),
        *(f"--nodes={nodes}", f"--ntasks={nodes}", f"--env=PATH={os.environ['PATH']}"),
        f"--cores-per-task={settings.cores}",
        *([f"--gpus-per-task={settings.gpus}"] if settings.gpus else []),
        *(["--exclusive"] if settings.exclusive else []),
        *([f"--queue={settings.queue}"] if settings.queue else []),
        *settings.options,
    ]


def _is_kept(name: str) -> bool:
    return name in _KEPT or not name.startswith(_FOREIGN)


def find_own_job(jobs: Iterable[FluxJob], lead: str) -> FluxJob | None:
    """Return the job whose memo is the URI of the lead, which runs on this host.

    Its nodes are the lead's for as long as the lead runs, so no burst gets them.
    """
    own = urlsplit(lead)
    host = _short(own.hostname or socket.gethostname())
    for job in jobs:
        told = urlsplit(job.uri)
        if own.path and (_short(told.hostname or ""), told.path) == (host, own.path):
            return job
    return None


def job_on_this_host(jobs: Iterable[FluxJob]) -> FluxJob | None:
    """Return one of these jobs that has nodes on this host."""
    host = _short(socket.gethostname())
    for job in jobs:
        if host in map(_short, parse_hostlist(job.nodelist)):
            return job
    return None


def _short(host: str) -> str:
    return host.lower().partition(".")[0]
