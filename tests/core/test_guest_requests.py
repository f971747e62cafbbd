# SPDX-License-Identifier: MIT
"""What flux-accounting says of nodes that a guest requests ahead of jobs."""

import pytest

from burst.core.burst_requests import request_nodes, usable_idle_bursts
from burst.core.guest_requests import GuestLimits, request_for_guest
from burst.core.records import Records
from burst.errors import BurstError, Denied
from burst.model.accounting import AccountingFacts, AssociationLimits, AssociationUse
from burst.model.banks import Associations, Banks
from burst.model.burst import Burst, Tag
from burst.model.lead import JobState
from tests.builders import T0, but, job, settings, view, whole, world
from tests.core.ticks import recorded
from tests.lifecycles import leased, run, with_jobs

ANN, BEN = 1, 2
ACCOUNTS = Associations({ANN: frozenset({"physics", "art"})}, {ANN: "physics"})
KNOWN = Banks(ACCOUNTS)
UP = ("provision-start", "provision-finish", "joined", "online")


def check(nodes, *jobs, userid=ANN, records=None, banks=KNOWN, **limits):
    told = {(ANN, "physics"): AssociationLimits(**limits)} if limits else {}
    seen = but(
        world(view(*jobs, online=[0, 1, 2, 3])),
        banks=banks,
        accounting=AccountingFacts(read_at=T0, associations=told),
    )
    allowed = settings(guests={"request_nodes": 8})
    GuestLimits(records or Records(), seen, allowed, T0).check(userid, nodes)


def requested(*jobs: int) -> Burst:
    """A burst of two nodes that Ann requested, and jobs that are on it."""
    burst = leased(run(*UP), userids=(ANN,), requester=ANN)
    return with_jobs(burst, *jobs)


def test_they_are_within_max_nodes_of_the_default_bank() -> None:
    check(4, max_nodes=4)
    check(8, max_running_jobs=0)
    with pytest.raises(BurstError, match="limit max_nodes 4 of bank physics") as raised:
        check(5, max_nodes=4)
    assert "0 in use" in str(raised.value)
    assert "you ask for 5 more" in str(raised.value)
    check(3, max_nodes=4, running=AssociationUse(1, 1, 4))
    with pytest.raises(BurstError, match="2 in use"):
        check(3, max_nodes=4, running=AssociationUse(2, 2, 8))


def test_what_was_requested_before_counts_once() -> None:
    """Whether jobs use it or not; a job elsewhere counts beside it."""
    idle = recorded(but(requested(), unused_since=T0))
    check(2, max_nodes=4, records=idle)
    with pytest.raises(BurstError, match="2 in use"):
        check(3, max_nodes=4, records=idle)
    started = {"state": JobState.RUN, "t_start": T0 + 1, "userid": ANN}
    its = job(1, whole(2), bank="physics", **started)
    used = recorded(requested(1))
    check(2, its, max_nodes=4, records=used)
    with pytest.raises(BurstError, match="2 in use"):
        check(3, its, max_nodes=4, records=used)
    other = job(2, whole(1), bank="physics", **started)
    with pytest.raises(BurstError, match="3 in use"):
        check(2, its, other, max_nodes=4, records=used)
    over = but(its, state=JobState.INACTIVE)
    check(2, over, max_nodes=4, records=used)


def test_what_he_uses_in_another_bank_does_not() -> None:
    started = {"state": JobState.RUN, "t_start": T0 + 1, "userid": ANN}
    check(4, job(1, whole(2), bank="art", **started), max_nodes=4)


def test_one_of_his_banks_has_to_have_room_where_no_default_is_known() -> None:
    plugins = Banks(Associations(ACCOUNTS.banks))
    check(5, banks=plugins, max_nodes=4)  # there is no limit in the other
    only = Banks(Associations({ANN: frozenset({"physics"})}))
    with pytest.raises(BurstError, match="max_nodes 4 of bank physics: 0 in use "):
        check(5, banks=only, max_nodes=4)


def test_where_the_lead_cannot_be_read_that_is_told_in_its_place() -> None:
    blind = but(world(None), banks=KNOWN)
    allowed = settings(guests={"request_nodes": 8})
    GuestLimits(Records(), blind, allowed, T0).check(ANN, 8)


def test_a_user_without_an_active_account_gets_none() -> None:
    with pytest.raises(Denied, match="no active account in flux-accounting"):
        check(1, userid=BEN)
    check(1, userid=BEN, banks=Banks())


def test_while_flux_accounting_has_not_answered_he_is_asked_to_wait() -> None:
    with pytest.raises(BurstError, match="ask again in a minute"):
        check(1, banks=Banks(awaited_until=T0 + 1))
    check(1, banks=Banks(awaited_until=T0))


def test_the_site_says_how_many_in_any_case() -> None:
    with pytest.raises(BurstError, match="you have 2, and ask for 7 more"):
        check(7, records=recorded(requested()))


def test_who_asks_is_told_of_idle_bursts_with_the_tag_that_was_asked_for() -> None:
    idle = leased(but(requested(), unused_since=T0), requester=None, tag=Tag("a", ANN))
    known, asked = recorded(idle), request_nodes(2)
    assert usable_idle_bursts(known, asked) == ""
    assert usable_idle_bursts(known, but(asked, tag=Tag("a", ANN)))


def test_who_asks_is_told_of_idle_bursts_that_are_theirs() -> None:
    idle = recorded(but(requested(), unused_since=T0))
    told = usable_idle_bursts(idle, request_for_guest(1, "", ANN))
    assert told.startswith("already idle and ready for jobs: burst-0-")
    assert usable_idle_bursts(idle, request_for_guest(1, "", BEN)) == ""
