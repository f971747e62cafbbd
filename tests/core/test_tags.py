# SPDX-License-Identifier: MIT
"""Bursts that are requested with a tag, and the jobs that run on them."""

import pytest

from burst.core.burst_requests import request_isolated
from burst.core.cost import idle_limit
from burst.core.plan.promises import RESERVATION_S
from burst.core.records import Transaction
from burst.core.tagged_jobs import IsolatedJobs
from burst.model.burst import Isolated, State, Tag
from burst.model.jobid import JobId
from burst.model.lead import JobState
from burst.model.reason import Reason
from burst.model.record import decode_record, encode_record
from burst.model.request import BurstPreferences
from burst.model.shape import Shape
from tests.builders import NODE, but, identity, settings, whole
from tests.core.isolation import BOTH
from tests.core.tags import OURS, request, submit
from tests.fakes import FakeLead
from tests.sim import Sim

BIG = Shape(8, 1)
"""No slot has such nodes unless a test says so."""


def ran_on(sim: Sim, number: int) -> frozenset[int]:
    return sim.lead.jobs[JobId(number)].ranks


def online(sim: Sim) -> bool:
    return all(burst.state is State.ONLINE for burst in sim.bursts)


def test_a_job_is_given_a_burst_with_its_tag() -> None:
    sim = Sim()
    other = request(sim, Tag("sweep/b", 100))
    own = request(sim, OURS)
    request(sim, None)
    sim.until(lambda: online(sim))
    submit(sim, 7, "sweep/a")
    sim.tick()
    records = sim.records
    assert JobId(7) in records.bursts[own].jobs
    assert not records.bursts[other].jobs
    sim.until(lambda: bool(ran_on(sim, 7)))
    assert records.bursts[own].lease.tag == OURS


def test_nobody_waits_for_its_end_for_longer_than_for_any_that_is_not_known() -> None:
    sim = Sim()
    own = request(sim, OURS)
    sim.until(lambda: online(sim))
    all_nodes = sim.submit_lent(8)
    behind = sim.submit_lent(4)
    sim.tick(2)
    assert "at an unknown time" in str(sim.lead.memos[all_nodes]["why"])
    assert behind not in sim.lead.running()
    sim.tick(seconds=RESERVATION_S)
    sim.until(lambda: behind in sim.lead.running())
    assert not ran_on(sim, behind) & set(sim.records.bursts[own].lease.ranks)
    assert sim.records.bursts[own].state is State.ONLINE


def test_nothing_is_bought_for_a_job_with_a_tag() -> None:
    sim = Sim()
    submit(sim, 7, "sweep/a")
    sim.tick(20)
    assert sim.bursts == []
    decision = sim.decision(JobId(7))
    assert decision.text() == (
        "it has tag sweep/a, and waits for nodes that are requested with this tag"
    )
    assert decision.next_step().startswith("its user or a program of theirs")
    # Not on own nodes either, where it would not be what was requested.
    submit(sim, 8, "sweep/a", nodes=1)
    sim.tick(20)
    assert not ran_on(sim, 8)


def test_a_job_that_needs_more_nodes_than_its_tag_has_is_told_how_many() -> None:
    """Nodes that it can never have are left out: of isolated bursts, or that go."""
    sim = Sim(modes=BOTH)
    request(sim, OURS)
    gone = request(sim, OURS)
    alone = request_isolated(2, "", Isolated(kind="interactive"))
    assert sim.request(but(alone, tag=OURS))
    submit(sim, 7, OURS.name, nodes=5)
    sim.tick(3)
    told = sim.decision(JobId(7)).text()
    assert told.endswith("with this tag: it has 4, and 5 are needed")
    sim.take_down(gone)
    sim.tick()
    assert sim.records.bursts[gone].live
    assert sim.decision(JobId(7)).text().endswith(": it has 2, and 5 are needed")


@pytest.mark.parametrize("has_nodes", [False, True])
def test_a_job_for_whose_tag_no_node_could_be_large_enough_fails(has_nodes):
    """As one without a tag; its user would pay for nodes that it never uses."""
    sim = Sim(intake={"mode": "scheduler"})
    if has_nodes:
        request(sim, OURS)
    submit(sim, 7, OURS.name, cores=NODE.cores + 1)
    sim.tick(3)
    (failed,) = sim.lead.log[-1:]
    assert failed == (
        "fail",
        7,
        "no rank slot has a node large enough for it (5 cores)",
    )


def test_a_job_that_needs_larger_nodes_than_its_tag_has_waits() -> None:
    known = identity()
    sim = Sim(FakeLead(but(known, shapes=(*known.shapes[:6], *[BIG] * 4))))
    submit(sim, 7, OURS.name, nodes=1, cores=BIG.cores)
    sim.tick(3)
    assert sim.told(JobId(7)).endswith("with this tag")
    request(sim, OURS)
    sim.tick()
    told = sim.decision(JobId(7)).text()
    assert told.endswith("with this tag: none that it has is large enough (8 cores)")


