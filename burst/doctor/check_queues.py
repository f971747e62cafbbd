# SPDX-License-Identifier: MIT
"""Checks whether the jobs of each queue can run, and on which nodes.

A queue's `requires` becomes a constraint of its jobs, flux-config-queues(5). If no node
meets it, each job is unsatisfiable; if lent nodes meet it, any job may get them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from burst.config import IntakeSettings
from burst.doctor.facts import ProviderFacts, ReadFailure
from burst.flux.frobnicator import comes_after_constraints, frobnicator_table
from burst.flux.identity import parse_access
from burst.flux_setup.site_tables import SiteTables, site_tables
from burst.model.confinement import LENT
from burst.model.finding import Finding, note, ok, wrong
from burst.model.job_limits import JobLimits, parse_limits
from burst.model.lead import QueueView
from burst.model.ranks import format_idset

_SETUP = "run `burst setup` again, and flux config reload"


def check_queues(
    config: Mapping[str, Any],
    properties: Mapping[str, frozenset[int]],
    ranks: frozenset[int],
    intake: IntakeSettings,
) -> list[Finding]:
    """Check the queues of a configuration for ranks with these properties.

    `ranks` are all that get jobs, online or not; excluded ranks do not.
    """
    site = site_tables(config, {"queues": _ours(intake)})
    found = [*_check_nodes(site, properties, ranks, intake)]
    found += _check_burst_jobs(config, site)
    found += _check_moves(config, site)
    found += _check_our_limits(config, site, intake)
    return found


def check_offer_limits(
    providers: Sequence[ProviderFacts], limits: Mapping[str, JobLimits]
) -> Iterator[Finding]:
    """Report offers that are larger than any job may be."""
    most = [each.most_nodes for each in limits.values()]
    if not most or not all(most):
        return
    for facts in providers:
        offers = () if isinstance(facts.offers, ReadFailure) else facts.offers
        large = [o for o in offers if o.max_nodes > max(most)]
        for offer in large:
            yield note(
                f"{facts.name}/{offer.name} sells up to {offer.max_nodes} nodes, and no"
                f" queue lets a job have more than {max(most)}",
                "that is right if jobs share a burst; else raise job-size.max.nnodes"
                " under [policy.limits], flux-config-policy(5)",
            )


def check_queue_states(
    queues: Mapping[str, QueueView], intake: IntakeSettings
) -> Iterator[Finding]:
    """Report queues that start or take no jobs, so that no nodes are rented for them.

    In mode queue, burst jobs wait in a queue that is kept stopped, and the daemon
    starts the other one, so these two are reported only if they are disabled.
    """
    kept = (intake.queue, intake.ready) if intake.mode == "queue" else ()
    for name, queue in sorted(queues.items()):
        title = f"queue {name}" if name else "the queue of this instance"
        why = f" ({queue.reason})" if queue.reason else ""
        which = f" {name}" if name else ""
        # `check_scheduler` says what that means, and what to do.
        if not queue.started and not queue.is_offline and name not in kept:
            yield note(
                f"{title} is stopped{why}: Flux starts no job of it, and no nodes are"
                " rented for one",
                f"flux queue start{which}",
            )
        if not queue.enabled:
            yield note(
                f"{title} is disabled{why}: it takes no job, and no nodes are rented"
                " for those that it has",
                f"flux queue enable{which}",
            )


def _check_nodes(
    site: SiteTables,
    properties: Mapping[str, frozenset[int]],
    ranks: frozenset[int],
    intake: IntakeSettings,
) -> Iterator[Finding]:
    lent = properties.get(LENT, frozenset())
    for name, table in site.queues.items():
        required = table.get("requires", ())
        matched = _matching(required, properties, ranks)
        words = " and ".join(str(each) for each in required)
        if not matched:
            yield wrong(
                f"queue {name} requires {words}, and no node that runs jobs has that:"
                " Flux refuses its jobs as unsatisfiable",
                "give nodes the property, in [[resource.config]] or R, and restart the"
                " lead; or correct `requires` of the queue",
            )
        elif not matched - lent:
            yield note(
                f"queue {name} requires {words}, which lent nodes alone have",
                "jobs in it wait for a burst, and block the queue, unless they burst",
            )
        elif required and matched & lent and not intake.any_job:
            yield wrong(
                f"queue {name} requires {words}, which the lent ranks"
                f" {format_idset(matched & lent)} have, too: jobs that do not burst may"
                " run there",
                "take the property from the rank slots: burst jobs of the queue get"
                " lent nodes without it; or set [intake] any_job = true",
            )
        else:
            limits = str(parse_limits({"queues": {name: table}})[name])
            rest = f"; {limits}" if limits else ""
            where = format_idset(matched - lent)
            yield ok(f"queue {name}: jobs run on ranks {where}{rest}")


def _check_burst_jobs(config: Mapping[str, Any], site: SiteTables) -> Iterator[Finding]:
    """Find queues of the site whose burst jobs could not get lent nodes."""
    names = [
        name
        for name, table in site.queues.items()
        if table.get("requires") and table["requires"] != [f"^{LENT}"]
    ]
    if not names:
        return
    queues = ", ".join(names)
    if frobnicator_table(config) is None:
        yield note(
            f"burst jobs in queue {queues} get no lent nodes, which lack what the queue"
            " requires: the burst frobnicator, which lets them, is not loaded",
            # Not by a reload: Fluxion denies jobs of queues that come with it.
            "`burst setup` installs it; restart Flux once `burst lead check` says that"
            " this is safe",
        )
    elif not comes_after_constraints(config):
        yield wrong(
            f"burst jobs in queue {queues} get no lent nodes, which lack what the queue"
            " requires: the burst frobnicator stands before `constraints` in"
            " [ingest.frobnicator] plugins",
            f"{_SETUP}; where the list is the site's, put it last there",
        )


def _check_moves(config: Mapping[str, Any], site: SiteTables) -> Iterator[Finding]:
    """Find queues whose jobs users can no longer move to another queue.

    Flux moves a job only if its constraint is exactly that of its queue (the job
    manager's queue.c), and the frobnicator adds one to jobs that it keeps off lent
    nodes.
    """
    table = frobnicator_table(config)
    if table is None or table.get("any_job"):
        return
    guests = parse_access(config).allow_guest_user and not table.get("share_users")
    confined = guests and table.get("mode", "hold") != "scheduler"
    names = [
        name
        for name, queue in site.queues.items()
        if confined or not queue.get("requires")
    ]
    if not names or len(site.queues) == 1:
        return
    yield note(
        f"flux update JOB queue=NAME is refused for jobs of queue {', '.join(names)}:"
        f" each has a constraint that keeps it off nodes which are lent"
        f"{' to others' if confined else ''}, and Flux moves none that has one",
        "have users cancel such a job and submit it again; or use mode scheduler"
        if confined
        else f'write requires = ["^{LENT}"] there: all own nodes meet it',
    )


def _check_our_limits(
    config: Mapping[str, Any], site: SiteTables, intake: IntakeSettings
) -> Iterator[Finding]:
    """Find queues in which burst jobs have other limits than in the default queue."""
    if intake.mode != "queue" or not site.default_queue:
        return
    limits = parse_limits(config)
    for name in (intake.queue, intake.ready):
        wanted, its = limits[site.default_queue], limits.get(name)
        if its is not None and its != wanted:
            yield wrong(
                f"queue {name} has other limits ({str(its) or 'none'}) than queue"
                f" {site.default_queue} ({str(wanted) or 'none'}), whose burst jobs it"
                " takes",
                _SETUP,
            )


def _matching(
    required: Collection[Any],
    properties: Mapping[str, frozenset[int]],
    ranks: frozenset[int],
) -> frozenset[int]:
    """Return the ranks that have all of these properties; `^NAME`: that lack NAME."""
    matched = ranks
    for each in map(str, required):
        having = properties.get(each.removeprefix("^"), frozenset())
        matched = matched - having if each.startswith("^") else matched & having
    return matched


def _ours(intake: IntakeSettings) -> dict[str, Any]:
    return {intake.queue: {}, intake.ready: {}} if intake.mode == "queue" else {}
