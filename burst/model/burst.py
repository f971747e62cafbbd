# SPDX-License-Identifier: MIT
"""One burst: its lease, and what has happened to it."""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping
from typing import Literal, NewType

import msgspec

from burst.model.event import Event
from burst.model.jobid import JobId
from burst.model.shape import Shape

BurstId = NewType("BurstId", str)
"""`SLOT-HASH`, such as `burst-0-3fa9c1`: a DNS label, unique for a lead for ever."""
ISOLATED_STEM = "burst-iso"
"""What ids of isolated bursts begin with. No rank slot is called so."""


class State(enum.Enum):
    """Phases of potentially long duration. NEW is the first, INACTIVE the last."""

    NEW = "new"
    PROVISION = "provision"
    JOIN = "join"
    ONLINE = "online"
    DRAIN = "drain"
    REAP = "reap"
    INACTIVE = "inactive"


class Result(enum.Enum):
    """How a burst ended; set by what sent it to REAP."""

    COMPLETED = "completed"
    FAILED = "failed"
    CANCELED = "canceled"
    TIMEOUT = "timeout"
    RECLAIMED = "reclaimed"
    """The cloud took nodes back, as it may those of spot offers."""


PriceSource = Literal["offer", "site"]
"""Where a price came from: what the provider says, or `[prices]` of the settings."""
PRICE_SOURCES: Mapping[PriceSource, str] = {
    "offer": "as offered",
    "site": "by [prices]",
}
"""The same in words, to follow a price."""


class Isolated(msgspec.Struct, frozen=True, kw_only=True):
    """What a burst is for that does not join the lead."""

    kind: Literal["job", "command", "batch", "interactive", "service"]
    """What its own lead runs. job: a job of ours, in our stead. batch: a job for each
    line of a listing. interactive: nothing, until it is taken down. service: what its
    provider's settings name."""
    job: JobId | None = None
    """Held here for as long as the burst lives, as it runs there."""
    command: tuple[str, ...] = ()
    """Of kind command its words, of kind batch the lines of the listing."""
    duration: float = 0.0
    """How long it may run, in seconds; 0 for as long as the site lets it."""

    @property
    def ends(self) -> bool:
        """Whether it comes to an end by itself."""
        return self.kind in ("job", "command", "batch")


class Tag(msgspec.Struct, frozen=True):
    """For which jobs a burst is that was requested with a tag."""

    name: str
    userid: int
    """Who requested it. Jobs of others are not assigned to it, whatever their tag."""


