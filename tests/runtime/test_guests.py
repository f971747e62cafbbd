# SPDX-License-Identifier: MIT
"""What guests see of the service, and what they may do there."""

import json
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from burst.errors import (
    BurstError,
    Denied,
    InsufficientCapacity,
    LeadError,
    Refused,
    SpecRefused,
)
from burst.lead import ServiceRequest
from burst.model.burst import State
from burst.model.jobid import format_f58
from burst.model.lead import GuestAccess
from burst.runtime.service_answers import describe_process
from burst.runtime.service_api import ServiceApi
from tests.builders import identity, whole
from tests.fakes import FakeLead
from tests.runtime.asking import GUEST, Asking
from tests.runtime.hostile_guests import METHODS
from tests.sim import Sim
from tests.support.waiting import HANG_S

OTHER = GUEST + 1
NO_MONEY = {"limit": 0.0, "match": {"user": GUEST}}
SECRET = "project fluffy-bunny-7: quota of account 0x99"


def allowed(**tables):
    """A site where guests may request bursts of three nodes."""
    return Asking(guests={"request_nodes": 3}, **tables)


def test_slots_say_that_they_are_leased_and_to_guests_not_to_whom():
    asking = Asking()
    asking.sim.lead.submit(whole(4), userid=OTHER)
    asking.sim.lead.submit(whole(4), userid=GUEST)
    asking.tick()
    other, own = sorted(asking.sim.bursts, key=lambda burst: burst.lease.userids)[::-1]
    assert {s["burst"] for s in asking.ask("status")["slots"]} == {other.id, own.id}
    slots = asking.ask("status", guest=True)["slots"]
    assert [slot["state"] for slot in slots] == ["leased", "leased"]
    assert {slot["burst"] for slot in slots} == {own.id, ""}
    # Nor is the settings file named to them.
    assert asking.ask("ping")["config"] == "/site/burst.toml"
    assert asking.ask("ping", guest=True)["config"] == ""
    assert asking.ask("status", guest=True)["daemon"]["config"] == ""


@pytest.mark.parametrize(
    ("error", "where", "words"),
    [
        (Refused(SECRET), "disabled", "the owner of the instance sees why"),
        (SpecRefused(SECRET, by_rule=True), "refused", "of the instance sees why"),
        (InsufficientCapacity(SECRET), "set_aside_why", "could not be provided"),
    ],
)
def test_guests_are_not_told_what_a_provider_says_of_its_account(error, where, words):
    asking = Asking()
    asking.sim.provider.next_provision_error = error
    job = asking.sim.lead.submit(whole(4), userid=GUEST)
    asking.sim.tick(4)
    name = format_f58(job)

    assert SECRET in json.dumps(asking.ask("explain", id=name))
    (told,) = asking.ask("status")["providers"]
    assert SECRET in str({**told["offers"][0], **told}[where])
    told = asking.ask("explain", guest=True, id=name)["refusals"]
    assert words in json.dumps(told)
    for method in ("status", "explain", "report", "cost"):
        told = asking.ask(method, guest=True, id=name, jobs=9)
        assert SECRET not in json.dumps(told), method


def without_secret(asking, burst, job):
    """The owner reads it, the guest whose burst it is in no answer."""
    assert SECRET in json.dumps(asking.ask("explain", id=burst))
    for name in (burst, format_f58(job)):
        for method in ("status", "explain", "report", "cost"):
            told = asking.ask(method, guest=True, id=name, jobs=9)
            assert SECRET not in json.dumps(told), method


def test_guests_are_not_told_why_a_growth_failed():
    asking = Asking()
    sim = asking.sim
    job = sim.submit_lent(1, userid=GUEST)
    sim.until(lambda: job in sim.lead.running())
    sim.provider.next_resize_error = InsufficientCapacity(SECRET)
    asking.ask("resize", burst=sim.burst.id, nodes=3)
    for event in ("shrink", "shrunk"):
        sim.until(lambda name=event: name in sim.names())
        without_secret(asking, sim.burst.id, job)


def test_guests_are_not_told_where_a_burst_is():
    asking = Asking()
    sim = asking.sim
    sim.change(places={"local": "project red-fox-1"})
    job = sim.submit_lent(1, userid=GUEST)
    sim.until(lambda: job in sim.lead.running())
    sim.change(places={"local": SECRET})
    sim.tick(2)
    assert sim.burst.quarantined
    without_secret(asking, sim.burst.id, job)
    told = asking.ask("status", guest=True)["bursts"]
    assert "the owner of the instance sees why" in json.dumps(told)


