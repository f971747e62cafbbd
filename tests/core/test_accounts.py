# SPDX-License-Identifier: MIT
"""Nothing is done for subordinate user ids."""

import pytest

from burst.errors import Denied
from burst.model.burst import State
from burst.model.constraint import canonical
from burst.model.lead import GuestAccess
from burst.model.reason import Reason
from burst.runtime.side_threads import SideThreads
from burst.runtime.subuid_file import SubuidFile
from tests.builders import but, whole
from tests.runtime.asking import Asking
from tests.sim import Sim

SUBUID, OTHER = 100000, 61001


@pytest.fixture
def beside(tmp_path):
    path = tmp_path / "subuid"
    path.write_text("ann:100000:65536\n")
    return SideThreads(subuids=SubuidFile(path))


def sim(beside, *, multi=True, **tables):
    its = Sim(**tables)
    access = GuestAccess(allow_guest_user=multi)
    its.lead.known = but(its.lead.known, access=access)
    its.beside = beside
    its.boot()
    return its


def submit(its, userid):
    return its.lead.submit(whole(4), userid=userid, burstable=True)


def jobs_with_bursts(its):
    return set().union(*(burst.jobs for burst in its.bursts))


def test_its_job_gets_no_nodes_and_is_told_why(beside):
    its = sim(beside)
    job, other = submit(its, SUBUID), submit(its, OTHER)
    its.until(lambda: its.lead.running() == [other])
    assert jobs_with_bursts(its) == {other}
    why = its.decision(job)
    assert why.reason is Reason.NO_ACCOUNT
    assert why.text() == (
        "its user 100000 is a subordinate user id of ann (subuid(5)) and not an"
        " account, so no nodes are rented for it; if it is an account, the instance"
        " owner sets take_subuids under [guests]"
    )
    assert its.lead.memos[job]["state"] == "waiting"


@pytest.mark.parametrize(("multi", "take"), [(True, True), (False, False)])
def test_its_job_gets_nodes_where_it_is_an_account(beside, multi, take):
    """Or where the instance has no guests: then it is its owner's."""
    its = sim(beside, multi=multi, guests={"take_subuids": take})
    job = submit(its, SUBUID)
    its.until(lambda: its.lead.running() == [job])


def test_a_job_that_has_a_burst_keeps_it(tmp_path):
    path = tmp_path / "subuid"
    its = sim(SideThreads(subuids=SubuidFile(path)))
    job = submit(its, SUBUID)
    its.tick(2)
    assert jobs_with_bursts(its) == {job}
    path.write_text("ann:100000:65536\n")
    its.until(lambda: its.lead.running() == [job])


def test_a_job_that_has_some_of_its_nodes_gets_no_further_ones(tmp_path):
    path = tmp_path / "subuid"
    its = sim(SideThreads(subuids=SubuidFile(path)))
    job = submit(its, SUBUID)
    its.until(lambda: its.bursts and its.bursts[0].state is State.ONLINE)
    its.lead.change(job, request=whole(6))
    path.write_text("ann:100000:65536\n")
    its.tick(3)
    assert its.decision(job).reason is Reason.NO_ACCOUNT
    assert len(its.bursts) == 1


def test_its_job_with_a_constraint_is_held_unread(beside):
    """Though own nodes may do for it: to know that is to evaluate the constraint."""
    its = sim(beside)
    plain, constrained = (
        its.lead.submit(whole(1, constraint=text), userid=SUBUID)
        for text in ("", canonical({"ranks": ["0"]}))
    )
    its.engine.tick(its.now)
    its.engine.tick(its.now)
    assert its.lead.jobs[plain].urgency > 0
    assert its.lead.jobs[constrained].urgency == 0


def test_its_calls_are_refused(beside):
    asking = Asking()
    asking.sim.beside = beside
    asking.sim.boot()
    with pytest.raises(Denied, match="100000 is a subordinate user id of ann"):
        asking.api.admit("status", SUBUID, owner=False)
    asking.api.admit("status", SUBUID, owner=True)
    asking.api.admit("status", OTHER, owner=False)
    asking = Asking(guests={"take_subuids": True})
    asking.sim.beside = beside
    asking.sim.boot()
    asking.api.admit("status", SUBUID, owner=False)
