# SPDX-License-Identifier: MIT
"""Which offers and bursts are for which jobs: one function, whatever the source."""

import math

import pytest

from burst.config import LimitSettings, PlanSettings, Settings
from burst.core.plan.catalog import Failures, offer_catalog
from burst.core.plan.context import PlanContext
from burst.core.plan.demands import LiveBurstWorth
from burst.core.plan.estimate import StartEstimate
from burst.core.plan.leasable import LeasableRanks
from burst.core.plan.limits import FurtherUse, Usage
from burst.core.plan.offers import provider_offers
from burst.core.plan.rank_table import RankTable
from burst.core.plan.sources import Portion, Source, new_burst, nodes_wanted
from burst.core.provider_health import FailureRecord, Health
from burst.model.burst import Burst, BurstId, Isolated, State, Tag
from burst.model.decision import Decision, OfferRejection
from burst.model.reason import Reason
from burst.model.request import BurstPreferences, ResourceRequest
from burst.model.shape import Shape
from tests.builders import NODE, T0, but, identity, offer, whole
from tests.core.plans import demand
from tests.lifecycles import LEASE

PAYS_1 = BurstPreferences(max_price=1.0)
PAYS_LESS, RULE = Reason.PRICE_TOO_HIGH, Reason.RULE_PRICE
"""Of the job and its rule, the one that pays less is named."""
TAG = Tag("t", 100)


def eligible(health=None, coming=(), share_users=True, unreadable="", **limits):
    found = provider_offers({"local": [offer(max_nodes=8)]}, {}, Settings(), T0)
    held = {"local": health} if health else {}
    catalog = offer_catalog(found, Failures(held, coming, T0))
    return PlanContext(
        now=T0,
        identity=identity(),
        catalog=catalog,
        table=RankTable((), LeasableRanks(), frozenset()),
        usage=Usage(LimitSettings(**limits)),
        settings=PlanSettings(share_users=share_users),
        unreadable=unreadable,
    )


def sold(**changes):
    found = provider_offers(
        {"local": [offer(max_nodes=8, **changes)]}, {}, Settings(), T0
    )
    (candidate,) = found["local"] or ()
    return candidate


def live(**changes):
    """Return the source of a live burst of offer `local/small`."""
    fields = {"provider": "local", "offer": "small", "lasts": math.inf}
    burst = BurstId("burst-0-aaaaaa")
    return Source(**{"burst": burst, "nodes": 2, **fields, **changes})


def asks(user=100, **changes):
    return but(demand(1, whole(2), user), **changes)


def why(found, *args):
    rejection = found.why_not(*args)
    if rejection is not None:
        assert rejection.text()
        assert rejection.next_step()
    return rejection and rejection.reason


SOON = StartEstimate(expected=T0, latest=T0, earliest=T0)


@pytest.mark.parametrize(
    ("job", "burst", "reason"),
    [
        (asks(), live(), None),
        (asks(tag=TAG), live(), Reason.FOR_OTHERS),
        (asks(), live(tag=TAG), Reason.FOR_OTHERS),
        (asks(tag=TAG), live(tag=TAG), None),
        (asks(tag=Tag("u", 100)), live(tag=TAG), Reason.FOR_OTHERS),
        (asks(101, tag=Tag("t", 101)), live(tag=TAG), Reason.FOR_OTHERS),
        (asks(7), live(requester=100), Reason.FOR_OTHERS),
        (asks(), live(requester=100), None),
        (asks(preferences=BurstPreferences("other")), live(), Reason.OTHER_PROVIDER),
        (asks(preferences=BurstPreferences(offer="big")), live(), Reason.OTHER_OFFER),
        (asks(preferences=PAYS_1), live(price=1.0), None),
        (asks(preferences=PAYS_1), live(price=2.0), PAYS_LESS),
        (asks(preferences=but(PAYS_1, allowed_price=1.5)), live(price=2.0), PAYS_LESS),
        (asks(preferences=but(PAYS_1, allowed_price=1.0)), live(price=2.0), RULE),
        (asks(preferences=but(PAYS_1, allowed_price=0.5)), live(price=2.0), RULE),
        (asks(preferences=BurstPreferences(losses=2)), live(), None),
        (asks(preferences=BurstPreferences(losses=1)), live(spot=True), None),
        (asks(preferences=BurstPreferences(losses=2)), live(spot=True), Reason.SPOT),
        (
            asks(live_worth=LiveBurstWorth(SOON, 60.0, 1.0, T0)),
            live(),
            Reason.KEEPING_NOT_WORTH,
        ),
        (asks(duration=60.0), live(lasts=59.0), Reason.LEASE_SHORT),
        (asks(duration=60.0), live(lasts=60.0), None),
    ],
)
def test_a_live_burst_is_for_some_jobs(job, burst, reason):
    assert why(eligible(), job, burst) is reason


