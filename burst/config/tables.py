# SPDX-License-Identifier: MIT
"""The tables of the settings file. Each key's docstring explains its default."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

import msgspec

from burst.config.convert import PackageTable, Seconds, SecondsOrOff, Table
from burst.config.http import HttpSettings
from burst.config.money import BudgetSettings
from burst.config.notify import NotifySettings
from burst.config.policy import PolicyRule, default_rule
from burst.config.standing import StandingNodes

Mode = Literal["hold", "queue", "scheduler"]

LONGEST_OWNER = 40
"""The longest owner tag, in characters: names of files and labels are made from it."""


class LeadSettings(Table, frozen=True):
    """`[lead]`: how to find the lead, and how followers reach it."""

    uri: str = ""
    """URI of the lead's local socket; default: FLUX_URI of the environment."""
    address: str = ""
    """Host name or address at which followers reach the lead; default: the connect
    address of rank 0 in the lead's own bootstrap hosts. In a pod the daemon can ask the
    cluster for it: "node" is the external address of the node on which the lead's pod
    runs, or else its internal address; "service" is the address of the Service's load
    balancer."""
    port: int = 0
    """Port at that address; default: the port of the same entry, or of the Service."""
    service: str = "burst-lead"
    """The Service that leads to the lead's port, in the namespace of the daemon's pod;
    used for address "node" and "service", and for owner "service"."""
    owner: str = ""
    """The owner tag, which marks everything that is made for this lead: a text of
    lower-case letters, digits and dashes that no other lead has, or "service", which
    makes it from the UID of that Service. Default: a tag that is made once and kept in
    the lead's store; if the store is lost, the new tag does not find earlier bursts."""
    slots: tuple[str, ...] = ()
    """Rank slots as hostlists, such as "burst-0-[0-3]"; default: one for each stem
    burst-N- in the lead's hosts."""
    retired: ClassVar[Mapping[str, str]] = {
        "reconnect": "remove it: the daemon tries for 5m to reach a lead that went away"
    }

    @property
    def is_learnt(self) -> bool:
        """Whether the daemon asks the cluster of the lead for the address."""
        return self.address in {"node", "service"}

    @property
    def has_owner_of_service(self) -> bool:
        """Whether the owner tag is made from the UID of the Service."""
        return self.owner == "service"


class DaemonSettings(Table, frozen=True):
    """`[daemon]`: the process itself."""

    cadence: Seconds = Seconds(10)
    """The longest time between two ticks. Changes wake the daemon at once; this only
    bounds the delay of what no event announces, such as deadlines. A provider that has
    live bursts is asked five times as often."""
    on_stop: Literal["leave", "reap"] = "leave"
    """What happens to live bursts when the daemon is stopped cleanly, or when its lead
    does not come back within 5m. They are left by default, since a daemon is stopped
    for an upgrade more often than for good; the log has the `burst gc` line that
    deletes what a lead left. `"reap"`: they are drained and deleted, for at most
    `[deadlines] reap`, while jobs on them run to their end; the log names what is not
    gone by then."""
    log: Literal["text", "json"] = "text"
    """Format of the log on standard error."""
    alive: str = ""
    """Path of a file that the daemon touches while it works: at each tick, at most
    `cadence` apart, and while it waits for its lead. For a liveness probe; none by
    default."""
    forecast: SecondsOrOff = SecondsOrOff(2)
    """The shortest time between two estimates of when each pending job starts on own
    nodes; they are made as jobs come and go. "off" for none. On by default: users want
    to know when their jobs start, and it takes at most a twentieth of one core's time
    and 0.4 kB of memory for each pending job. The default is short, as a rule may wait
    for an estimate before it decides. A rule of `[[policy]]` with a worth above 0, or
    one that marks jobs, switches estimates on in any case."""
    record: str = ""
    """Path of a file that records the events of all jobs for `burst replay`, as lines
    of JSON that only the daemon's user can read; at most 320 MB. None by default, since
    it contains what users submitted. It switches forecasts on."""

    retired: ClassVar[Mapping[str, str]] = {
        "archive": "remove it: the file is burst-ledger.sqlite in the lead's state"
        " directory, or beside the lead's socket; move what you have there",
        "observe": "remove it: a provider with live bursts is asked five times as often"
        " as cadence says; set cadence",
        "orphans": "remove it: burst gc lists orphans, and with --yes deletes them",
    }

    @property
    def observe(self) -> float:
        """The seconds between two calls of `observe` while a provider has live bursts.

        Five times as often as the cadence: a follower that is up is of no use until the
        daemon has seen it.
        """
        return self.cadence / 5


