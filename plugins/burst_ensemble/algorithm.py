# SPDX-License-Identifier: MIT
"""The plug-in interface of algorithms, which decide about a member of an ensemble.

A member has nodes and jobs of its own. An algorithm looks at it every `checkSeconds`
and says whether it is to grow or shrink, gets more jobs, or is done.
Write a class with one method, name it under the entry point group `burst.algorithms`,
and run `burst_ensemble.testing.AlgorithmContract` on it:

    class Algorithm:
        Options = MyOptions              # a msgspec.Struct: the keys of `options`

        def __init__(self, options: MyOptions) -> None: ...

        def decide(
            self, view: MemberView, memory: Memory, now: float
        ) -> MemberDecision: ...

What holds of `decide`:

* It is **pure**: the same arguments give the same decision. It reads no clock, file or
  network, and keeps nothing in the object; it draws by `draw`, whose seed it is given.
* It **remembers** by what it returns as `memory`, which it is given the next time, over
  a restart of the daemon, too. It is kept as JSON: texts, numbers, lists, mappings with
  texts as keys, at most 8 KiB. Remember times ("since when"), not numbers of calls: how
  often it is called changes with the load and with restarts.
* It **may ask for anything**. The daemon keeps sizes between `least` and `most`, keeps
  the limits of the ensemble, shares nodes among members, and waits between changes.
* It **returns within 10 ms**. One that raises, or takes ten seconds, is not asked for a
  while, and its member stays as it is.

A member may have several algorithms. They are asked in the order of the file: the first
that says a size decides on it, jobs of all are submitted, any may end the member.

What `__all__` lists is kept from one release to the next, or its change is in
CHANGELOG.md.
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
"""Bytes of a memory as JSON, at most."""

SUBMIT_MOST = 200
"""Jobs that a member gets at once, at most."""

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
        return (
            self.new + self.depend + self.priority + self.sched + self.run
        ) + self.cleanup

    @property
    def pending(self) -> int:
        """Jobs that have not started, those that wait for another job, too."""
        return self.new + self.depend + self.priority + self.sched


class Spread(msgspec.Struct, frozen=True, kw_only=True):
    """How long something took, over jobs, in seconds; all 0 where `count` is 0.

    `iqr` (the difference of the quartiles) and `mad` (the median distance from the
    median) are those of the latest 32 jobs, the others those of all.
    """

    count: int = 0
    mean: float = 0.0
    variance: float = 0.0
    """Of the sample; 0 for less than two jobs."""
    min: float = 0.0
    max: float = 0.0
    iqr: float = 0.0
    mad: float = 0.0
    latest: tuple[float, ...] = ()
    """Of the latest 32 jobs, the oldest first."""


class JobTally(msgspec.Struct, frozen=True, kw_only=True):
    """What has happened to jobs, since the member was made."""

    finished: int = 0
    """`success` and `failed` together. Jobs canceled before they ran are in neither."""
    success: int = 0
    failed: int = 0
    """Ended by an exit status that is not 0, or by an exception, also before it ran."""
    duration: Spread = Spread()
    """From start to finish, of jobs that have started."""
    pending: Spread = Spread()
    """From submit to start, of jobs that have started."""
    events: Mapping[str, int] = {}
    """How many jobs had each of these: submit, start, finish, and exception, which is
    of jobs that have ended and not completed, whether they ran or not."""


class JobGroup(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of `jobs` in the file: jobs that are alike."""

    name: str
    nodes: int = 1
    """Nodes of each job."""
    duration: float = 0.0
    """Time limit of each in seconds, 0 for none."""
    count: int = 0
    """How many jobs the file asks for; 0: as many as the algorithm submits."""
    left: int | None = None
    """How many are not submitted yet; None: no end."""
    submitted: int = 0
    """By this member; of a shared group by all members."""
    shared: bool = False
    """Whether it is for whichever member submits a job first."""
    tally: JobTally = JobTally()
    """Of this group's jobs in this member."""


