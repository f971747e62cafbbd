# SPDX-License-Identifier: MIT
"""The tables of the file. Each key's docstring says why its default is what it is."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import msgspec

from burst.config.convert import PackageTable, Seconds, SecondsOrOff, Table
from burst.config.http import HttpSettings
from burst.config.money import BudgetSettings
from burst.config.notify import NotifySettings
from burst.config.policy import PolicyRule, default_rule
from burst.config.standing import StandingNodes

Mode = Literal["hold", "queue", "scheduler"]

LONGEST_OWNER = 40
"""Of an owner tag, in characters; names of files and labels are made of it."""


class LeadSettings(Table, frozen=True):
    """`[lead]`: how to find the lead, and how followers reach it."""

    uri: str = ""
    """Of the lead's local socket; default FLUX_URI of the environment."""
    address: str = ""
    """Host name or address at which followers reach the lead; default: the connect
    address of rank 0 in the lead's own bootstrap hosts. In a pod it can be learnt of
    the cluster: "node" is the external address of the node that the lead's pod is on,
    or else the internal one, and "service" that of the Service's load balancer."""
    port: int = 0
    """Port at that address; default: the port of the same entry, or of the Service."""
    service: str = "burst-lead"
    """For address "node" and "service", and for owner "service": the Service that leads
    to the lead's port, in the namespace of the daemon's pod."""
    owner: str = ""
    """The owner tag, which all that is made for this lead has: a text of lower-case
    letters, digits and dashes that no other lead has, or "service", which makes it of
    the UID of that Service. Default: a tag that is made once and kept in the lead's
    store; if the store is lost, bursts made before are not known by the new tag."""
    slots: tuple[str, ...] = ()
    """Rank slots as hostlists, such as "burst-0-[0-3]"; default: one for each stem
    burst-N- in the lead's hosts."""
    reconnect: Seconds = Seconds(300)
    """How long to try to find a lead that went away before the daemon gives up and
    leaves it to whoever restarts both. Longer than a broker's restart. A lead that was
    shut down in an orderly manner is not looked for."""

    @property
    def is_learnt(self) -> bool:
        """Whether the address is to be learnt of the cluster that the lead is in."""
        return self.address in {"node", "service"}

    @property
    def has_owner_of_service(self) -> bool:
        """Whether the owner tag is made of the UID of the Service."""
        return self.owner == "service"


class DaemonSettings(Table, frozen=True):
    """`[daemon]`: the process itself."""

    cadence: Seconds = Seconds(10)
    """The longest time between two looks at the world. Changes wake the daemon at
    once; this only bounds what no event tells of, such as deadlines. A provider that
    has live bursts is asked five times as often."""
    on_stop: Literal["leave", "reap"] = "leave"
    """What a clean stop does with running bursts, and the end of a lead that does not
    come back within `[lead] reconnect`. Leaving them is the default since a daemon is
    stopped for an upgrade more often than for good; the log has the `burst gc` line
    that deletes what a lead left."""
    orphans: Literal["report", "reap"] = "report"
    """What to do with things that bear our tag and no record explains. Reported only,
    by default: records are written before money is spent, so an orphan means that the
    store was lost, and then a person should look first (`burst gc`)."""
    log: Literal["text", "json"] = "text"
    """Form of the log on standard error."""
    alive: str = ""
    """Path of a file that the daemon touches each time it goes on: at each tick, at
    most `cadence` apart, and while it waits for its lead. For a liveness probe; none by
    default."""
    forecast: SecondsOrOff = SecondsOrOff(2)
    """How often at most to estimate when each pending job starts on own nodes, as jobs
    come and go; "off" for never. On by default: all who wait want to know, and it takes
    at most a twentieth of one core's time and 0.4 kB of memory for each pending job.
    Seconds, as a rule may wait for it before it decides. A rule of `[[policy]]` with a
    worth above 0, or one that marks jobs, switches it on in any case."""
    record: str = ""
    """Path of a file in which what happens to all jobs is recorded for `burst replay`,
    as lines of JSON that only the daemon's user can read; at most 320 MB. None by
    default, since it has what users submitted. Forecasts are on with it."""

    retired: ClassVar[Mapping[str, str]] = {
        "archive": "remove it: the file is burst-ledger.sqlite in the lead's state"
        " directory, or beside the lead's socket; move what you have there",
        "observe": "remove it: a provider with live bursts is asked five times as often"
        " as cadence says; set cadence",
    }

    @property
    def observe(self) -> float:
        """How often to ask a provider that has live bursts, in seconds.

        Five times for each look at a world that does not move: a follower that is up
        earns nothing until it is seen.
        """
        return self.cadence / 5