class IntakeSettings(Table, frozen=True):
    """`[intake]`: which jobs may burst, and how they are kept from blocking others."""

    mode: Mode = "hold"
    """hold: a burstable job that cannot start is held (urgency 0) as soon as the daemon
    sees it; the scheduler may be faster now and then. queue: burstable jobs are
    submitted to a stopped queue, and moved to another when their nodes are online.
    scheduler: the lead's scheduler is sched-burst, which lets them wait without
    blocking others. hold needs no change of the site's configuration; docs/intake.md
    says which mode to choose."""
    queue: Annotated[str, msgspec.Meta(min_length=1)] = "burst"
    """In mode queue: the stopped queue into which burstable jobs are submitted. When
    their nodes are online, they move to the started queue of this name with -ready."""
    any_job: bool = False
    """Whether jobs that are not burstable may run on lent nodes, too. Off by default:
    users who pay for nodes expect them to be free. `burst setup` configures the
    frobnicator for it."""

    # A constant: `retired` keeps it out of the file.
    local_wait: Seconds = Seconds(60)
    """How long a job that could start on nodes that are up is left to the scheduler
    before it bursts all the same, unless its user or its rule says: many times what a
    scheduler takes."""

    retired: ClassVar[Mapping[str, str]] = {
        "attribute": "remove it: jobs are marked by --setattr=burstable;"
        " cancel waiting jobs that another one marks, as nothing releases them",
        "impossible": "remove it: a job that no offer could ever serve stays held in"
        " mode hold, and fails in the other modes",
        **dict.fromkeys(
            ("local_wait", "patience"),
            "remove it: a job that could start on own nodes is left to the scheduler"
            " for 1m; write wait in a rule of [[policy]] for another time",
        ),
        "ready": "remove it: the queue has the name of queue, with -ready at its end",
        "release_urgency": "remove it: a released job that Flux does not start gets"
        " urgency 31",
        "share": "write any_job",
    }

    @property
    def ready(self) -> str:
        """In mode queue: the started queue of jobs whose nodes are online."""
        return f"{self.queue}-ready"

    @property
    def fails_impossible(self) -> bool:
        """Whether a job that no offer could ever serve is failed with the reason.

        Flux fails a job that it can never run. In mode hold, in which a site tries
        bursting before its settings are final, the job waits without blocking others.
        """
        return self.mode != "hold"


class PlanSettings(Table, frozen=True):
    """`[plan]`: how demand becomes bursts."""

    share: bool = True
    """Whether several jobs of one user may share a burst, if it can run them all at
    once or one after the other."""
    share_users: bool = False
    """Whether jobs of several users may share a burst, too. Off by default: a site that
    bills by user needs to know whose a burst is. On an instance with guests it also
    decides whether the daemon keeps their jobs off the nodes of each other's bursts
    (docs/intake.md)."""
    spread: bool = True
    """Whether a job that is larger than any free rank slot may get several bursts."""
    partial: Literal["fail", "keep"] = "fail"
    """What happens to a burst of which only some nodes are online when its time to come
    up is over, or when its provider has no nodes for the others. fail: it is given up.
    keep: the nodes that joined are kept if a job can use them."""
    resize: bool = True
    """Whether bursts change their size, if their provider can do that. A burst that a
    job uses grows by the nodes that the job lacks, in place of a further burst of the
    same offer. A burst shrinks if its last nodes are idle for `[deadlines] idle` while
    others work. On by default: growth costs no further fee, and after a shrink only
    nodes in use are paid for."""
    worth: float = 0.0
    """The worth that a burst must have for jobs whose rule of `[[policy]]` sets none:
    the hours that it saves for each node-hour that it buys. 0: every job that must wait
    bursts, so that nobody waits longer than needed before a site has set what its money
    should buy. docs/policy.md says what 0.05 and 0.1 do."""

    retired: ClassVar[Mapping[str, str]] = {
        "preset": "write worth in its place: eager is 0, balanced 0.05, frugal 0.1"
    }