class PeerView(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of another member that has not ended."""

    name: str
    price: float
    """Of one node and hour."""
    room: int
    """Nodes that it could still give to jobs: free, or by growing to its most."""
    most: int
    durations: Mapping[str, float] = {}
    """Mean seconds of jobs that succeeded there, by group; none without any."""


class MemberReading(msgspec.Struct, frozen=True, kw_only=True):
    """A member as it is now; of one of which nothing is made or left all is 0."""

    nodes_paid: int = 0
    """Nodes that are paid now: made or asked for, and not confirmed as gone."""
    nodes_up: int = 0
    """Nodes whose broker is online and that are not drained."""
    nodes_free: int = 0
    """Nodes that are up and on which no job runs."""
    cores_up: int = 0
    cores_free: int = 0
    queue: QueueCounts = QueueCounts()
    waiting: Mapping[int, int] = {}
    """How many jobs wait for nodes, by the number of nodes. Only jobs in the states
    priority and sched: those that wait for another job need no nodes yet."""
    next_jobs: tuple[int, ...] = ()
    """Nodes of the first jobs that wait for nodes, in the queue's order; 11 at most."""
    spent: float = 0.0
    """What it has cost so far, settled and running."""
    price: float = 0.0
    """Of one of its nodes for an hour; 0 for free."""


class MemberView(MemberReading, frozen=True, kw_only=True):
    """A member as it was read. Times are seconds since the epoch, amounts money."""

    name: str
    nodes: int = 0
    """Nodes it is to have, as was decided last: some may yet boot, or others be paid
    while they are drained."""
    least: int = 0
    """`min` of the file."""
    most: int = 1
    """`max` of the file."""
    jobs: tuple[JobGroup, ...] = ()
    """The entries of `jobs` of the member, then those that all members share."""
    unconfirmed: int = 0
    """Jobs that it was given and that may not be in its queue yet."""
    tally: JobTally = JobTally()
    """Of all its jobs; of a member with an agent, of those that the agent submitted."""
    started: float = 0.0
    """When it was made."""
    grown: float | None = None
    """When it last grew."""
    shrunk: float | None = None
    """When it last shrank."""
    check: float = 10.0
    """Seconds from one decision to the next, as the file says (`checkSeconds`)."""
    commands: tuple[str, ...] = ()
    """Names of `[custom]` of the file."""
    peers: tuple[PeerView, ...] = ()
    """The other members, by name."""

    @property
    def nodes_busy(self) -> int:
        """Nodes that run jobs."""
        return self.nodes_up - self.nodes_free

    @property
    def room(self) -> int:
        """Nodes that are free, or that boot."""
        return max(0, self.nodes - self.nodes_busy)

    @property
    def nodes_waited_for(self) -> int:
        """Nodes that waiting jobs need, all at once."""
        return sum(size * count for size, count in self.waiting.items())


class MemberDecision(msgspec.Struct, frozen=True, kw_only=True):
    """What an algorithm wants; without anything: leave the member as it is."""

    nodes: int | None = None
    """How many nodes the member is to have; None: no change."""
    submit: tuple[str, ...] = ()
    """Names of groups of `MemberView.jobs`, one for each job, in the order in which
    they are to be submitted. More than are left of a group are left out, and so are
    more than SUBMIT_MOST, and all while earlier ones are still being submitted: count
    by `JobGroup.submitted` and `left`, not by what was asked for."""
    again: tuple[str, ...] = ()
    """As `submit`, and without regard to how many are left: `count` of the file is then
    that of one submission."""
    end: bool = False
    """Whether the member is done: it is drained and taken down, for good."""
    custom: tuple[str, ...] = ()
    """Names of commands of the file (`[custom]`) that are to be run."""
    memory: Memory = {}
    """What it is given the next time."""
    why: str = ""
    """One sentence for people; it is on record with what was done."""


class OptionProblem(msgspec.Struct, frozen=True):
    """Why options cannot be used for a member."""

    key: str
    """Dotted path in `options`, numbers of lists from 0, such as `rules.0.name`."""
    what: str
    advice: str = ""


class Algorithm(Protocol):
    """See the module's docstring. It also has `Options`, a msgspec.Struct."""

    def decide(self, view: MemberView, memory: Memory, now: float) -> MemberDecision:
        """Return what is to be done. `now`: seconds since the epoch."""
        ...


@runtime_checkable
class Checked(Protocol):
    """Of an algorithm whose options depend on the member, such as on its jobs."""

    def problems(self, view: MemberView) -> Sequence[OptionProblem]:
        """Return what is wrong, for a member that is not made yet."""
        ...


def draw(below: int, *seed: str | float) -> int:
    """Return a number from 0 to below `below`, always the same for the same seed.

    Seed it with what tells this draw from all others, such as an option `seed`, the
    member's name and how many jobs were submitted before.
    """
    text = "\0".join(map(str, seed)).encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest()) % below


def shuffled(
    values: Sequence[_T], *seed: str | float, most: int | None = None
) -> list[_T]:
    """Return the values in an order that is drawn as by `draw`; only the first `most`
    of it, if that is given.
    """
    left = list(values)
    count = len(left) if most is None else min(most, len(left))
    for place in range(count):
        other = place + draw(len(left) - place, *seed, place)
        left[place], left[other] = left[other], left[place]
    return left[:count]
