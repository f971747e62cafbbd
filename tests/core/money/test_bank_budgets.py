# SPDX-License-Identifier: MIT
"""What is bought for jobs by their bank, verified by flux-accounting or not."""

import pytest

from burst.core.money.ledger import Payer
from burst.model.banks import Associations, Banks
from burst.model.burst import State
from burst.model.reason import Reason
from burst.runtime.side_threads import SideThreads
from tests.builders import T0
from tests.core.money.money_sim import BOUND, DEADLINES, PROVISION, refusal, submit
from tests.fakes import KnownBanks
from tests.sim import Sim

ANN, BEN = 1, 2
ASSOCIATIONS = Associations(
    {ANN: frozenset({"physics", "maths"}), BEN: frozenset({"maths"})},
    {ANN: "physics", BEN: "maths"},
)
VERIFIED = Banks(ASSOCIATIONS)
FREE_MONEY = 1e9


def sim(banks, *budgets, **tables):
    """Where a node costs one unit for a second."""
    tables |= {"budget": [{"limit": FREE_MONEY}, *budgets], "deadlines": DEADLINES}
    its = Sim(provision=PROVISION, prices={"local.nodes": 3600.0}, **tables)
    its.beside = SideThreads(banks=KnownBanks(banks))
    its.boot()
    return its


def of_bank(name, limit):
    return {"limit": limit, "match": {"bank": name}}


def payers(its):
    entries = its.records.entries.values()
    return {payer for entry in entries for payer in entry.payers}


@pytest.mark.parametrize(("user", "whose"), [(BEN, "maths"), (7, "none")])
def test_a_bank_that_is_not_the_user_s_gets_no_burst_and_the_user_is_told(user, whose):
    its = sim(VERIFIED)
    job = submit(its, userid=user, bank="physics")
    its.tick(5)
    assert its.bursts == []
    assert its.decision(job).reason is Reason.BANK_REFUSED
    assert its.lead.memos[job]["state"] == "waiting"
    assert its.told(job) == (
        f"flux-accounting does not let its user use bank physics (allowed: {whose}),"
        " so no nodes are bought for it; submit it with another --bank"
    )


def test_a_default_bank_s_budget_holds_for_jobs_that_name_none():
    its = sim(VERIFIED, of_bank("physics", BOUND), of_bank("maths", BOUND + 100))
    ann, ben = submit(its, userid=ANN), submit(its, userid=BEN)
    its.tick(3)
    assert refusal(its, ann).facts["budget"] == "bank physics, per month"
    assert [burst.jobs for burst in its.bursts] == [{ben}]


def test_what_starts_by_itself_on_lent_nodes_is_of_no_bank_that_it_may_not_use():
    its = sim(VERIFIED)
    first = submit(its, nodes=4, userid=BEN)
    its.until(its.in_state(State.ONLINE))
    job = submit(its, nodes=4, userid=BEN, bank="physics")
    its.tick(3)
    its.lead.change(job, urgency=20)  # by which it is its user's affair again
    its.tick()
    its.lead.finish(first)
    its.until(lambda: its.lead.running() == [job])
    its.tick()
    assert payers(its) == {Payer(BEN, "maths"), Payer(BEN)}


@pytest.mark.parametrize(
    ("bank", "budgets", "waits"),
    [("maths", (), True), ("", (of_bank("maths", 1e9),), True), ("", (), False)],
)
def test_jobs_wait_for_the_first_answer_where_it_matters(bank, budgets, waits):
    its = sim(Banks(awaited_until=T0 + 8), *budgets)
    job = submit(its, userid=BEN, bank=bank)
    its.tick(3)
    assert (its.bursts == []) is waits
    if waits:
        assert its.decision(job).reason is Reason.BANK_UNREAD
        assert its.decision(job).text().endswith("at the latest")
        its.until(lambda: its.now >= T0 + 8)
        its.tick()
        assert its.bursts