class LimitSettings(Table, frozen=True):
    """`[limits]`: limits that no plan exceeds. 0 means no limit."""

    max_nodes: int = 0
    """Nodes of all live bursts together."""
    max_bursts: int = 0
    """Live bursts at the same time."""
    max_nodes_per_burst: int = 0
    """Nodes of one burst."""
    max_nodes_per_user: int = 0
    """Nodes of the live bursts made for jobs of one user."""
    cooldown: Seconds = Seconds(600)
    """How long an offer that had no capacity, or whose burst did not come online, is
    not tried again; twice as long each further time, at most 16 times this. The default
    is what ParallelCluster waits, since capacity comes back in minutes, not seconds. If
    one method of a provider fails unexpectedly three times in a row, the provider gets
    no new burst for half of this, and then one burst decides. After a provider has
    refused its credentials, quota or settings, or a kind of burst, the daemon tries
    again after a minute, then after twice as long each time, at most three times this.
    `burst enable` tries at once."""

    retired: ClassVar[Mapping[str, str]] = {
        "breaker": "remove it: three failures in a row are the limit",
        "breaker_pause": "remove it: it is half of cooldown; set cooldown",
        "refused_retry": "remove it: it is three times cooldown; set cooldown",
        "set_aside": "write cooldown",
    }

    @property
    def breaker_pause(self) -> float:
        """The seconds for which a provider that failed too often gets no new bursts.

        Less than for an offer without capacity: a failure by chance is soon over.
        """
        return self.cooldown / 2

    @property
    def refused_retry(self) -> float:
        """The longest time for which refused requests are not tried again, in seconds.

        Longer than for an offer without capacity, as a person has to fix the cause.
        """
        return 3 * self.cooldown


class GuestSettings(Table, frozen=True):
    """`[guests]`: what users of the instance other than its owner may do."""

    request_nodes: int = 0
    """The most nodes that the live bursts requested by one user (`burst request -N`)
    may have together, within all limits and budgets. 0: only the instance owner may
    request bursts, since nodes without a job cost money, too."""
    take_subuids: bool = False
    """Whether user ids in the ranges of this host's subuid(5) count as users, for sites
    whose accounts have such ids. By default their calls are refused, and no nodes are
    rented for their jobs: one user has thousands of such ids, so that no limit or
    budget by user would hold."""

    retired: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("calls_per_second", "calls_at_once"),
        "remove it: each user may call 20 times a second, 200 times at once",
    )


class DeadlineSettings(Table, frozen=True):
    """`[deadlines]`: every waiting state ends."""

    lead: Seconds = Seconds(0)
    """From the start of the daemon to the start of the lead. By default the lead must
    run already, so that a person is told at once if it does not. In a pod both start
    together."""
    join: Seconds = Seconds(300)
    """From the start of all followers, for which the table of each provider has
    `provision`, until all ranks are online. A broker joins in under a second; a longer
    time is due to pulling images, or to a wrong address."""
    drain: Seconds = Seconds(1800)
    """From the start of draining until no allocation is left. A job is never killed:
    after this deadline the burst is reported as overdue, and the daemon still waits."""
    reap: Seconds = Seconds(600)
    """From the first reap until NotFound. After this deadline the burst is reported as
    overdue, and reap is still repeated."""
    idle: Seconds = Seconds(300)
    """How long a burst that nothing needs stays up. It ends earlier if it was made for
    jobs and none ran on it; and, with a worth above 0, once to keep it costs more than
    to make it again (docs/policy.md). While a job waits for it together with busy
    nodes, it stays for at least as long as it took to come online. To make a cluster
    takes longer than the default, so that a second job soon after the first finds
    it."""
    lease: Seconds = Seconds("inf")
    """How long a burst may live. It is drained `drain` before its end. At its end,
    providers that can do so end what still runs, even if no daemon is left: this bounds
    the cost after a daemon is lost. None by default, as it may end a job: make it
    longer than your longest job and `drain`."""
    run: Seconds = Seconds(86400)
    """How long the program of an isolated burst may run if its job has no time limit.
    A day by default, as nobody looks after a cluster elsewhere; raise it for longer
    jobs."""

    # Constants: `retired` keeps them out of the file.
    rejoin: Seconds = Seconds(120)
    """How long a rank that was online may be offline before the burst is given up: as
    long as CLUES tolerates a glitch, and longer than the restart of a broker."""
    housekeeping: Seconds = Seconds(600)
    """How long Flux's housekeeping may take on lent nodes, while no job runs on them.
    After this deadline it is ended (flux housekeeping kill), so that a script that
    never ends does not keep nodes that cost money. Health checks take seconds, an
    update of a node minutes; housekeeping on own nodes is not ended. For an epilog,
    which has no limit in Flux unless `[job-manager.epilog] timeout` is set, a burst
    that is taken down waits no longer than this, either."""
    complete: Seconds = Seconds(600)
    """How long a job may keep a part of the nodes it needs while the rest is refused.
    After this deadline its part is given back. An offer that had no capacity has been
    tried again by then, unless `[limits] cooldown` is longer than its default."""
    release: Seconds = Seconds(300)
    """How long a released job may wait for Flux's scheduler before it leaves its burst,
    which would cost money without use. The job is tried again later."""

    retired: ClassVar[Mapping[str, str]] = {
        "accounting": "remove it: flux-accounting has 10s to answer",
        "address": "remove it: the daemon waits 2m for the lead's address; set lead"
        " where the lead itself comes later",
        "agent": "remove it: an agent may be silent for six times checkSeconds, and at"
        " least for a minute",
        "complete": "remove it: a part of a job's nodes is given back after 10m",
        "forecast": "remove it: jobs wait 1m for a forecast; write worth = 0 in a rule"
        " whose jobs should not wait for one",
        "housekeeping": "remove it: housekeeping on lent nodes is ended after 10m",
        "provision": "write it as provision under [providers.NAME], of each provider",
        "rejoin": "remove it: ranks that were lost have 2m to come back",
        "release": "remove it: Flux has 5m to start a released job",
        "reload": "remove it: providers must start in 20s, a minute at the start",
        "reservation": "remove it: ranks are kept for 4h after a job's submission",
    }