class IntakeSettings(Table, frozen=True):
    """`[intake]`: which jobs may burst, and how they are kept from blocking others."""

    mode: Mode = "hold"
    """hold: a burstable job that cannot start is held (urgency 0) as soon as it is
    seen. The scheduler may be faster now and then. queue: burstable jobs come into a
    stopped queue, and are moved to another when their nodes are online. scheduler:
    the lead's scheduler is sched-burst, which lets them wait without blocking others.
    The first needs nothing of the site; docs/intake.md says which to choose."""
    queue: str = "burst"
    """In mode queue: the stopped queue into which burstable jobs are submitted."""
    ready: str = "burst-ready"
    """In mode queue: the started queue of jobs whose nodes are online."""
    any_job: bool = False
    """Whether jobs that are not burstable may run on lent nodes too. Off: who pays for
    nodes wants to find them free. `burst setup` tells the frobnicator."""
    attribute: str = "burstable"
    """Attribute under `attributes.system` that marks a job; `--setattr=burstable`."""
    local_wait: Seconds = Seconds(60)
    """How long a job that could start on nodes that are up is left to the scheduler
    before it bursts all the same."""
    release_urgency: int = 31
    """Urgency, 1 to 31, that a released job gets for ten seconds at most where its lent
    nodes are free and Flux has not started it within two seconds, as jobs ahead of it
    wait for own nodes; 31 is first in the queue (flux-submit(1)). It gets none while it
    could take own nodes by that (docs/intake.md). 0: it waits for its turn, and so do
    nodes that are paid for. Mode scheduler does not need it."""
    impossible: Literal["auto", "hold", "fail"] = "auto"
    """What becomes of a job that no offer could ever serve: it waits without blocking
    the queue, or is failed with the reason, as Flux fails what it has no nodes for.
    auto: fail in modes queue and scheduler; hold in mode hold, where a site tries
    bursting out and its settings are still to be found."""

    @property
    def fails_impossible(self) -> bool:
        """Whether a job that nothing could ever serve is failed."""
        if self.impossible == "auto":
            return self.mode != "hold"
        return self.impossible == "fail"


class PlanSettings(Table, frozen=True):
    """`[plan]`: how demand becomes bursts."""

    share: bool = True
    """Several jobs of one user may count on one burst, if it holds them all at once or
    one after the other."""
    share_users: bool = False
    """Jobs of several users may share a burst too. Off: a site that bills by user
    wants to know whose a burst is. On an instance with guests it also says whether the
    daemon keeps their jobs off the nodes of each other's bursts (docs/intake.md)."""
    spread: bool = True
    """A job that is larger than any free rank slot may get several bursts."""
    partial: Literal["fail", "keep"] = "fail"
    """At the join deadline of a burst of which only some nodes are online: give it
    up, or keep what joined if a job can use it."""
    resize: bool = True
    """A burst that a job uses grows by the nodes that the job lacks, in place of a
    further burst of the same offer; and one whose last nodes are idle for `[deadlines]
    idle`, while others work, shrinks. Only where its provider can do that. On, as no
    further fee and no whole burst is paid for a part."""
    worth: float = 0.0
    """What a burst has to be worth for jobs that no rule of `[[policy]]` says it of:
    the hours that it saves for each node-hour that it buys. 0: whatever must wait
    bursts, as nobody waits longer than needed before a site has said what its money is
    to buy. docs/policy.md says what 0.05 and 0.1 do."""

    retired: ClassVar[Mapping[str, str]] = {
        "preset": "write worth in its place: eager is 0, balanced 0.05, frugal 0.1"
    }


