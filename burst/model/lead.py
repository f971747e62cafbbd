# SPDX-License-Identifier: MIT
"""What is known of a lead: what never changes while it runs, and how it is now."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Any

import msgspec

from burst.model.burst import Tag
from burst.model.job_limits import JobLimits
from burst.model.jobid import JobId
from burst.model.request import BurstPreferences, ResourceRequest
from burst.model.scheduler import Scheduler
from burst.model.shape import Shape


class HostEntry(msgspec.Struct, frozen=True, omit_defaults=True):
    """An entry of `[bootstrap] hosts`, flux-config-bootstrap(5); host is a hostlist."""

    host: str
    bind: str = ""
    connect: str = ""
    parent: str = ""


class Bootstrap(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The lead's own `[bootstrap]` table. Its order of hosts is the order of ranks."""

    hosts: tuple[HostEntry, ...]
    default_port: int = 0
    default_bind: str = ""
    default_connect: str = ""
    enable_ipv6: bool = False


class GuestAccess(msgspec.Struct, frozen=True, kw_only=True):
    """Who else than its owner may use the instance.

    flux-config-access(5), flux-config-exec(5). A follower that lacks what the lead has
    of this refuses the jobs of other users.
    """

    allow_guest_user: bool = False
    """Whether all users may submit jobs: the instance is a system instance."""
    allow_root_owner: bool = False
    """Whether root has the rights of the owner."""
    imp: str = ""
    """Path of flux-imp, which starts the jobs of other users; empty if there is none.
    The lead names it to followers, so each has it at the same path."""
    ingest: Mapping[str, Any] = {}
    """The table `[ingest]`, by which the lead changes or refuses what users submit.
    flux-config-ingest(5)."""


class LeadIdentity(msgspec.Struct, frozen=True, kw_only=True):
    """What is fixed for as long as the lead runs, but for what a reload changes.

    Ranks are indices of `hosts`.
    """

    kind: str
    """`flux`, or what the package that has this lead calls it; for messages alone."""
    version: str
    """Of the broker, such as `0.88.0`; a follower must match MAJOR.MINOR."""
    uri: str
    """Where clients on this host connect, such as `local://…`."""
    owner: str
    """The instance id: the tag on all that we make for this lead. Letters, digits, -"""
    hosts: tuple[str, ...]
    shapes: tuple[Shape, ...]
    """By rank, from R."""
    properties: Mapping[str, frozenset[int]] = {}
    """R's properties: name to ranks."""
    excluded: frozenset[int] = frozenset()
    """Ranks that get no job by `[resource] exclude`, as this was read."""
    queues: Mapping[str, tuple[str, ...]] = {}
    """Named queues, and the properties that each requires. As of the lead's start or
    its last reload, as `limits`."""
    limits: Mapping[str, JobLimits] = {}
    """What a job may ask for in each queue; by the empty name where there are none."""
    bootstrap: Bootstrap
    endpoint: str
    """What followers connect to: `tcp://ADDRESS:PORT`, empty if it cannot be known."""
    certificate: str
    """Path of the CURVE certificate. Never its content.

    In a `BurstSpec` the one that the running lead has; else that of its configuration,
    which may have been replaced since the lead's start.
    """
    owner_userid: int | None = None
    """Who owns the instance, and runs its brokers and the daemon; None if not known."""
    access: GuestAccess = GuestAccess()
    """Of the lead's configuration at its start or its last reload."""
    started: float = 0.0
    """When the lead was started, in seconds since the epoch; 0 if not known."""
    moved: float = 0.0
    """When the daemon noticed that followers reach the lead at another endpoint than
    before, in seconds since the epoch; 0 if that has not changed since it began."""
    statedir: str = ""
    """Where the lead keeps what must outlive it; empty if nowhere."""
    systemd: bool = False
    """Whether the lead has `[systemd] enable`: then a follower is online and runs jobs
    only by the systemd of the owner on its host (burst.kits.systemd_user)."""
    follower_module: str = ""
    """The Python module that its followers run (`burst.kits.broker.follower_argv`);
    empty where they are Flux's own brokers."""

    def is_guest(self, userid: int | None) -> bool:
        """Tell whether a user is one whom the instance serves beside its owner.

        None is no user: what is requested without a job.
        """
        others = userid not in (None, self.owner_userid)
        return self.access.allow_guest_user and others

    def may_be_guest(self, userid: int | None) -> bool:
        """Tell whether a user is a guest, or may be one by now.

        The lead may have let users in since its `access` was read.
        """
        owner = self.owner_userid
        is_other = owner is not None and userid not in (None, owner)
        return is_other or self.is_guest(userid)