class ProviderTable(msgspec.Struct, frozen=True, kw_only=True):
    """`[providers.NAME]`: keys of every provider; `options` has the plug-in's own."""

    type: str
    """Name under the entry point group `burst.providers`: local, kube, kind, gke…"""
    enabled: bool = True
    """Whether the provider is used. If not, its package is not imported."""
    provision: Seconds = Seconds(900)
    """From the first call of the provider until all followers of a burst are started.
    Processes start in a second, and a job of another scheduler waits for its turn. GKE
    takes five minutes for a cluster, and reports a lack of capacity many minutes
    later."""
    standing: tuple[StandingNodes, ...] = ()
    """Nodes that are kept although no job needs them (docs/cost.md)."""
    options: Mapping[str, Any] = {}

    retired: ClassVar[Mapping[str, str]] = {
        "usage_factor": "remove it: it changed nothing but a line that users were shown"
    }


_ANY_PROVIDER = ProviderTable(type="")


class Settings(Table, frozen=True):
    """The whole settings file."""

    lead: LeadSettings = LeadSettings()
    daemon: DaemonSettings = DaemonSettings()
    intake: IntakeSettings = IntakeSettings()
    plan: PlanSettings = PlanSettings()
    limits: LimitSettings = LimitSettings()
    guests: GuestSettings = GuestSettings()
    deadlines: DeadlineSettings = DeadlineSettings()
    http: HttpSettings = HttpSettings()
    notify: NotifySettings = NotifySettings()
    providers: Mapping[str, ProviderTable] = {}
    """The providers; the first is preferred among offers of equal price."""
    policy: tuple[PolicyRule, ...] = ()
    """The rules, each with a name and a worth, in their order."""
    budget: tuple[BudgetSettings, ...] = ()
    """The budgets; none by default, as only the site knows what bursts may cost."""
    prices: Mapping[str, float] = {}
    """`[prices]`: what a node costs the site per hour, by `PROVIDER.OFFER`, in place of
    the price that the provider reports. Empty by default: a provider reports its price
    if it knows it."""
    packages: Mapping[str, PackageTable] = {}
    """The tables of other packages (`burst.settings` of `burst.extensions`), by name.
    """

    @property
    def rules(self) -> tuple[PolicyRule, ...]:
        """The rules of the file in their order, then the one for all other jobs."""
        return (*self.policy, default_rule(self.plan.worth))

    @property
    def uses_banks(self) -> bool:
        """Whether any budget or rule depends on the bank of a job."""
        matches = [each.match.bank for each in self.budget]
        return any((*matches, *(each.match.bank for each in self.policy)))

    @property
    def needs_forecast(self) -> bool:
        """Whether all active jobs are followed and their start times estimated."""
        asked = any(rule.worth or rule.mark for rule in self.rules)
        asked = asked or bool(self.daemon.record)
        return asked or not math.isinf(self.daemon.forecast)

    def provision_limit(self, provider: str) -> Seconds:
        """Return how long followers of that provider may take to start, in seconds."""
        return self.providers.get(provider, _ANY_PROVIDER).provision