def test_users_who_do_not_share_are_kept_apart():
    found = eligible(share_users=False)
    assert why(found, asks(), live(userids=frozenset({100}))) is None
    assert why(found, asks(), live(userids=frozenset())) is None
    mixed = live(userids=frozenset({100, 7}))
    assert why(found, asks(), mixed) is Reason.FOR_OTHERS
    assert why(eligible(), asks(), mixed) is None


def test_of_an_older_record_nobody_knows_whether_guests_can_run_there():
    guest = asks(preferences=BurstPreferences(guest=True))
    assert why(eligible(), guest, live(guests=None)) is Reason.NO_GUESTS
    made_for = live(guests=None, userids=frozenset({100}))
    assert why(eligible(), guest, made_for) is None


def test_how_much_of_a_burst_counts_too():
    use = FurtherUse.joined(100, 2)
    found = eligible(max_nodes_per_user=1)
    assert why(found, asks(), live()) is None
    assert why(found, asks(), live(), Portion(use)) is Reason.LIMIT_USER
    assert why(eligible(), asks(), live(), Portion(use)) is None


def aside(until, nodes):
    """The offer is set aside until a time, for bursts of so many nodes or more."""
    return {"health": Health(rows={"offer/small": FailureRecord(1, until, nodes)})}


JOINS = Burst(
    lease=but(LEASE, provider="local", offer="small", hosts=tuple("abcd")),
    state=State.JOIN,
)


@pytest.mark.parametrize(
    ("nodes", "more", "reason"),
    [
        (2, {}, None),
        (9, {}, Reason.FEW_NODES),
        (2, {"health": Health(trial=True)}, Reason.ON_TRIAL),
        (2, aside(T0 - 9, 4), Reason.ON_TRIAL),
        (2, {**aside(T0 - 9, 4), "coming": [JOINS]}, Reason.ON_TRIAL),
        (2, aside(T0 + 9, 2), Reason.OFFER_COOLDOWN),
        (1, aside(T0 + 9, 2), None),
        (2, {"max_nodes": 1}, Reason.LIMIT_NODES),
    ],
)
def test_a_growth_asks_the_same_with_or_without_a_job(nodes, more, reason):
    use = FurtherUse(offer="local/small", sizes=(nodes,), nodes=nodes)
    share = Portion(use, (("burst-0", nodes),))
    grows, found = live(candidate=sold()), eligible(**more)
    assert why(found, asks(), grows, share) is reason
    rejection = found.why_not_so_much(grows, share)
    assert (rejection and rejection.reason) is reason


def test_nothing_is_bought_of_an_offer_that_is_gone_or_for_a_job_that_is_not_worth_it():
    share = Portion(pieces=(("burst-0", 1),))
    assert why(eligible(), asks(), live(), share) is Reason.NOT_OFFERED
    poor = asks(not_bought=Decision(Reason.NOT_WORTH))
    new = new_burst(sold())
    assert why(eligible(), poor, new, share) is Reason.NOT_BOUGHT
    assert why(eligible(), poor, new) is None


def test_what_is_promised_for_later_is_not_a_trial():
    share = Portion(pieces=(("burst-0", 1),))
    held = Health(trial=True)
    assert why(eligible(held), asks(), new_burst(sold()), share) is None
    later = share._replace(later=True)
    assert why(eligible(held), asks(), new_burst(sold()), later) is Reason.ON_TRIAL


def test_an_isolated_burst_is_for_held_jobs_of_the_owner():
    new = new_burst(sold(modes=("isolated",)), isolated=True)
    owners = asks(identity().owner_userid, isolated=Isolated(kind="job"))
    owners = but(owners, preferences=BurstPreferences(mode="isolated"))
    taken_back = but(owners, isolated=None)
    assert why(eligible(), owners, new) is None
    assert why(eligible(), taken_back, new) is Reason.NOT_HELD
    lost = eligible(unreadable="burst/isolated-1")
    assert why(lost, owners, new) is Reason.LOST_RECORD
    assert why(eligible(), but(owners, rest=whole(1)), new) is Reason.HAS_NODES


def test_how_many_nodes_are_needed_of_a_shape():
    new, joined = new_burst(sold(), isolated=True), new_burst(sold())
    coming = asks(rest=whole(1))
    assert nodes_wanted(coming, joined, NODE) == 1
    assert nodes_wanted(coming, new, NODE) == 2
    large = Shape(NODE.cores + 1)
    refused = nodes_wanted(coming, joined, large)
    assert isinstance(refused, OfferRejection)
    assert refused.reason is Reason.SHAPE_MISMATCH
    request = ResourceRequest(nodes=1, slots=1, cores_per_slot=NODE.cores + 1)
    for source, reason in ((joined, Reason.NODE_SMALL), (new, Reason.OFFER_SMALL)):
        found = nodes_wanted(asks(request=request), source, NODE)
        assert isinstance(found, OfferRejection)
        assert found.reason is reason