class Lease(msgspec.Struct, frozen=True, kw_only=True):
    """What was decided when the burst was made.

    Only `hosts` and `ranks` ever change: they are those that it has now, as it grows
    and shrinks, a growth included from its beginning, a shrink from its end.
    `hosts[i]` has rank `ranks[i]`; both are of one rank slot, in the lead's order. One
    that is isolated has no slot and no ranks, and its hosts are those of an instance of
    their own.
    """

    id: BurstId
    provider: str
    offer: str
    slot: str
    hosts: tuple[str, ...]
    ranks: tuple[int, ...]
    shape: Shape
    """Of each node, as the lead's R declares it."""
    userids: tuple[int, ...] = ()
    """Users it was made for; counts against their limits. Empty: the instance owner
    requested it."""
    requester: int | None = None
    """The guest who requested it ahead of jobs, who is its only user: jobs of others
    do not run on it, and who may end it. None for all others."""
    banks: tuple[str, ...] = ()
    """Those that pay for the jobs it was made for; none where jobs have no bank."""
    queues: tuple[str, ...] = ()
    """Of these jobs; none of jobs of the queue without a name."""
    created: float = 0.0
    price: float = 0.0
    """Per node and hour, when it was made."""
    fee: float = 0.0
    """Per hour of the burst, however many nodes it has, when it was made."""
    priced_by: PriceSource = "offer"
    spot: bool = False
    """Whether the cloud may take its nodes back, as the offer said."""
    end: float = 0.0
    """From then on its provider may end it by itself, seconds since the epoch; 0 for
    never."""
    isolated: Isolated | None = None
    guests: bool | None = None
    """Whether jobs of guests can run on its nodes, as offer and lead said when it was
    made. None in records that are older, or were lost."""
    image: str = ""
    """Of its followers; empty for that of its provider's settings."""
    place: str = ""
    """Where its provider makes bursts: its type, and its cluster, namespace, project or
    the like. Empty in records that are older."""
    standing: str = ""
    """For which standing minimum of the settings it was made, in words; empty for
    none. It is kept while one needs it, and that pays for all but the work of jobs."""
    # By its name in the records of versions that knew tags of ensembles alone.
    tag: Tag | None = msgspec.field(default=None, name="member")
    """It is for jobs with this tag and no others, and is kept until whoever requested
    it takes it down. None for all others."""

    @property
    def key(self) -> str:
        """`provider/offer`, as people see it."""
        return f"{self.provider}/{self.offer}"

    @property
    def made_for_jobs(self) -> bool:
        """Whether it is for jobs that wait, without which it is not needed."""
        return bool(self.userids) and self.requester is None

    @property
    def isolated_job(self) -> JobId | None:
        """The job of this lead that an isolated burst runs; None if it runs none."""
        return self.isolated.job if self.isolated else None

    @property
    def nodes(self) -> int:
        """How many nodes it has."""
        return len(self.hosts)


class Resize(msgspec.Struct, frozen=True, kw_only=True):
    """A change of a burst's number of nodes that has not ended."""

    kind: Literal["grow", "shrink"]
    nodes: int
    """How many it will have."""
    before: int
    """How many it had; a growth is of those behind them."""
    since: float
    called: float | None = None
    """Since when its provider is called, as nothing runs on the nodes that leave; of a
    growth from its beginning."""
    requested: bool = False
    """Whether it is for no job that waits: it goes on though none needs it."""
    why: str = ""


class NodeTime(msgspec.Struct, frozen=True):
    """What a burst of several sizes was paid for, up to its last change of size."""

    at: float
    """When that was; seconds since the epoch."""
    node_seconds: float


