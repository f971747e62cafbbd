# SPDX-License-Identifier: MIT
"""`burst cost` as the service answers it, budgets in `status`, and the log."""

import logging
from typing import TYPE_CHECKING, cast

import pytest

from burst.errors import BurstError
from burst.model.accounting import AccountingFacts, UsageWeights
from burst.model.banks import NOT_VERIFIED
from burst.model.burst import State
from burst.model.jobid import format_f58
from burst.runtime.engine_config import make_config
from burst.runtime.service_answers import plan
from burst.runtime.side_threads import SideThreads
from tests.builders import but, identity, settings, whole
from tests.runtime.asking import GUEST, Asking

if TYPE_CHECKING:
    from burst.runtime.bank_reader import BankReader

LENT = whole(3, constraint='{"properties":["burst"]}')
HIS = {"limit": 50_000, "match": {"user": str(GUEST)}}
MONEY = {
    "prices": {"local.nodes": 3600.0},
    "deadlines": {"run": "1h"},
    "budget": [{"limit": 9_000}, HIS],
}


def spending(**changes):
    """A guest's job on a burst, at one unit for a node and second."""
    found = Asking(**MONEY | changes)
    found.sim.lead.submit(LENT, userid=GUEST, duration=60.0)
    found.sim.until(found.sim.in_state(State.ONLINE))
    return found


@pytest.fixture
def asking():
    return spending()


def test_a_guest_sees_his_part_and_his_budgets():
    asking = spending(budget=[{"limit": 100_000}, HIS])
    asking.sim.lead.submit(LENT, userid=7, duration=60.0)
    asking.sim.tick(3)
    all_ = asking.ask("cost", by="job")
    his = asking.ask("cost", guest=True, by="job")
    assert len(all_["rows"]) == 2
    (row,) = his["rows"]
    assert row in all_["rows"]
    assert [b["budget"] for b in his["budgets"]] == [f"user {GUEST}, per month"]
    assert asking.ask("status", guest=True)["budgets"] == []


class Accounts:
    """A BankReader whose flux-accounting has weights and no banks."""

    def current(self):
        """Return that no bank is known."""
        return NOT_VERIFIED

    def facts(self):
        """Return the weights."""
        return AccountingFacts(weights=UsageWeights())


def test_it_is_told_how_lent_nodes_count():
    asking = Asking()
    asking.sim.beside = SideThreads(banks=cast("BankReader", Accounts()))
    asking.sim.boot()
    asking.sim.tick(2)
    asking.sim.joins = False
    job = asking.sim.lead.submit(LENT, userid=GUEST)
    view = asking.sim.engine.snapshot.world
    assert view.lead is not None
    lead = but(view.lead, jobs=dict(asking.sim.lead.jobs))
    world = but(view, lead=lead)
    snapshot = but(asking.sim.engine.snapshot, world=world)
    (planned,) = plan(snapshot)["bursts"]
    asking.sim.tick(3)
    counted = "a node of local/nodes: counts in the usage as 1 per hour"
    assert planned["usage"].startswith(counted)
    (line,) = asking.ask("explain", guest=True, id=format_f58(job))["usage"]
    assert line.startswith(counted)
    assert asking.ask("cost", by="bank")["usage"] == [line]
    assert asking.ask("cost", guest=True, by="bank")["usage"] == [line]
    assert asking.send(GUEST + 1, "cost", {"by": "bank"})["usage"] == []
    assert asking.ask("cost", by="user")["usage"] == []
    assert "usage" in asking.ask("explain", id=format_f58(job))


@pytest.mark.parametrize("bad", [{"by": "moon"}, {"since": "yesterday"}])
def test_what_cannot_be_asked_is_refused(asking, bad):
    with pytest.raises(BurstError, match="cost: "):
        asking.ask("cost", **bad)


def test_a_status_tells_of_budgets_prices_and_times(asking):
    found = asking.ask("status")
    everything, _ = found["budgets"]
    assert everything["warns"]
    (provider,) = found["providers"]
    (offer,) = provider["offers"]
    assert (offer["price"], offer["priced_by"]) == (3600.0, "site")
    assert offer["online"]["bursts"] == 1


def test_a_budget_that_warns_is_logged_once(caplog):
    with caplog.at_level(logging.WARNING):
        found = Asking(**MONEY)
        found.sim.lead.submit(LENT, userid=7, duration=60.0)
        found.sim.until(found.sim.in_state(State.ONLINE))
        found.sim.tick(5)
    (told,) = [text for text in caplog.messages if text.startswith("budget ")]
    assert told.startswith("budget everything, per month: ")
    assert " of 9000.00 is settled or reserved, " in told


def test_a_budget_that_warns_already_is_logged_when_it_is_read(caplog):
    found = Asking(**MONEY | {"budget": []})
    found.sim.lead.submit(LENT, userid=7, duration=60.0)
    found.sim.until(found.sim.in_state(State.ONLINE))
    budgets = [{"limit": 9_000}, {"limit": 100_000, "per": "week"}]
    changed = settings(**found.sim.tables | {"budget": budgets})
    with caplog.at_level(logging.WARNING):
        for _ in range(2):  # the second time it is known
            found.sim.change(settings=changed)
            found.sim.tick(2)
    told = [text for text in caplog.messages if text.startswith("budget ")]
    assert len(told) == 1
    assert told[0].startswith("budget everything, per month: ")
    found.sim.tables = found.sim.tables | {"budget": budgets}
    caplog.clear()
    with caplog.at_level(logging.WARNING):
        found.sim.boot()  # a daemon that starts again
    assert [text.partition(":")[0] for text in caplog.messages] == [
        "budget everything, per month"
    ]


def test_a_budget_that_is_hardly_meant_is_logged_when_settings_are_read(caplog):
    budgets = [{"limit": 0}, {"limit": 1, "match": {"user": "zz-none"}}]
    with caplog.at_level(logging.WARNING):
        make_config(lambda *_: {}, identity(), settings(budget=budgets))
    assert [text.partition(":")[0] for text in caplog.messages] == [
        "budget everything, per month",
        "budget user zz-none, per month",
    ]


def test_the_plan_tells_until_when_ranks_are_held_if_that_is_known(asking):
    spans = plan(asking.sim.engine.snapshot)["timeline"]
    held = {span["holder"]: span["until"] for span in spans}
    (job,) = asking.sim.lead.jobs.values()
    assert held["burst"] > job.t_start + 60.0, "it is taken down then"
    assert held["free"] is None