class JobState(enum.Enum):
    """Flux's job states (RFC 21) as far as a burst cares."""

    DEPEND = "depend"
    PRIORITY = "priority"
    SCHED = "sched"
    RUN = "run"
    CLEANUP = "cleanup"
    INACTIVE = "inactive"


PENDING = (JobState.DEPEND, JobState.PRIORITY, JobState.SCHED)
"""States of jobs that have not started, as `flux jobs` counts them."""
ALLOCATED = (JobState.RUN, JobState.CLEANUP)
"""States of a job that has an allocation."""


class JobView(msgspec.Struct, frozen=True, kw_only=True):
    """One job as the lead last told it. Times: seconds since the epoch."""

    id: JobId
    userid: int
    state: JobState
    urgency: int
    """0 is held, 16 the default, 31 the highest (flux-submit(1))."""
    priority: int = 0
    request: ResourceRequest | None
    """None where the jobspec cannot be read; then `unreadable` says why."""
    unreadable: str = ""
    preferences: BurstPreferences = BurstPreferences()
    duration: float = 0.0
    """The job's time limit in seconds, 0 for none."""
    queue: str = ""
    bank: str = ""
    """As its jobspec names it: who is to pay for it, as flux-accounting has it."""
    name: str = ""
    """As `flux jobs` shows it; empty where it is not known."""
    attributes: Mapping[str, str] = {}
    """Those that rules may ask for, as `parse_attributes` returns them."""
    ranks: frozenset[int] = frozenset()
    """Ranks of its allocation, if any."""
    ran_on: frozenset[int] = frozenset()
    """Ranks of its last allocation, also after its end."""
    t_submit: float
    t_eligible: float = 0.0
    """When its dependencies and its begin time were over; 0 where the lead does
    not tell it."""
    t_start: float = 0.0
    t_finish: float = 0.0
    prologs: Mapping[str, float] = {}
    """What Flux runs before its start on nodes that it has already, such as a site's
    prolog: name to when that began."""
    epilogs: Mapping[str, float] = {}
    """What Flux runs after its end on nodes that it still has: name to when that began.
    """
    result: str = ""
    """Once INACTIVE: completed, failed, canceled or timeout."""
    lost_node: str = ""
    """What Flux says of the node by whose loss it ended; empty where it did not."""
    held_at_submit: bool = False
    """Whether it was submitted with urgency 0, which was not changed since."""
    memos_dropped: int = 0
    """How often the lead has dropped what the job was told in memos."""
    burstable: bool = True
    """Whether it has the attribute. If not, it is here as it is on record."""
    dependencies: tuple[str, ...] = ()
    """Those of `LIMIT_DEPENDENCIES` that keep it in DEPEND."""
    confined_to: frozenset[int] | None = None
    """The lent ranks on which its constraint lets it run beside own ones, for which
    `request.constraint` has only what its user and its queue require. None where it is
    not confined (burst.model.confinement)."""

    @property
    def tag(self) -> Tag | None:
        """On bursts with this tag alone it is to run; None for a job without one."""
        name = self.preferences.tag
        return Tag(name, self.userid) if name else None

    @property
    def nodes_asked(self) -> int:
        """How many nodes it asks for; 1 if for cores alone, or if that is unknown."""
        return max(1, self.request.nodes or 1) if self.request else 1

    @property
    def later_urgency(self) -> int:
        """The urgency that it has, or will have once it is released."""
        return max(self.urgency, self.preferences.urgency)


