# SPDX-License-Identifier: MIT
"""The facts about a lead: those that are fixed while it runs, and its present state."""

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
    """The lead's `[bootstrap]` table. The order of its hosts is the order of ranks."""

    hosts: tuple[HostEntry, ...]
    default_port: int = 0
    default_bind: str = ""
    default_connect: str = ""
    enable_ipv6: bool = False


class GuestAccess(msgspec.Struct, frozen=True, kw_only=True):
    """Who besides its owner may use the instance.

    flux-config-access(5), flux-config-exec(5). A follower without the same settings
    refuses jobs of other users.
    """

    allow_guest_user: bool = False
    """Whether all users may submit jobs: the instance is a system instance."""
    allow_root_owner: bool = False
    """Whether root has the rights of the owner."""
    imp: str = ""
    """Path of flux-imp, which starts the jobs of other users; empty if there is none.
    The lead names it to followers, so each has it at the same path."""
    ingest: Mapping[str, Any] = {}
    """The table `[ingest]`, which lets the lead change or refuse submitted jobs;
    flux-config-ingest(5)."""


class LeadIdentity(msgspec.Struct, frozen=True, kw_only=True):
    """The facts that are fixed while the lead runs, except for what a reload changes.

    Ranks are indices of `hosts`.
    """

    kind: str
    """`flux`, or the name that another lead's package gives it; only for messages."""
    version: str
    """The version of the broker, such as `0.88.0`; followers must match MAJOR.MINOR."""
    uri: str
    """Where clients on this host connect, such as `local://…`."""
    owner: str
    """The owner tag, on everything that is made for this lead: letters, digits, `-`."""
    hosts: tuple[str, ...]
    shapes: tuple[Shape, ...]
    """The shape of each rank's node, from R."""
    properties: Mapping[str, frozenset[int]] = {}
    """R's properties: name to ranks."""
    excluded: frozenset[int] = frozenset()
    """Ranks that get no jobs because of `[resource] exclude`, when this was read."""
    queues: Mapping[str, tuple[str, ...]] = {}
    """Named queues and the properties that each requires, as of the lead's start or its
    last reload; so for `limits`."""
    limits: Mapping[str, JobLimits] = {}
    """What a job may ask for in each queue; by the empty name if there are no
    queues."""
    bootstrap: Bootstrap
    endpoint: str
    """The endpoint for followers, `tcp://ADDRESS:PORT`; empty if it is not known."""
    certificate: str
    """Path of the CURVE certificate, never its content.

    In a `BurstSpec` it is the certificate of the running lead; otherwise that of its
    configuration, which may have been replaced since the lead's start.
    """
    owner_userid: int | None = None
    """The user who owns the instance and runs its brokers and the daemon; None if not
    known."""
    access: GuestAccess = GuestAccess()
    """The access in the lead's configuration at its start or its last reload."""
    started: float = 0.0
    """When the lead was started, in seconds since the epoch; 0 if not known."""
    moved: float = 0.0
    """When the daemon noticed that the lead's endpoint for followers has changed, in
    seconds since the epoch; 0 if it has not changed since the daemon's start."""
    ends: float = 0.0
    """When the allocation ends in which the lead itself is a job, in seconds since the
    epoch; 0 for never, or if it is not known."""
    statedir: str = ""
    """The directory for state that outlives the lead; empty if there is none."""
    systemd: bool = False
    """Whether the lead has `[systemd] enable`: then a follower comes online and runs
    jobs only if the owner has a systemd instance on its host
    (burst.kits.systemd_user)."""
    follower_module: str = ""
    """The Python module that its followers run (`burst.kits.broker.follower_argv`);
    empty if they are Flux's own brokers."""

    def is_guest(self, userid: int | None) -> bool:
        """Tell whether a user other than the owner may use the instance.

        None stands for a request without a job, which has no user.
        """
        others = userid not in (None, self.owner_userid)
        return self.access.allow_guest_user and others

    def may_be_guest(self, userid: int | None) -> bool:
        """Tell whether a user is a guest, or may have become one.

        The lead may have admitted guests since its `access` was read.
        """
        owner = self.owner_userid
        is_other = owner is not None and userid not in (None, owner)
        return is_other or self.is_guest(userid)


