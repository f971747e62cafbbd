# SPDX-License-Identifier: MIT
"""The plug-in interface of algorithms, which decide about a member of an ensemble.

A member has nodes and jobs of its own. Every `checkSeconds` an algorithm looks at the
member and decides whether it grows, shrinks, gets more jobs, or is done.
Write a class with one method, name it under the entry point group `burst.algorithms`,
and run `burst_ensemble.testing.AlgorithmContract` on it:

    class Algorithm:
        Options = MyOptions              # a msgspec.Struct: the keys of `options`

        def __init__(self, options: MyOptions) -> None: ...

        def decide(
            self, view: MemberView, memory: Memory, now: float
        ) -> MemberDecision: ...

Rules for `decide`:

* It is **pure**: the same arguments give the same decision. It reads no clock, file or
  network, and keeps nothing in the object. For random numbers it calls `draw` with a
  seed.
* It **remembers** what it returns as `memory`: it gets this mapping at the next call,
  even after a restart of the daemon. The memory is kept as JSON: texts, numbers, lists,
  mappings with texts as keys, at most 8 KiB. Remember times ("since when"), not numbers
  of calls: how often it is called changes with the load and with restarts.
* It **may ask for anything**. The daemon keeps sizes between `least` and `most`, keeps
  the limits of the ensemble, shares nodes among members, and waits between changes.
* It **returns within 10 ms**. If it raises, or takes ten seconds, it is not called for
  a while, and its member stays as it is.

A member may have several algorithms, called in the order of the file. The first that
returns a size decides the size, the jobs of all are submitted, and each may end the
member.

The names in `__all__` stay the same from one release to the next, or CHANGELOG.md has
the change.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeVar, runtime_checkable

import msgspec

from burst.config import Seconds
from burst.errors import ConfigError

__all__ = [
    "MEMORY_MOST",
    "SUBMIT_MOST",
    "Algorithm",
    "Checked",
    "ConfigError",
    "JobGroup",
    "JobTally",
    "MemberDecision",
    "MemberReading",
    "MemberView",
    "Memory",
    "OptionProblem",
    "PeerView",
    "QueueCounts",
    "Seconds",
    "Spread",
    "draw",
    "shuffled",
]

Memory = Mapping[str, Any]
"""What an algorithm remembers of a member: JSON, empty at first."""

MEMORY_MOST = 8192
"""The maximum size of a memory as JSON, in bytes."""

SUBMIT_MOST = 200
"""The maximum number of jobs that a member gets at once."""

_T = TypeVar("_T")


class QueueCounts(msgspec.Struct, frozen=True, kw_only=True):
    """The member's jobs by Flux's state (RFC 21)."""

    new: int = 0
    depend: int = 0
    priority: int = 0
    sched: int = 0
    run: int = 0
    cleanup: int = 0
    inactive: int = 0

    @property
    def active(self) -> int:
        """Jobs in any state but inactive."""
        return self.pending + self.run + self.cleanup

    @property
    def pending(self) -> int:
        """Jobs that have not started, including those that wait for another job."""
        return self.new + self.depend + self.priority + self.sched


class Spread(msgspec.Struct, frozen=True, kw_only=True):
    """How long something took, over jobs, in seconds; all 0 where `count` is 0.

    `iqr` (the difference of the quartiles) and `mad` (the median distance from the
    median) cover the latest 32 jobs; the other values cover all jobs.
    """

    count: int = 0
    mean: float = 0.0
    variance: float = 0.0
    """The sample variance; 0 for less than two jobs."""
    min: float = 0.0
    max: float = 0.0
    iqr: float = 0.0
    mad: float = 0.0
    latest: tuple[float, ...] = ()
    """The values of the latest 32 jobs, the oldest first."""


class JobTally(msgspec.Struct, frozen=True, kw_only=True):
    """What has happened to jobs since the member was made."""

    finished: int = 0
    """`success` and `failed` together. Jobs canceled before they ran do not count."""
    success: int = 0
    failed: int = 0
    """Jobs that ended with an exit status other than 0, or by an exception, even before
    they ran, and jobs that the lead will never accept."""
    duration: Spread = Spread()
    """From start to finish, for jobs that have started."""
    pending: Spread = Spread()
    """From submit to start, for jobs that have started."""
    events: Mapping[str, int] = {}
    """How many jobs had each of these events: submit, start, finish, exception. A job
    has an exception if it ended without being completed, whether it ran or not."""


class JobGroup(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of `jobs` in the file: jobs that are alike."""

    name: str
    nodes: int = 1
    """Nodes of each job."""
    duration: float = 0.0
    """Time limit of each job in seconds, 0 for none."""
    count: int = 0
    """How many jobs the file asks for; 0: as many as the algorithm submits."""
    left: int | None = None
    """How many jobs are not submitted yet; None if the group has no end."""
    submitted: int = 0
    """How many jobs this member has submitted; of a shared group, all members."""
    shared: bool = False
    """Whether each job is for whichever member submits it first."""
    tally: JobTally = JobTally()
    """What has happened to this group's jobs in this member."""