def test_memos_of_guests_jobs_have_none_of_it_either():
    access = GuestAccess(allow_guest_user=True)
    # The user of the job owns the instance himself, or another does.
    for owner, told in (GUEST, True), (0, False):
        sim = Sim.at_rest(FakeLead(known=identity(access=access, owner_userid=owner)))
        sim.provider.next_provision_error = Refused(SECRET)
        job = sim.lead.submit(whole(4), userid=GUEST)
        sim.tick(4)
        memo = json.dumps(sim.lead.memos[job])
        assert "disabled" in memo
        assert (SECRET in memo) is told


def test_a_burst_that_users_share_shows_each_his_own_jobs():
    asking = Asking(plan={"share_users": True}, deadlines={"idle": "1h"})
    own = asking.sim.submit_lent(4, userid=GUEST)
    asking.sim.until(lambda: own in asking.sim.lead.running())
    asking.sim.lead.finish(own)
    other = asking.sim.submit_lent(4, userid=OTHER)
    asking.sim.until(lambda: other in asking.sim.lead.running())
    name = asking.sim.burst.id

    assert asking.ask("explain", id=name)["jobs"] == [format_f58(other)]
    for userid, its, not_its in (GUEST, own, other), (OTHER, other, own):
        told = [
            asking.send(userid, "explain", {"id": name}),
            asking.send(userid, "status", {}),
            asking.send(userid, "explain", {"id": format_f58(its)}),
            asking.send(userid, "report", {}),
        ]
        text = json.dumps(told, ensure_ascii=False)
        assert name in text
        assert format_f58(its) in text
        assert format_f58(not_its) not in text


def test_a_guest_is_told_of_their_job_also_once_the_lead_has_forgotten_it():
    asking = Asking()
    sim = asking.sim
    job = sim.lead.submit(whole(4), userid=GUEST)
    sim.until(lambda: job in sim.lead.running())
    sim.tick()
    assert asking.ask("status", guest=True)["pending"] == 0
    sim.lead.finish(job)
    sim.tick(2)
    del sim.lead.jobs[job]
    sim.tick()
    told = asking.send(GUEST, "explain", {"id": format_f58(job)})
    assert [burst["id"] for burst in told["bursts"]] == [sim.bursts[0].id]
    with pytest.raises(BurstError, match="not a job of yours"):
        asking.send(OTHER, "explain", {"id": format_f58(job)})


def test_guests_request_no_bursts_unless_the_site_allows_it():
    asking = Asking()
    with pytest.raises(Denied, match="users may not request bursts on this instance"):
        asking.ask("request", guest=True, nodes=1)
    assert not asking.sim.bursts


def test_a_guest_takes_down_what_they_requested_and_nothing_else():
    asking = allowed()
    asking.sim.joins = False
    job = asking.sim.lead.submit(whole(3), userid=GUEST)
    asking.sim.tick(2)
    made_for_job = asking.sim.burst.id
    (his,) = asking.ask("request", guest=True, nodes=1)["bursts"]
    (owners,) = asking.ask("request", nodes=1)["bursts"]
    asking.sim.tick()
    states = {burst.id: burst.state for burst in asking.sim.bursts}

    for userid, burst in (
        (OTHER, his),
        (GUEST, made_for_job),
        (GUEST, owners),
        (GUEST, "burst-9-000000"),
        (GUEST, ""),
    ):
        with pytest.raises(Denied, match="that is not a burst that you requested"):
            asking.send(userid, "down", {"burst": burst, "force": True})
    assert {b.id: b.state for b in asking.sim.bursts}.items() >= states.items()
    assert job in next(b for b in asking.sim.bursts if b.id == made_for_job).jobs

    assert asking.ask("down", guest=True, burst=his, note="\x1b[2J") == {"burst": his}
    (ended,) = (b for b in asking.sim.bursts if b.id == his)
    assert ended.state in (State.DRAIN, State.REAP, State.INACTIVE)
    assert "\x1b" not in str(ended.events)