class JobTimes(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What happened to one job of a burst, and when, in seconds since the epoch.

    None: it has not happened. Of several holds or releases the first counts.
    """

    submitted: float
    held: float | None = None
    released: float | None = None
    started: float | None = None
    finished: float | None = None
    result: str = ""
    """As Flux names it, `unknown` where it is not known; empty until it ended."""
    here: float | None = None
    """When it was expected to start on own nodes, by the forecast at the time at which
    it was assigned to the burst; None: that was not known, or never."""


class JobSums(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What all the jobs of a burst come to, those that are forgotten too.

    `finished` is when the last of them ended, the other times are of the first.
    """

    submitted: float | None = None
    held: float | None = None
    released: float | None = None
    started: float | None = None
    finished: float | None = None
    results: Mapping[str, int] = {}
    """How many jobs ended with each result."""
    recent: tuple[tuple[JobId, JobTimes], ...] = ()
    """The jobs that ended last, the latest at the end; at most KEPT_JOBS."""


KEPT_JOBS = 16
"""So many jobs that ended are still known one by one, for `burst explain`; and, of a
burst that is gone, so many that had not ended."""


class Burst(msgspec.Struct, frozen=True, kw_only=True):
    """A lease and its events, and what replaying the events says.

    Only burst.core.lifecycle makes new ones from old ones.
    """

    lease: Lease
    events: tuple[Event, ...] = ()
    """What happened to the burst, without what happened to its jobs. Their number is
    bounded, however long the burst lives: see lifecycle."""
    sums: JobSums = JobSums()
    times: Mapping[JobId, JobTimes] = {}
    """Of each of `jobs`."""
    state: State = State.NEW
    since: float = 0.0
    """When it entered the state."""
    result: Result | None = None
    jobs: frozenset[JobId] = frozenset()
    """Jobs that count on it and are not known to have ended."""
    started: frozenset[JobId] = frozenset()
    """Those of `jobs` that were seen running."""
    joined_ranks: frozenset[int] = frozenset()
    """Ranks that were seen online at least once."""
    expected: frozenset[int] = frozenset()
    """Ranks with which it went online; more may come, none may be lost."""
    drained: frozenset[int] = frozenset()
    """Ranks that we drained and did not undrain yet."""
    unused_since: float | None = None
    """Since when nothing has run on it, from a moment at which no job counted on it;
    None while something runs. Jobs that count on it and then do not come change
    nothing of it: else each of them would prolong what is paid for in vain."""
    keep_idle: float = math.inf
    """For how many seconds it is kept when idle, if `[deadlines] idle` is not less:
    past that it costs less to make it again."""
    lost_since: float | None = None
    """Since when at least one rank that was online is not; None while all are."""
    reclaimed: str = ""
    """What was reported when the cloud took nodes of it back; empty if it did not, or
    if all are online again."""
    exception: str = ""
    """Type of the exception that ended it; empty if none did."""
    exit_status: int | None = None
    """Of what ran in it, if it is isolated and that has ended."""
    quarantined: str = ""
    """Why nothing is done to it any more until a person decides; empty if not."""
    resize: Resize | None = None
    """How it grows or shrinks; None while it does neither."""
    growth_failed: bool = False
    """Whether its last growth failed: no job has it grow then, but for a request."""
    paid: NodeTime | None = None
    """None if it has had as many nodes ever since it was made."""
    out_of_reach: bool = False
    """Whether it is quarantined because its provider is set to another place; it is
    unquarantined as soon as the provider is set to the place of the burst again."""

    @property
    def id(self) -> BurstId:
        """The id of the lease."""
        return self.lease.id

    @property
    def live(self) -> bool:
        """Whether something of it may still exist: its rank slot is not free."""
        return self.state is not State.INACTIVE

    @property
    def idle_since(self) -> float | None:
        """Since when nothing has run on it, where no job counts on it now.

        A job whose epilog keeps nodes of it has started, and counts on it no more.
        """
        return None if self.jobs - self.started else self.unused_since

    @property
    def leaving(self) -> tuple[int, ...]:
        """The ranks by which it shrinks, on which no further job is to start."""
        if self.resize is None or self.resize.kind == "grow":
            return ()
        return self.lease.ranks[self.resize.nodes :]

    @property
    def coming(self) -> tuple[int, ...]:
        """The ranks by which it grows."""
        if self.resize is None or self.resize.kind == "shrink":
            return ()
        return self.lease.ranks[self.resize.before :]

    @property
    def served(self) -> bool:
        """Whether a job that counted on it was ever seen running."""
        return self.sums.started is not None

    @property
    def may_have_run(self) -> bool:
        """Whether its job has run in it, or may have: it must not run again.

        It is known not to have where its nodes never came, or where Flux can start it.
        """
        over = self.state in (State.REAP, State.INACTIVE) or bool(self.quarantined)
        if self.lease.isolated is None or not over or self.exception == NOT_HELD:
            return False
        came = any(event.name == "provision-finish" for event in self.events)
        return came or self.exception != CAPACITY


CAPACITY = "capacity"
"""Type of exception of a burst for which there were no nodes."""
RECLAIMED = "reclaimed"
"""Type of exception of a burst of which the cloud took nodes back."""
SPEC = "spec"
"""Type of exception of a burst that its provider refused, and of no other."""
WITH_LEAD = "with-lead"
"""Type of exception of a burst that was online, and ended as its lead did."""
LEAD_MOVED = "lead-moved"
"""Type of exception of a burst whose followers were given an address of the lead that
is none any more."""
NOT_HELD = "not-held"
"""Type of exception of an isolated burst whose job Flux can start."""