class PeerView(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of another member that has not ended."""

    name: str
    price: float
    """The price of one node for an hour."""
    room: int
    """Nodes that it could still give to jobs: free ones, and those that it gets by
    growing to its `max`."""
    most: int
    """`max` of the file."""
    durations: Mapping[str, float] = {}
    """Mean run time in seconds, by group. A group without a job that succeeded there is
    left out."""


class MemberReading(msgspec.Struct, frozen=True, kw_only=True):
    """A member as it is now. The defaults are a member without nodes, jobs and cost."""

    nodes_paid: int = 0
    """Nodes that cost money now: made or asked for, and not confirmed as gone."""
    nodes_up: int = 0
    """Nodes whose broker is online and that are not drained."""
    nodes_free: int = 0
    """Nodes that are up and on which no job runs."""
    cores_up: int = 0
    cores_free: int = 0
    queue: QueueCounts = QueueCounts()
    waiting: Mapping[int, int] = {}
    """How many jobs wait for nodes, by the number of nodes. Only jobs in the states
    priority and sched count: those that wait for another job need no nodes yet."""
    next_jobs: tuple[int, ...] = ()
    """Nodes of the first jobs that wait for nodes, in the queue's order; 11 at most."""
    spent: float = 0.0
    """Its cost so far, of bursts that are gone and of those that are live."""
    price: float = 0.0
    """The price of one of its nodes for an hour; 0 if they cost nothing."""


class MemberView(MemberReading, frozen=True, kw_only=True):
    """A member as it was read. Times are seconds since the epoch, amounts money."""

    name: str
    nodes: int = 0
    """The size that was decided last. Some of these nodes may still boot, and further
    nodes may cost money while they are drained."""
    least: int = 0
    """`min` of the file."""
    most: int = 1
    """`max` of the file."""
    jobs: tuple[JobGroup, ...] = ()
    """The entries of `jobs` of the member, then those that all members share."""
    unconfirmed: int = 0
    """Jobs that were given to it and may not be in its queue yet."""
    waits_with_jobs: str = ""
    """Why it gets no jobs now, so that those of a decision are dropped: `unconfirmed`,
    or 5,000 of its jobs are active or ended in the last five minutes. Empty if it does.
    """
    tally: JobTally = JobTally()
    """What has happened to all its jobs; for a member with an agent, to those that the
    agent submitted."""
    started: float = 0.0
    """When it was made."""
    grown: float | None = None
    """When it last grew; None if it never did."""
    shrunk: float | None = None
    """When it last shrank; None if it never did."""
    limited: str = ""
    """Which limit left it fewer nodes than was decided last; empty if none did."""
    check: float = 10.0
    """Seconds from one decision to the next, as the file says (`checkSeconds`)."""
    commands: tuple[str, ...] = ()
    """The names of the commands in `[custom]` of the file."""
    peers: tuple[PeerView, ...] = ()
    """The other members, by name."""

    @property
    def nodes_busy(self) -> int:
        """Nodes that run jobs."""
        return self.nodes_up - self.nodes_free

    @property
    def room(self) -> int:
        """Nodes that are free, or that still boot."""
        return max(0, self.nodes - self.nodes_busy)

    @property
    def nodes_waited_for(self) -> int:
        """Nodes that the waiting jobs need to run all at once."""
        return sum(size * count for size, count in self.waiting.items())


class MemberDecision(msgspec.Struct, frozen=True, kw_only=True):
    """What an algorithm wants. The default leaves the member as it is."""

    nodes: int | None = None
    """The new size of the member in nodes; None for no change."""
    submit: tuple[str, ...] = ()
    """Names of groups of `MemberView.jobs`, one for each job, in the order in which
    they are submitted. Jobs beyond what is left of a group and beyond SUBMIT_MOST are
    dropped, and all jobs while `MemberView.waits_with_jobs` has a reason: count with
    `JobGroup.submitted` and `left`, not with what was asked for."""
    again: tuple[str, ...] = ()
    """Like `submit`, but regardless of how many are left: `count` of the file is then
    the number of jobs of one submission."""
    end: bool = False
    """Whether the member is done: it is drained and taken down, for good."""
    custom: tuple[str, ...] = ()
    """Names of commands in `[custom]` of the file that the daemon runs now. While 20
    commands of a member wait to be run, further ones are dropped."""
    memory: Memory = {}
    """What the algorithm gets as `memory` at the next call."""
    why: str = ""
    """One sentence for people; it is recorded with the change."""


class OptionProblem(msgspec.Struct, frozen=True):
    """A reason why options cannot be used for a member."""

    key: str
    """Dotted path in `options`; list entries count from 0, such as `rules.0.name`."""
    what: str
    advice: str = ""


class Algorithm(Protocol):
    """See the module's docstring. It also has `Options`, a msgspec.Struct."""

    def decide(self, view: MemberView, memory: Memory, now: float) -> MemberDecision:
        """Return the decision for a member. `now`: seconds since the epoch."""
        ...


@runtime_checkable
class Checked(Protocol):
    """An algorithm whose options depend on the member, such as on its jobs."""

    def problems(self, view: MemberView) -> Sequence[OptionProblem]:
        """Return what is wrong with the options for a member that is not made yet."""
        ...


def draw(below: int, *seed: str | float) -> int:
    """Return a number from 0 to below `below`, always the same for the same seed.

    The seed must differ from that of all other draws, such as an option `seed`, the
    member's name and how many jobs were submitted before.
    """
    text = "\0".join(map(str, seed)).encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest()) % below


def shuffled(
    values: Sequence[_T], *seed: str | float, most: int | None = None
) -> list[_T]:
    """Return the values in an order drawn with `draw`; only the first `most` of them if
    it is set.
    """
    left = list(values)
    count = len(left) if most is None else min(most, len(left))
    for place in range(count):
        other = place + draw(len(left) - place, *seed, place)
        left[place], left[other] = left[other], left[place]
    return left[:count]