class LimitSettings(Table, frozen=True):
    """`[limits]`: what is never exceeded. 0 means no limit."""

    max_nodes: int = 0
    """Nodes of all live bursts together."""
    max_bursts: int = 0
    """Live bursts at a time."""
    max_nodes_per_burst: int = 0
    """Nodes of one burst."""
    max_nodes_per_user: int = 0
    """Nodes of the live bursts made for jobs of one user."""
    cooldown: Seconds = Seconds(600)
    """How long an offer that had no capacity is not tried again. As long as
    ParallelCluster waits, since stock comes back in minutes, not seconds. A provider
    that failed three times in a row is left alone for half as long, and then one
    attempt decides. What a provider refuses (its credentials, quota or settings, or a
    kind of burst) is tried again after a minute, then after twice as long each time, at
    most three times this. `burst enable` tries at once."""

    retired: ClassVar[Mapping[str, str]] = {
        "breaker": "remove it: three failures in a row are the limit",
        "breaker_pause": "remove it: it is half of cooldown; set cooldown",
        "refused_retry": "remove it: it is three times cooldown; set cooldown",
    }

    @property
    def breaker_pause(self) -> float:
        """For how long a provider is left alone that failed too often, in seconds.

        Less than an offer without stock: what fails by chance is soon well again.
        """
        return self.cooldown / 2

    @property
    def refused_retry(self) -> float:
        """How long at most what a provider refuses is not tried again, in seconds.

        Longer than an offer without stock, as a person has to mend it.
        """
        return 3 * self.cooldown


class GuestSettings(Table, frozen=True):
    """`[guests]`: what users of the instance may do who are not its owner."""

    request_nodes: int = 0
    """How many nodes the live bursts that one user requested (`burst request -N`) may
    have together, within all limits and budgets. 0: only the instance owner requests
    bursts, since nodes without a job cost money, too."""
    take_subuids: bool = False
    """Whether user ids in the ranges of this host's subuid(5) are users, as where a
    site's accounts have such ids. By default their calls are refused, and no nodes
    are rented for their jobs: one user has thousands of them, and no limit or budget by
    user would hold."""

    retired: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("calls_per_second", "calls_at_once"),
        "remove it: each user may call 20 times a second, 200 times at once",
    )