@pytest.mark.parametrize(
    ("tables", "nodes", "why"),
    [
        ({}, 4, "may have 3 nodes in all; you have 0, and ask for 4 more"),
        ({}, 0, "0 nodes cannot be requested"),
        ({}, -7, "-7 nodes cannot be requested"),
        ({"limits": {"max_nodes_per_user": 2}}, 3, "limit"),
        ({"limits": {"max_nodes": 2}}, 3, "limit"),
        ({"budget": [NO_MONEY]}, 3, "the limit of a budget is lower"),
    ],
)
def test_what_a_guest_requests_is_within_limits_and_budgets(tables, nodes, why):
    asking = allowed(prices={"local.nodes": 1.0}, **tables)
    with pytest.raises((LeadError, BurstError), match=why):
        asking.ask("request", guest=True, nodes=nodes)
    assert not asking.sim.bursts


def test_what_a_guest_requests_twice_before_a_tick_is_within_the_limit_together():
    asking = allowed()
    both = threading.Barrier(3)

    def wake() -> None:
        both.wait(HANG_S)

    served_by = describe_process(asking.sim.now, "/site/burst.toml")
    api = ServiceApi(lambda: asking.sim.engine, wake, asking.reload, served_by)
    request = ServiceRequest("request", {"nodes": 2}, GUEST, False)
    with ThreadPoolExecutor(2) as threads:
        asked = [threads.submit(api.answer, request) for _ in range(2)]
        both.wait(HANG_S)
        asking.tick()
        errors = [str(error) for each in asked if (error := each.exception(HANG_S))]
    assert len(errors) == 1
    assert "you have 2, and ask for 2 more" in errors[0]
    assert sum(burst.lease.nodes for burst in asking.sim.bursts) == 2


@pytest.mark.parametrize(
    "more",
    [
        {"isolated": {"kind": "command", "command": ["id"]}},
        {"isolated": {"kind": "service"}},
        {"slot": "burst-0-[0-3]"},
        {"tag": "night"},
        {"offer": "nodes"},
        {"image": "app:2"},
    ],
)
def test_a_guest_runs_nothing_as_the_owner_and_chooses_no_slot_tag_or_offer(more):
    asking = allowed()
    with pytest.raises(Denied, match="only the instance owner may do that"):
        asking.ask("request", guest=True, nodes=1, **more)
    assert not asking.sim.bursts


NESTED: dict[str, object] = {}
for _ in range(200):
    NESTED = {"id": NESTED, "tables": NESTED}
HOSTILE = [
    {},
    {"id": None, "ids": 7, "burst": [], "nodes": "many", "jobs": "x", "by": {}},
    {"id": "ƒ" + "z" * 100_000, "burst": "\x00" * 300, "provider": "🌊" * 64},
    {"ids": ["ƒ1"] * 20_000, "burst": "../../etc/passwd", "nodes": 2**70},
    {"id": "1", "nodes": -(2**31), "jobs": -1, "since": "9999-99-99", "by": "job"},
    {"userid": 0, "owner": True, "rolemask": 1, "all": True, "nodes": 1, "yes": True},
    {"id": "{0.__class__}", "burst": "%s%n", "provider": "'; --", "since": "x\n"},
    {"id": "ƒ\ud800", "isolated": {"kind": "job", "job": 1, "command": [""] * 999}},
    NESTED,
]


@pytest.mark.parametrize("method", METHODS)
def test_a_payload_of_any_shape_is_answered_and_changes_nothing(method):
    asking = SHARED
    before = asking.sim.records.bursts
    for number, payload in enumerate(HOSTILE):
        told = ""
        try:
            told = json.dumps(asking.send(GUEST, method, payload), ensure_ascii=False)
        except BurstError as error:
            told = str(error)
        assert len(told) < 20_000, number
        for found in (OTHERS_JOB, asking.sim.burst.id, SECRET):
            assert found not in told, number
        asking.tick()
        after = asking.sim.records.bursts
        assert after.keys() == before.keys(), number


def _site():
    asking = Asking(deadlines={"idle": "10h"})
    job = asking.sim.lead.submit(whole(4), userid=OTHER)
    asking.sim.until(lambda: job in asking.sim.lead.running())
    return asking, format_f58(job)


SHARED, OTHERS_JOB = _site()


@pytest.mark.no_cover
def test_an_array_of_jobs_gets_its_user_no_more_than_their_budget():
    budget = [{"limit": 1.0, "match": {"user": GUEST}}]
    prices = {"local.nodes": 1.0}
    sim = Sim.at_rest(prices=prices, budget=budget, limits={"max_nodes": 100})
    for _ in range(700):
        sim.lead.submit(whole(1), userid=GUEST, duration=600.0)
    sim.tick(20)
    assert sim.live
    entries = sim.records.entries.values()
    assert 0 < sum(entry.reserved for entry in entries) <= 1_000_000