NO_LEAD = LeadIdentity(
    kind="none",
    version="",
    uri="",
    owner="",
    hosts=(),
    shapes=(),
    bootstrap=Bootstrap(hosts=()),
    endpoint="",
    certificate="",
)
"""A lead without any rank, where there is none."""


class JobState(enum.Enum):
    """Flux's job states (RFC 21) that matter for bursts."""

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
    """One job as the lead last reported it. Times are in seconds since the epoch."""

    id: JobId
    userid: int
    state: JobState
    urgency: int
    """0 is held, 16 the default, 31 the highest (flux-submit(1))."""
    priority: int = 0
    request: ResourceRequest | None
    """None if the jobspec cannot be read; then `unreadable` says why."""
    unreadable: str = ""
    preferences: BurstPreferences = BurstPreferences()
    duration: float = 0.0
    """The job's time limit in seconds, 0 for none."""
    queue: str = ""
    bank: str = ""
    """The bank that its jobspec names, which is to pay for it (flux-accounting); empty
    for none."""
    name: str = ""
    """Its name as `flux jobs` shows it; empty if it is not known."""
    attributes: Mapping[str, str] = {}
    """The attributes that rules may match, as `parse_attributes` returns them."""
    ranks: frozenset[int] = frozenset()
    """The ranks of its allocation; empty if it has none."""
    ran_on: frozenset[int] = frozenset()
    """The ranks of its last allocation, also after its end."""
    t_submit: float
    t_eligible: float = 0.0
    """When its dependencies and its begin time were over; 0 if the lead does not report
    it."""
    t_start: float = 0.0
    t_finish: float = 0.0
    prologs: Mapping[str, float] = {}
    """What Flux runs on its nodes before its start, such as a site's prolog: name to
    begin time."""
    epilogs: Mapping[str, float] = {}
    """What Flux runs on its nodes after its end: name to begin time."""
    result: str = ""
    """completed, failed, canceled or timeout once it is INACTIVE; empty before."""
    lost_node: str = ""
    """Flux's message about the node whose loss ended it; empty if no loss did."""
    held_at_submit: bool = False
    """Whether it was submitted with urgency 0, and that was not changed since."""
    memos_dropped: int = 0
    """How often the lead has dropped the memos of the job."""
    burstable: bool = True
    """Whether it has the attribute. If not, it is shown because it is on record."""
    dependencies: tuple[str, ...] = ()
    """The dependencies of `LIMIT_DEPENDENCIES` that keep it in DEPEND."""
    confined_to: frozenset[int] | None = None
    """The lent ranks on which its constraint lets it run besides own nodes; None if it
    is not confined (burst.model.confinement). `request.constraint` has only what its
    user and its queue require."""

    @property
    def tag(self) -> Tag | None:
        """The tag of the only bursts it may run on; None for a job without a tag."""
        name = self.preferences.tag
        return Tag(name, self.userid) if name else None

    @property
    def has_or_had(self) -> frozenset[int]:
        """Its ranks; it may have started and ended between two observations."""
        return self.ranks or self.ran_on

    @property
    def nodes_asked(self) -> int:
        """The number of nodes it asks for; 1 for cores only, or if it is not known."""
        return max(1, self.request.nodes or 1) if self.request else 1

    @property
    def later_urgency(self) -> int:
        """The urgency that it has, or will have once it is released."""
        return max(self.urgency, self.preferences.urgency)


_OFFLINE = "Scheduler is offline"


