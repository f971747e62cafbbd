# SPDX-License-Identifier: MIT
"""Guests' jobs get no nodes on which they would fail, by whomever these were rented."""

import pytest

from burst.core import burst_requests
from burst.core.records import Records
from burst.core.tick import run_tick
from burst.errors import BurstError
from burst.model.lead import GuestAccess
from tests.builders import (
    NODE,
    T0,
    but,
    identity,
    job,
    offer,
    settings,
    slots,
    view,
    whole,
    world,
)
from tests.fakes import FakeLead
from tests.runtime.asking import GUEST, Asking
from tests.sim import Sim

OWNER = 1000
WITH_GUESTS = identity(access=GuestAccess(allow_guest_user=True), owner_userid=OWNER)


class Site(Sim):
    """A lead with guests and a provider that says whether their jobs can run there."""

    def __init__(self, guests, **tables):
        super().__init__(FakeLead(known=WITH_GUESTS, confines=True), **tables)
        self.fake_settings = but(self.fake_settings, guests=guests)
        self.boot()
        self.tick(2)


@pytest.mark.parametrize("userid", [OWNER, GUEST], ids=["owner", "guest"])
@pytest.mark.parametrize("guests", [False, True])
def test_of_what_the_owner_requested(userid, guests):
    site = Site(guests)
    site.request(burst_requests.request_nodes(3))
    site.tick(5)
    (burst,) = site.bursts
    assert burst.lease.guests is guests
    number = site.lead.submit(whole(3), userid=userid)
    site.tick(6)
    runs = guests or userid == OWNER
    assert (number in site.bursts[0].jobs) is runs
    assert (number in site.lead.running()) is runs


@pytest.mark.parametrize("guests", [False, True])
def test_of_what_a_guest_requests(guests):
    asking = Asking(lead=FakeLead(known=WITH_GUESTS), guests={"request_nodes": 3})
    sim = asking.sim
    sim.fake_settings = but(sim.fake_settings, guests=guests)
    sim.boot()
    sim.tick(2)
    if guests:
        asking.ask("request", guest=True, nodes=3)
        assert [burst.lease.requester for burst in sim.bursts] == [GUEST]
        return
    with pytest.raises(BurstError, match="run jobs of the owner"):
        asking.ask("request", guest=True, nodes=3)
    assert not sim.bursts


@pytest.mark.parametrize("guests", [False, True])
def test_of_a_burst_that_is_made_for_a_job_of_the_owner(guests):
    """Where users share bursts, both jobs could be on one."""
    half = slots(NODE.cores // 2, constraint='{"properties":["burst"]}')
    jobs = [job(1, half, userid=OWNER), job(2, half, userid=GUEST)]
    sold = world(view(*jobs), WITH_GUESTS, local=(offer(guests=guests),))
    made = run_tick(Records(), sold, settings(plan={"share_users": True}), T0)
    (burst,) = made.records.bursts.values()
    assert burst.jobs == ({1, 2} if guests else {1})