def test_a_job_for_whose_tag_an_isolated_burst_could_be_requested_waits() -> None:
    sim = Sim(modes=BOTH)
    sim.fake_settings = but(sim.fake_settings, shape=BIG)
    sim.boot()
    submit(sim, 7, OURS.name, nodes=1, cores=BIG.cores)
    sim.tick()
    assert sim.decision(JobId(7)).reason is Reason.TAGGED
    sim.tick(3)
    assert sim.decision(JobId(7)).reason is Reason.TAGGED


@pytest.mark.parametrize("disabled", [False, True])
def test_a_job_for_an_isolated_burst_waits_while_nothing_is_offered(disabled):
    """Offers come back, also after a reload; a job that has failed does not."""
    sim = Sim(modes=BOTH, intake={"mode": "scheduler"})
    sim.fake_settings = but(sim.fake_settings, shape=BIG)
    sim.boot()
    sim.tick(2)
    submit(sim, 7, OURS.name, nodes=1, cores=BIG.cores)
    sim.tick(2)
    if disabled:
        sim.enabled = False
        sim.change()
    else:
        sim.provider.offers = lambda: ()  # type: ignore[method-assign]
    sim.tick(200)
    assert sim.decision(JobId(7)).reason is Reason.TAGGED
    assert not [entry for entry in sim.lead.log if entry[0] == "fail"]


@pytest.mark.parametrize(
    ("tag", "nodes", "cores"), [(OURS.name, 2, NODE.cores + 1), ("", 20, 1)]
)
def test_a_job_that_is_too_large_waits_while_a_provider_is_disabled(tag, nodes, cores):
    """It may be enabled again, and have more; a job that has failed is lost."""
    tables = {"local": {"type": "fake"}, "far": {"type": "fake", "enabled": False}}
    sim = Sim(total=8, intake={"mode": "scheduler"}, providers=tables)
    submit(sim, 7, tag, nodes, cores=cores)
    sim.tick(3)
    assert sim.lead.jobs[JobId(7)].state is JobState.SCHED
    told = [refusal.reason for refusal in sim.decision(JobId(7)).refusals]
    assert tag or Reason.NOT_ENABLED in told
    del tables["far"]
    sim.boot()
    sim.tick(3)
    assert sim.lead.log[-1][:2] == ("fail", 7)


@pytest.mark.parametrize(
    ("slot", "fails"), [("burst-0", True), ("burst-1", False), ("burst-9", False)]
)
def test_a_constraint_leaves_the_nodes_of_some_slots_alone(slot, fails):
    """A constraint that admits no slot may name one that is added later."""
    known = identity()
    lead = FakeLead(but(known, shapes=(*known.shapes[:6], *[BIG] * 4)))
    sim = Sim(lead, intake={"mode": "scheduler"})
    only = f'{{"hostlist":["{slot}-[0-3]"]}}'
    submit(sim, 7, OURS.name, nodes=1, cores=BIG.cores, constraint=only)
    sim.tick(3)
    failed = [entry[1] for entry in lead.log if entry[0] == "fail"]
    assert failed == ([7] if fails else [])
    assert fails or sim.decision(JobId(7)).reason is Reason.TAGGED


def test_a_burst_with_a_tag_is_kept_though_it_is_idle() -> None:
    sim = Sim(deadlines={"idle": "1m"})
    own = request(sim, OURS)
    plain = request(sim, None)
    sim.until(lambda: online(sim))
    sim.tick(100)
    records = sim.records
    assert records.bursts[own].state is State.ONLINE
    assert records.bursts[plain].state is not State.ONLINE
    assert idle_limit(records.bursts[own], settings()) > 1e9
    sim.take_down(own)
    sim.until(lambda: not sim.records.live)


def test_a_record_of_a_version_that_knew_tags_of_ensembles_alone() -> None:
    sim = Sim()
    request(sim, OURS)
    text = encode_record(sim.burst)
    assert '"member":{"name":"sweep/a","userid":100}' in text
    assert decode_record(text).lease.tag == OURS


def test_a_job_that_has_an_isolated_burst_already_gets_no_other() -> None:
    """The decisions of the last tick do not tell of one that was made since."""
    sim = Sim(modes=BOTH)
    wish = BurstPreferences(tag="night", urgency=16)
    held = {"urgency": 0, "held_at_submit": True, "preferences": wish}
    number = sim.lead.submit(whole(1), userid=0, **held)
    sim.tick(2)
    seen = sim.engine.snapshot
    jobs = IsolatedJobs(tag=Tag("night", 0), nodes=4, provider="local")
    of_seen = seen.world, seen.settings, seen.now
    first = Transaction(seen.records, *of_seen)
    assert jobs.start(first, [number]) == ""
    assert len(first.live) == 1
    again = Transaction(first.result(), *of_seen)
    assert jobs.start(again, [number]) == ""
    assert again.bursts == first.bursts
    assert again.actions == []
