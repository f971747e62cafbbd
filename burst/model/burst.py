# SPDX-License-Identifier: MIT
"""One burst: its lease, and what has happened to it."""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping, Set
from typing import Literal, NewType

import msgspec

from burst.model.event import Event
from burst.model.jobid import JobId
from burst.model.shape import Shape

BurstId = NewType("BurstId", str)
"""`SLOT-HASH`, such as `burst-0-3fa9c1`: a DNS label, unique for a lead for ever."""
ISOLATED_STEM = "burst-iso"
"""The beginning of ids of isolated bursts. No rank slot has this name."""


class State(enum.Enum):
    """The phases of a burst, each of potentially long duration.

    NEW is the first, INACTIVE the last.
    """

    NEW = "new"
    PROVISION = "provision"
    JOIN = "join"
    ONLINE = "online"
    DRAIN = "drain"
    REAP = "reap"
    INACTIVE = "inactive"


class Result(enum.Enum):
    """How a burst ended; set by the event that leads to state REAP."""

    COMPLETED = "completed"
    FAILED = "failed"
    CANCELED = "canceled"
    TIMEOUT = "timeout"
    RECLAIMED = "reclaimed"
    """Its nodes were taken back, by the cloud or by pods of a higher priority."""


PriceSource = Literal["offer", "site"]
"""Where a price comes from: the provider's offer, or `[prices]` of the settings."""
PRICE_SOURCES: Mapping[PriceSource, str] = {
    "offer": "as offered",
    "site": "by [prices]",
}
"""The source of a price in words, to follow the price."""


class Isolated(msgspec.Struct, frozen=True, kw_only=True):
    """What an isolated burst runs."""

    kind: Literal["job", "command", "batch", "interactive", "service"]
    """What its own lead runs. job: a job of this lead, in place of this lead. command:
    one command. batch: a job for each line of a listing. interactive: nothing, until it
    is taken down. service: what its provider's settings name."""
    job: JobId | None = None
    """The job of this lead that runs in the burst; it is held here while the burst
    lives. None for other kinds."""
    command: tuple[str, ...] = ()
    """For kind command its words, for kind batch the lines of the listing; else empty.
    """
    duration: float = 0.0
    """How long it may run, in seconds; 0 for as long as the site allows."""

    @property
    def ends(self) -> bool:
        """Whether the burst ends by itself."""
        return self.kind in ("job", "command", "batch")


class Tag(msgspec.Struct, frozen=True):
    """The tag with which a burst was requested: only jobs with it may use the burst."""

    name: str
    userid: int
    """The user who requested it. Jobs of other users are never assigned to it."""


class Lease(msgspec.Struct, frozen=True, kw_only=True):
    """What was decided when the burst was made.

    Only `hosts` and `ranks` ever change, as the burst grows and shrinks: they include
    the nodes of a growth from its beginning, and those of a shrink until its end.
    `hosts[i]` has rank `ranks[i]`; both are of one rank slot, in the lead's order. An
    isolated burst has no slot and no ranks, and its hosts form an instance of their
    own.
    """

    id: BurstId
    provider: str
    offer: str
    slot: str
    hosts: tuple[str, ...]
    ranks: tuple[int, ...]
    shape: Shape
    """The shape of each node, as the lead's R declares it."""
    userids: tuple[int, ...] = ()
    """The users it was made for; it counts towards their limits. Empty if the instance
    owner or a standing minimum requested it."""
    requester: int | None = None
    """The guest who requested it ahead of jobs: only this guest's jobs run on it, and
    the guest may end it. None for all other bursts."""
    banks: tuple[str, ...] = ()
    """The banks that pay for the jobs it was made for; empty if these have no bank."""
    queues: tuple[str, ...] = ()
    """The queues of these jobs; empty if the instance has no named queues."""
    created: float = 0.0
    price: float = 0.0
    """The price per node and hour at the time it was made."""
    fee: float = 0.0
    """The price per hour of the burst, whatever its number of nodes, at that time."""
    priced_by: PriceSource = "offer"
    spot: bool = False
    """Whether the cloud may take its nodes back, as the offer said."""
    end: float = 0.0
    """When the lease ends, in seconds since the epoch: from then on its provider may
    end the burst by itself. 0 for never."""
    isolated: Isolated | None = None
    guests: bool | None = None
    """Whether its nodes can run jobs of guests, according to offer and lead at the time
    it was made. None in older records, and if the record was lost."""
    image: str = ""
    """The container image of its followers; empty for that of the provider's settings.
    """
    place: str = ""
    """Where its provider makes bursts: its type, and its cluster, namespace, project or
    the like. Empty in older records."""
    standing: str = ""
    """The standing minimum of the settings it was made for, in words; empty for none.
    It is kept while a standing minimum needs it, which also pays for all of its time
    except the work of jobs."""
    # The name in records is that of versions that had tags only for ensembles.
    tag: Tag | None = msgspec.field(default=None, name="member")
    """The tag of the only jobs that may use it; such a burst is kept until whoever
    requested it takes it down. None for a burst without a tag."""

    @property
    def key(self) -> str:
        """`provider/offer`, as people see it."""
        return f"{self.provider}/{self.offer}"

    @property
    def made_for_jobs(self) -> bool:
        """Whether it was made for waiting jobs, and is not needed without them."""
        return bool(self.userids) and self.requester is None

    @property
    def isolated_job(self) -> JobId | None:
        """The job of this lead that an isolated burst runs; None if it runs none."""
        return self.isolated.job if self.isolated else None

    @property
    def nodes(self) -> int:
        """The number of its nodes."""
        return len(self.hosts)