class DeadlineSettings(Table, frozen=True):
    """`[deadlines]`: every waiting state ends."""

    lead: Seconds = Seconds(0)
    """From the daemon's start to the lead's. By default the lead has to be there: a
    person wants to hear at once that it is not. In a pod both start together."""
    provision: Seconds = Seconds(900)
    """From the first call to all followers started. GKE takes five minutes for a
    cluster, and a stock-out shows after many more."""
    join: Seconds = Seconds(300)
    """From then to all ranks online. A broker joins in under a second; the rest is
    pulling images and wrong addresses."""
    rejoin: Seconds = Seconds(120)
    """How long a rank that was online may be away before the burst is given up. As
    long as CLUES tolerates a glitch; longer than a broker's restart."""
    drain: Seconds = Seconds(1800)
    """From draining to no allocation left. A job is never killed: past this, the burst
    is reported as overdue and waited for."""
    housekeeping: Seconds = Seconds(600)
    """How long Flux's housekeeping may take on lent nodes, on which no job runs then.
    Past this it is ended (flux housekeeping kill), so that nodes are not paid for on
    account of a script that never ends. Health checks take seconds, an update of a
    node minutes; the instance's own nodes are left alone. A burst that is taken down
    waits no longer than this for an epilog, either, on which Flux has no limit unless
    `[job-manager.epilog] timeout` is set."""
    reap: Seconds = Seconds(600)
    """From the first reap to NotFound. Past this it is reported and repeated."""
    idle: Seconds = Seconds(300)
    """How long a burst that nothing needs stays up. A cluster takes longer than this
    to make, so a second job soon after should find it."""
    lease: Seconds = Seconds("inf")
    """How long a burst may live. It is drained `drain` before, and what then still runs
    is ended by providers that can, even if no daemon is left: this bounds the bill of a
    daemon that is gone. None by default, as it may end a job: make it longer than your
    longest job and `drain`."""
    run: Seconds = Seconds(86400)
    """How long what runs in an isolated burst may take, if its job has no time limit.
    A day, as nobody looks at a cluster elsewhere; raise it for longer jobs."""
    complete: Seconds = Seconds(600)
    """How long a job may have a part of the nodes it needs while the rest is refused.
    Past this its part is given back. As long as `[limits] cooldown`: an offer that had
    no capacity has been tried again by then."""
    release: Seconds = Seconds(300)
    """How long a released job may wait for Flux's scheduler before it leaves its burst,
    which would be rented for it in vain. It is tried again later."""

    retired: ClassVar[Mapping[str, str]] = {
        "accounting": "remove it: flux-accounting has 10s to answer",
        "address": "remove it: the daemon waits 2m for the lead's address; set lead"
        " where the lead itself comes later",
        "agent": "write it as agent under [ensemble]: it is a key of that package",
        "forecast": "remove it: jobs wait 1m for a forecast; write worth = 0 in a rule"
        " whose jobs shall not wait for one",
        "reload": "remove it: providers have 20s to be made, a minute at the start",
        "reservation": "remove it: ranks are kept for 4h after a job's submission",
    }


class ProviderTable(msgspec.Struct, frozen=True, kw_only=True):
    """`[providers.NAME]`: what every provider has; `options` is for the plug-in."""

    type: str
    """Name under the entry point group `burst.providers`: local, kube, kind, gke…"""
    enabled: bool = True
    """Whether it is used. Of one that is not, no package is imported."""
    provision: Seconds | None = None
    """In place of `[deadlines] provision` for bursts of this one: processes start in a
    second, clusters in minutes, and a job of another scheduler waits its turn."""
    standing: tuple[StandingNodes, ...] = ()
    """Nodes that are kept although no job needs them (docs/cost.md)."""
    options: Mapping[str, Any] = {}

    retired: ClassVar[Mapping[str, str]] = {
        "usage_factor": "remove it: it changed nothing but a line that users were shown"
    }


class Settings(Table, frozen=True):
    """The whole file."""

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
    """In the order in which their offers are preferred among equal prices."""
    policy: tuple[PolicyRule, ...] = ()
    """Each has a name and a worth."""
    budget: tuple[BudgetSettings, ...] = ()
    """None by default: what bursts may cost is for the site to say."""
    prices: Mapping[str, float] = {}
    """`[prices]`: by `PROVIDER.OFFER` what a node and hour costs the site, in place of
    what its provider says. Empty by default: a provider says it if it knows it."""
    packages: Mapping[str, PackageTable] = {}
    """Those of the file's tables that are of other packages (`burst.settings` of
    `burst.extensions`), by name."""

    @property
    def rules(self) -> tuple[PolicyRule, ...]:
        """The rules of the file in their order, then the one for all other jobs."""
        return (*self.policy, default_rule(self.plan.worth))

    @property
    def uses_banks(self) -> bool:
        """Whether it depends on a job's bank what is bought for it."""
        matches = [each.match.bank for each in self.budget]
        return any((*matches, *(each.match.bank for each in self.policy)))

    @property
    def needs_forecast(self) -> bool:
        """Whether all active jobs are followed, and their start is estimated."""
        asked = any(rule.worth or rule.mark for rule in self.rules)
        asked = asked or bool(self.daemon.record)
        return asked or not math.isinf(self.daemon.forecast)

    def provision_limit(self, provider: str) -> Seconds:
        """Return how long followers of that provider may take to start, in seconds."""
        table = self.providers.get(provider)
        own = table.provision if table else None
        return self.deadlines.provision if own is None else own
