# SPDX-License-Identifier: MIT
"""No burst is begun for a job that would pass a limit of flux-accounting."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from burst.core.jobs.association_limits import LimitsInUse, use_of
from burst.core.money.ledger import Payer, open_entry
from burst.core.records import Records
from burst.model.accounting import (
    AccountingFacts,
    AssociationLimits,
    AssociationUse,
    QueueLimits,
)
from burst.model.banks import Associations, Banks
from burst.model.lead import JobState, QueueView
from burst.model.reason import Reason
from burst.model.request import ResourceRequest
from burst.runtime.side_threads import SideThreads
from tests.builders import T0, but, job, view, whole, world
from tests.core import isolation
from tests.core.money.money_sim import submit
from tests.fakes import KnownBanks
from tests.lifecycles import LEASE
from tests.sim import Sim

ANN, BEN = 1, 2
BANKS = Banks(
    Associations({ANN: frozenset({"physics", "maths"}), BEN: frozenset({"physics"})})
)
NO_LIMITS = AssociationLimits()


def limited(queues=None, read_at=T0, queues_allowed=None, **limits):
    """Facts in which Ann is limited in physics, and nobody else anywhere."""
    associations = {
        (ANN, "physics"): AssociationLimits(
            queues=None if queues_allowed is None else frozenset(queues_allowed),
            **limits,
        ),
        (ANN, "maths"): NO_LIMITS,
        (BEN, "physics"): NO_LIMITS,
    }
    return AccountingFacts(
        read_at=read_at, associations=associations, queues=queues or {}
    )


def sim(facts, **tables):
    its = Sim(**tables)
    its.beside = SideThreads(banks=KnownBanks(BANKS, facts))
    its.boot()
    return its


@pytest.mark.parametrize(
    ("allowed", "known", "enters", "refused"),
    [
        ({"burst"}, ["burst", "burst-ready"], "burst-ready", True),
        ({"burst", "burst-ready"}, ["burst", "burst-ready"], "burst-ready", False),
        # The plugin lets all use a queue that it does not know, or whose users it does
        # not tell.
        ({"burst"}, ["burst"], "burst-ready", False),
        (None, ["burst", "burst-ready"], "burst-ready", False),
        ({"batch"}, ["burst"], "", False),
    ],
)
def test_a_job_that_would_start_in_a_queue_that_its_user_may_not_use(
    allowed, known, enters, refused
):
    facts = limited({name: QueueLimits() for name in known}, queues_allowed=allowed)
    asked = job(1, whole(1), userid=ANN, bank="physics", queue="burst")
    in_use = LimitsInUse(Records(), seen_with(facts, asked))
    why = in_use.decide(asked, asked.request, enters)
    assert (why and why.reason) is (Reason.QUEUE_REFUSED if refused else None)


def test_nothing_is_rented_for_a_job_that_could_not_leave_the_stopped_queue():
    queues = {"burst": QueueLimits(), "burst-ready": QueueLimits()}
    facts = limited(queues, queues_allowed={"burst"})
    its = sim(facts, intake={"mode": "queue"})
    its.lead.queues = {"burst": QueueView(started=False), "burst-ready": QueueView()}
    asked = its.lead.submit(whole(1), userid=ANN, bank="physics", queue="burst")
    its.tick(2)
    assert not its.bursts
    told = its.decision(asked)
    assert told.reason is Reason.QUEUE_REFUSED
    assert "flux account edit-user --queues" in told.next_step()
    its.beside.banks.known = limited(queues, queues_allowed=queues)
    its.until(lambda: any(asked in burst.jobs for burst in its.bursts))


def test_a_job_of_an_isolated_burst_stays_in_the_stopped_queue():
    queues = {"burst": QueueLimits(), "burst-ready": QueueLimits()}
    facts = limited(queues, queues_allowed={"burst"})
    its = sim(facts, intake={"mode": "queue"}, modes=isolation.BOTH)
    its.lead.queues = {"burst": QueueView(started=False), "burst-ready": QueueView()}
    isolation.submit(its, userid=ANN, bank="physics", queue="burst")
    its.until(isolation.over(its))
    assert its.burst.exit_status == 0


def test_one_of_two_jobs_that_are_together_over_max_nodes_gets_a_burst():
    its = sim(limited(max_nodes=4))
    first = submit(its, nodes=3, userid=ANN, bank="physics")
    second = submit(its, nodes=2, userid=ANN, bank="physics")
    its.tick(2)
    assert [burst.jobs for burst in its.bursts] == [{first}]
    why = its.decision(second)
    assert why.reason is Reason.ACCOUNTING_LIMIT
    assert why.text() == (
        "it waits for flux-accounting: limit max_nodes 4 of bank physics: 3 in use"
        " (including rented nodes), and 2 needed; no more nodes are rented for it"
    )
    memo = its.lead.memos[second]
    assert memo["state"] == "over-limit"
    assert memo["why"].startswith("it waits for flux-accounting: limit max_nodes 4")
    its.until(lambda: its.lead.running() == [first])
    its.tick(5)
    assert [burst.jobs for burst in its.bursts] == [{first}]


def test_it_gets_one_once_flux_accounting_says_that_there_is_room():
    its = sim(limited(max_nodes=4))
    first = submit(its, nodes=3, userid=ANN, bank="physics")
    second = submit(its, nodes=2, userid=ANN, bank="physics")
    its.until(lambda: its.lead.running() == [first])
    # It counts the job that runs now.
    by_queue = {"": AssociationUse(1, 3)}
    running = {"running": AssociationUse(1, 3, 12), "by_queue": by_queue}
    its.beside.banks.known = limited(max_nodes=4, read_at=its.now, **running)
    its.tick(3)
    assert its.decision(second).reason is Reason.ACCOUNTING_LIMIT
    its.lead.finish(first)
    its.tick(3)
    assert its.decision(second).reason is Reason.ACCOUNTING_LIMIT
    its.beside.banks.known = limited(max_nodes=4, read_at=its.now)
    its.until(lambda: its.lead.running() == [second])


@pytest.mark.parametrize(
    ("user", "bank", "facts"),
    [
        (BEN, "physics", limited(max_running_jobs=0)),
        (ANN, "maths", limited(max_running_jobs=0)),
        (ANN, "physics", AccountingFacts()),
    ],
    ids=["another user", "another bank", "none is known"],
)
def test_a_limit_is_of_one_user_in_one_bank(user, bank, facts):
    assert decide(facts, job(7, TWO, userid=user, bank=bank)) is None


def test_a_job_over_a_limit_still_starts_on_own_nodes():
    its = sim(limited(max_running_jobs=0))
    its.lead.submit(whole(2), userid=BEN, bank="physics")
    mine = its.lead.submit(whole(2), userid=ANN, bank="physics", duration=9.0)
    its.tick(2)
    assert its.decision(mine).reason is Reason.ACCOUNTING_LIMIT
    its.lead.finish(its.lead.running()[0])
    its.until(lambda: its.lead.running() == [mine])
    assert its.bursts == []


QUEUES = {"debug": QueueLimits(max_running_jobs=2, max_nodes_per_assoc=6)}


@pytest.mark.parametrize(
    ("limits", "queue", "why"),
    [
        ({"max_running_jobs": 1}, "", "max_running_jobs 1 of bank physics: 1 in use"),
        ({"max_nodes": 2}, "", "max_nodes 2 of bank physics: 1 in use"),
        ({"max_cores": 11}, "", "max_cores 11 of bank physics: 4 in use"),
        (
            {"by_queue": {"debug": AssociationUse(2, 2)}},
            "debug",
            "max_running_jobs 2 of queue debug: 2 in use",
        ),
        (
            {"by_queue": {"debug": AssociationUse(1, 5)}},
            "debug",
            "max_nodes_per_assoc 6 of queue debug: 5 in use",
        ),
        ({"max_running_jobs": 2, "max_nodes": 3, "max_cores": 12}, "debug", None),
        ({"by_queue": {"debug": AssociationUse(2, 2)}}, "other", None),
    ],
)
def test_each_limit_is_told_by_its_name(limits, queue, why):
    running = AssociationUse(1, 1, 4)
    facts = limited(QUEUES, running=running, **limits)
    found = decide(facts, job(7, TWO, userid=ANN, bank="physics", queue=queue))
    if why is None:
        assert found is None
    else:
        assert f"limit {why}" in found.text()


TWO = ResourceRequest(nodes=2, slots=2, cores_per_slot=4)


def seen_with(facts, *jobs):
    seen = world(view(*jobs))
    return but(seen, banks=BANKS, accounting=facts)


def decide(facts, asked, jobs=()):
    in_use = LimitsInUse(Records(), seen_with(facts, *jobs, asked))
    return in_use.decide(asked, asked.request)


def lost(nodes, *jobs, userid=ANN):
    """Records of which that of a burst cannot be read; its entry can."""
    payers = {each.id: Payer(userid) for each in jobs}
    hosts = tuple(f"burst-0-{n}" for n in range(nodes))
    lease = but(LEASE, hosts=hosts, userids=(userid,))
    entries = {lease.id: open_entry(lease, T0, payers, T0)}
    return Records(unreadable={f"burst/{lease.id}": "?"}, entries=entries)


def test_a_job_of_a_burst_whose_record_cannot_be_read_counts():
    its = job(3, TWO, userid=ANN, bank="physics")
    asked = job(7, TWO, userid=ANN, bank="physics")
    seen = seen_with(limited(max_nodes=3), its, asked)
    for records, counts in ((lost(2, its), True), (Records(), False)):
        found = LimitsInUse(records, seen).decide(asked, asked.request)
        assert (found is not None) is counts


@pytest.mark.parametrize(("userid", "used"), [(ANN, 5), (BEN, 2)])
def test_of_a_guests_burst_whose_record_cannot_be_read_all_nodes_count(userid, used):
    runs = job(3, TWO, userid=ANN, bank="physics", state=JobState.RUN)
    seen = seen_with(limited(max_nodes=9), runs)
    of_job = LimitsInUse(lost(5, runs, userid=userid), seen)
    assert of_job.nodes_in_use(ANN, "physics") == used
    requested = LimitsInUse(lost(3, userid=userid), seen)
    assert requested.nodes_in_use(ANN, "physics") == used


@pytest.mark.parametrize(
    ("state", "started", "counts"),
    [
        (JobState.RUN, T0 - 1, False),
        (JobState.RUN, T0 + 1, True),
        (JobState.RUN, 0.0, True),
        (JobState.CLEANUP, T0 + 1, True),
        (JobState.CLEANUP, T0 - 1, False),
        (JobState.INACTIVE, T0 + 1, False),
        (JobState.SCHED, 0.0, False),
        (JobState.DEPEND, 0.0, False),
    ],
)
def test_what_started_after_it_was_asked_counts(state, started, counts):
    other = job(3, TWO, userid=ANN, bank="physics", state=state, t_start=started)
    unread = job(2, None, userid=ANN, bank="physics")
    asked = job(7, TWO, userid=ANN, bank="physics")
    found = decide(limited(max_nodes=3), asked, [unread, other])
    assert (found is not None) is counts


@pytest.mark.parametrize(
    ("request_", "use"),
    [
        (TWO, AssociationUse(1, 2, 8)),
        (ResourceRequest(nodes=0, slots=6, cores_per_slot=2), AssociationUse(1, 1, 12)),
        (whole(3), AssociationUse(1, 3, 3)),
    ],
)
def test_a_job_counts_as_flux_accounting_counts_it(request_, use):
    assert use_of(request_) == use


@given(
    most=st.tuples(*[st.integers(0, 12)] * 3),
    running=st.tuples(*[st.integers(0, 3)] * 3),
    sizes=st.lists(st.integers(1, 4), max_size=8),
)
def test_what_is_let_through_is_never_over_a_limit(most, running, sizes):
    names = "max_running_jobs", "max_nodes", "max_cores"
    its = dict(zip(names, most, strict=True))
    limits = AssociationLimits(running=AssociationUse(*running), **its)
    mine = {"userid": ANN, "bank": "physics"}
    jobs = [job(n, whole(size), **mine) for n, size in enumerate(sizes, 1)]
    facts = AccountingFacts(associations={(ANN, "physics"): limits})
    in_use = LimitsInUse(Records(), seen_with(facts, *jobs))
    total = limits.running
    for each in jobs:
        with_it = total.plus(use_of(each.request))
        use = with_it.jobs, with_it.nodes, with_it.cores
        fits = all(used <= limit for used, limit in zip(use, most, strict=True))
        assert (in_use.decide(each, each.request) is None) is fits
        if fits:
            in_use.count(each, each.request)
            total = with_it


@pytest.mark.parametrize(
    ("dependencies", "facts", "why"),
    [
        (
            ("max-resources-user-limit",),
            limited(max_nodes=4),
            "limit max_nodes 4 of bank physics",
        ),
        (
            ("max-run-jobs-queue", "max-running-jobs-user-limit"),
            limited(QUEUES, max_running_jobs=5),
            "limit max_running_jobs 2 of queue debug, limit max_running_jobs 5 of bank"
            " physics",
        ),
        (
            ("max-resources-user-limit",),
            None,
            "limit max_nodes and max_cores of bank physics",
        ),
    ],
)
def test_a_job_that_flux_accounting_holds_is_told_for_which_limit(
    dependencies, facts, why
):
    its = sim(facts)
    held = submit(its, userid=ANN, bank="physics", queue="debug")
    its.lead.change(held, state=JobState.DEPEND, dependencies=dependencies)
    its.tick(3)
    assert its.bursts == []
    found = its.decision(held)
    assert found.reason is Reason.ACCOUNTING_HOLD
    assert found.text() == (
        f"it waits for flux-accounting: {why}; no nodes are rented for it meanwhile"
    )
    assert its.lead.memos[held]["state"] == "over-limit"


@pytest.mark.parametrize("mode", ["hold", "scheduler"])
def test_a_job_that_finds_no_nodes_keeps_the_limit_from_others_for_no_longer(mode):
    """It counts while it is judged, in the tick that finds no offer for it."""
    its = sim(limited(max_nodes=201), intake={"mode": mode})
    its.lead.submit(whole(200), userid=ANN, bank="physics", burstable=True)
    other = submit(its, nodes=2, userid=ANN, bank="physics")
    its.until(lambda: any(other in burst.jobs for burst in its.bursts), ticks=5)