class QueueView(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a queue takes jobs and starts them (flux-queue(1))."""

    started: bool = True
    enabled: bool = True
    reason: str = ""
    """Why it is stopped, or else disabled, as the person who did that wrote."""


class LeasedRanks(msgspec.Struct, frozen=True):
    """Which ranks are leased, and for which jobs; it is sent to sched-burst."""

    jobs: Mapping[JobId, frozenset[int]] = {}
    """Pending jobs for which bursts are made, and the ranks that they may start on
    now: none as long as not all are online."""
    ranks: frozenset[int] = frozenset()
    """All that are leased."""


class LeadView(msgspec.Struct, frozen=True, kw_only=True):
    """One consistent picture of the lead. All sets are of ranks."""

    read_at: float
    jobs: Mapping[JobId, JobView]
    """Burstable jobs, and those that Lead.listen was told of, that are active or ended
    less than a minute ago."""
    online: frozenset[int]
    torpid: frozenset[int] = frozenset()
    drained: Mapping[int, str] = {}
    """Rank to the reason given; draining ranks too. Survives the broker's restart."""
    excluded: frozenset[int] = frozenset()
    unscheduled: frozenset[int] = frozenset()
    """Ranks of R that the scheduler does not know, and gives to no job: Fluxion has its
    nodes from a graph in R (JGF), where there is one."""
    allocated: frozenset[int] = frozenset()
    """Ranks of which any core or GPU is allocated, and drained ones of which the
    scheduler may not know yet that they are: a rank that is drained and not allocated
    here will get no job any more."""
    housekeeping: Mapping[int, float] = {}
    """Those of `allocated` on which no job runs but Flux's housekeeping, which cleans
    up after one (flux-housekeeping(1)): rank to when it began, in seconds since the
    epoch."""
    epilogs: Mapping[int, float] = {}
    """Those of `allocated` on which no job runs any more but the epilog after one, or
    also housekeeping; such ranks are in `housekeeping` no more. As for it."""
    free: Mapping[int, Shape] = {}
    """Unallocated cores and GPUs of each rank, up or not."""
    unfreed: frozenset[int] = frozenset()
    """Ranks with cores that are neither in `free` nor those of a job that is left: the
    scheduler was not told of its end, and gives them to nobody until it is loaded
    again."""
    granting: Mapping[int, Shape] = {}
    """Cores and GPUs by rank, none of them in `free`, that the scheduler has given to
    jobs of which the job manager does not show it yet: of pending jobs in `jobs`,
    perhaps. Only ranks that have some."""
    queues: Mapping[str, QueueView] = {}
    """By name; the name is empty for the one queue of an instance without named queues.
    Leads that have no queues have no entry."""
    scheduler: Scheduler = Scheduler()
    """The module that starts jobs."""
    changed: frozenset[JobId] = frozenset()
    """Jobs that changed after `jobs` was read and before the ranks were: what is not
    in `free` may be what they have got."""
    shuts_down: bool = False
    """Whether the lead has said that it shuts down: its followers end before it does.
    False where that is not known."""

    @property
    def barred(self) -> frozenset[int]:
        """Ranks that get no job as the lead is set up: excluded or not scheduled."""
        return self.excluded | self.unscheduled

    @property
    def in_use(self) -> frozenset[int]:
        """Ranks of which a job has something."""
        return self.allocated - self.housekeeping.keys() - self.epilogs.keys()

    @property
    def closed(self) -> frozenset[int]:
        """Ranks that get no new job, up or not: they are drained or barred."""
        return self.barred | self.drained.keys()

    @property
    def promised(self) -> frozenset[int]:
        """Ranks on which a pending job that is confined may start once they are up."""
        ranks = (
            job.confined_to
            for job in self.jobs.values()
            if job.confined_to and job.state in PENDING
        )
        return frozenset().union(*ranks)

    @property
    def usable(self) -> frozenset[int]:
        """Ranks on which new jobs can start and run."""
        return self.online - self.torpid - self.closed