class QueueView(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a queue takes jobs and starts them (flux-queue(1))."""

    started: bool = True
    enabled: bool = True
    reason: str = ""
    """The reason that was given when it was stopped, or else disabled."""

    @property
    def is_offline(self) -> bool:
        """Whether it starts no jobs as Flux asks no scheduler for resources.

        All queues are so then, also if a scheduler is loaded. Flux tells it by the text
        of the reason alone (queue_status_encode in queues.c).
        """
        return not self.started and self.reason == _OFFLINE


class LeasedRanks(msgspec.Struct, frozen=True):
    """The ranks that are leased, and for which jobs; sent to sched-burst."""

    jobs: Mapping[JobId, frozenset[int]] = {}
    """Pending jobs that bursts are made for, and the ranks on which they may start now;
    no ranks until all of them are online."""
    ranks: frozenset[int] = frozenset()
    """All ranks that are leased."""


class LeadView(msgspec.Struct, frozen=True, kw_only=True):
    """One consistent picture of the lead. Sets of integers are ranks."""

    read_at: float
    jobs: Mapping[JobId, JobView]
    """Burstable jobs, and the jobs named to Lead.listen, that are active or ended less
    than a minute ago."""
    online: frozenset[int]
    torpid: frozenset[int] = frozenset()
    drained: Mapping[int, str] = {}
    """Drained and draining ranks, with the reason. A drain survives a restart of the
    broker."""
    excluded: frozenset[int] = frozenset()
    unscheduled: frozenset[int] = frozenset()
    """Ranks of R that the scheduler does not know and gives to no job: Fluxion takes
    its nodes from a graph in R (JGF), if R has one. After `flux resource reload` Flux
    takes each rank that goes down from it."""
    allocated: frozenset[int] = frozenset()
    """Ranks of which any core or GPU is allocated, and drained ranks whose drain the
    scheduler may not know yet: a rank that is drained and not in this set will get no
    job any more."""
    housekeeping: Mapping[int, float] = {}
    """Ranks in `allocated` on which no job runs, but Flux's housekeeping after a job
    (flux-housekeeping(1)): rank to when it began, in seconds since the epoch."""
    epilogs: Mapping[int, float] = {}
    """Ranks in `allocated` on which no job runs, but an epilog after a job, with or
    without housekeeping: rank to when it began, in seconds since the epoch. These ranks
    are not in `housekeeping`."""
    free: Mapping[int, Shape] = {}
    """Unallocated cores and GPUs of each rank, up or not."""
    unfreed: frozenset[int] = frozenset()
    """Ranks with cores that are not in `free` and belong to no job: the scheduler was
    not told of the end of a job, and does not give them to others until it is reloaded.
    """
    granting: Mapping[int, Shape] = {}
    """Cores and GPUs by rank, not in `free`, that the scheduler has given to jobs for
    which the job manager shows no allocation yet, perhaps to pending jobs in `jobs`.
    Only ranks that have some."""
    granting_lasts: float = 0.0
    """For how many seconds cores stay in `granting` at most if their job starts and
    ends before the job manager is read again: the scheduler is asked no sooner."""
    queues: Mapping[str, QueueView] = {}
    """Queues by name; the name is empty for the one queue of an instance without named
    queues. Empty for a lead without queues."""
    scheduler: Scheduler = Scheduler()
    """The module that starts jobs."""
    changed: frozenset[JobId] = frozenset()
    """Jobs that changed after `jobs` was read and before the ranks were read: resources
    missing in `free` may be allocated to them."""
    shuts_down: bool = False
    """Whether the lead has announced its shutdown: its followers end before it does.
    False if that is not known."""

    @property
    def barred(self) -> frozenset[int]:
        """Ranks that get no job by the lead's setup: excluded or unscheduled."""
        return self.excluded | self.unscheduled

    @property
    def in_use(self) -> frozenset[int]:
        """Ranks of which a job has any core or GPU."""
        return self.allocated - self.housekeeping.keys() - self.epilogs.keys()

    @property
    def closed(self) -> frozenset[int]:
        """Ranks that get no new job, up or not: they are drained or barred."""
        return self.barred | self.drained.keys()

    @property
    def promised(self) -> frozenset[int]:
        """Ranks on which a confined pending job may start once they are up."""
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