class Resize(msgspec.Struct, frozen=True, kw_only=True):
    """A change of a burst's number of nodes that has not ended."""

    kind: Literal["grow", "shrink"]
    nodes: int
    """The number of nodes that it will have."""
    before: int
    """The number of nodes that it had; a growth adds nodes after these."""
    since: float
    called: float | None = None
    """When the calls of its provider began: for a growth at its beginning, for a shrink
    once nothing runs on the nodes that leave. None before."""
    requested: bool = False
    """Whether it was requested ahead of jobs: it continues though no job needs it."""
    why: str = ""


class JobTimes(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """When things happened to one job of a burst, in seconds since the epoch.

    None means that it has not happened. Of several holds or releases the first counts.
    """

    submitted: float
    held: float | None = None
    released: float | None = None
    started: float | None = None
    finished: float | None = None
    result: str = ""
    """The result as Flux names it, `unknown` if it is not known; empty until the
    end."""
    here: float | None = None
    """When it was expected to start on own nodes, by the forecast at the time it was
    assigned to the burst; None if there was no forecast, or it would never start."""


class JobSums(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Times and results of all jobs of a burst, including those that are forgotten.

    `finished` is when the last job ended; the other times are the earliest of any job.
    """

    submitted: float | None = None
    held: float | None = None
    released: float | None = None
    started: float | None = None
    finished: float | None = None
    results: Mapping[str, int] = {}
    """How many jobs ended with each result."""
    recent: tuple[tuple[JobId, JobTimes], ...] = ()
    """The last KEPT_JOBS jobs that ended, the latest at the end."""


KEPT_JOBS = 16
"""The number of ended jobs of a burst that are kept one by one, for `burst explain`;
also the number of jobs that a burst keeps which had not ended when it was gone."""


class Burst(msgspec.Struct, frozen=True, kw_only=True):
    """A lease and its events, and the state that replaying the events yields.

    Only burst.core.lifecycle makes a new Burst from an old one.
    """

    lease: Lease
    events: tuple[Event, ...] = ()
    """What happened to the burst, without what happened to its jobs. The number of
    events is bounded, however long the burst lives: see lifecycle."""
    sums: JobSums = JobSums()
    times: Mapping[JobId, JobTimes] = {}
    """The jobs that are assigned to it and are not known to have ended, and when things
    happened to each."""
    state: State = State.NEW
    since: float = 0.0
    """When it entered the state, in seconds since the epoch."""
    result: Result | None = None
    joined_ranks: frozenset[int] = frozenset()
    """Ranks that were seen online at least once."""
    expected: frozenset[int] = frozenset()
    """The ranks that must stay online: those with which it came online or has grown."""
    drained: frozenset[int] = frozenset()
    """Ranks that the daemon has drained for it and not undrained yet."""
    unused_since: float | None = None
    """Since when nothing has run on it, beginning at a moment when no job was assigned
    to it; None while something runs. Jobs that are assigned and then never start do not
    change it: otherwise each of them would prolong a time that costs money without
    use."""
    keep_idle: float = math.inf
    """For how many seconds it is kept when idle, if that is less than `[deadlines]
    idle`: after that it costs less to make it again."""
    lost_since: float | None = None
    """Since when at least one rank that must be online is not; None while all are."""
    reclaimed: str = ""
    """What was reported when nodes of it were taken back; empty if none were, or if all
    are online again."""
    exception: str = ""
    """The type of the exception that ended it; empty if none did."""
    exit_status: int | None = None
    """The exit status of an isolated burst's program; None if it has not ended."""
    quarantined: str = ""
    """Why nothing is done to it until a person decides; empty if not quarantined."""
    resize: Resize | None = None
    """How it grows or shrinks; None while it does neither."""
    growth_failed: bool = False
    """Whether its last growth failed: then it does not grow for jobs any more, only for
    a request."""
    out_of_reach: bool = False
    """Whether it is quarantined because its provider is set to another place; it is
    unquarantined as soon as the provider is set to the place of the burst again."""

    @property
    def id(self) -> BurstId:
        """The id of the lease."""
        return self.lease.id

    @property
    def shown_state(self) -> str:
        """The name of its state as people see it, `quarantined` for that."""
        return "quarantined" if self.quarantined else self.state.value

    @property
    def live(self) -> bool:
        """Whether something of it may still exist, so that its ranks are not free."""
        return self.state is not State.INACTIVE

    def first(self, event: str) -> float | None:
        """Return when the first event of that name happened; None if none is kept."""
        times = (each.timestamp for each in self.events if each.name == event)
        return next(times, None)

    @property
    def jobs(self) -> Set[JobId]:
        """The jobs that are assigned to it and are not known to have ended."""
        return self.times.keys()

    @property
    def started(self) -> frozenset[JobId]:
        """The jobs in `jobs` that were seen running."""
        times = self.times.items()
        return frozenset(job for job, of in times if of.started is not None)

    @property
    def unstarted(self) -> frozenset[JobId]:
        """The jobs in `jobs` that were not seen running."""
        return frozenset(job for job, of in self.times.items() if of.started is None)

    @property
    def idle_since(self) -> float | None:
        """Since when it is idle; None while a job runs on it or has yet to start on it.

        A job whose epilog keeps nodes of it has started, and no longer counts.
        """
        return None if self.unstarted else self.unused_since

    @property
    def leaving(self) -> tuple[int, ...]:
        """The ranks that leave it in a shrink, on which no further job may start."""
        if self.resize is None or self.resize.kind == "grow":
            return ()
        return self.lease.ranks[self.resize.nodes :]

    @property
    def coming(self) -> tuple[int, ...]:
        """The ranks that it gains in a growth."""
        if self.resize is None or self.resize.kind == "shrink":
            return ()
        return self.lease.ranks[self.resize.before :]

    @property
    def served(self) -> bool:
        """Whether a job that was assigned to it was ever seen running."""
        return self.sums.started is not None

    @property
    def may_have_run(self) -> bool:
        """Whether the job of an isolated burst has run or may have run in it.

        Such a job must not run again. It has not run if the nodes never came as the
        provider had none or did not work, or if Flux can start it here. Nor has one
        whose spec was refused; but its program may be the reason, so it ends.
        """
        over = self.state in (State.REAP, State.INACTIVE) or bool(self.quarantined)
        if self.lease.isolated is None or not over or self.exception == NOT_HELD:
            return False
        came = any(event.name == "provision-finish" for event in self.events)
        return came or self.exception not in (CAPACITY, REFUSED)


CAPACITY = "capacity"
"""Type of exception of a burst for which there were no nodes."""
RECLAIMED = "reclaimed"
"""Type of exception of a burst whose nodes were taken back."""
SPEC = "spec"
"""Type of exception of a burst whose spec its provider refused."""
REFUSED = "refused"
"""Type of exception of a burst whose provider refuses its credentials or settings, or
of an isolated one whose nodes a rule of the provider's place forbids."""
WITH_LEAD = "with-lead"
"""Type of exception of a burst that ended because its lead ended."""
LEAD_MOVED = "lead-moved"
"""Type of exception of a burst whose followers have an old address of the lead."""
NOT_HELD = "not-held"
"""Type of exception of an isolated burst whose job Flux can start."""
