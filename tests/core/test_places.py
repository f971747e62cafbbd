# SPDX-License-Identifier: MIT
"""A lease knows the place it was made in: elsewhere, its absence says nothing."""

import pytest

from burst.core.lifecycle import apply
from burst.core.tick import run_tick
from burst.core.world import ABSENT_READS, ProviderView
from burst.model.burst import State
from burst.model.event import Event
from tests.builders import T0, but, job, settings, view, whole, world
from tests.core.ticks import ID, recorded, tick_once
from tests.lifecycles import leased, run


def placed(place, *events):
    return leased(run(*events), place=place)


def at(place, *jobs):
    """The world with a provider at a place, where nothing is to be seen of a burst."""
    seen = world(view(*jobs))
    gone = ProviderView(
        offers=seen.providers["local"].offers, absent={ID: ABSENT_READS}, read_at=T0 + 9
    )
    return but(
        seen, providers={"local": gone}, places={"local": place} if place else {}
    )


UP = ("provision-start", "provision-finish", "online")


def test_a_new_lease_has_the_place_of_its_provider():
    seen = world(view(job(1, whole(4))))
    seen = but(seen, places={"local": "kube a"})

    (burst,) = tick_once(seen).records.bursts.values()

    assert burst.lease.place == "kube a"


def test_a_burst_of_another_place_is_quarantined_and_not_forgotten():
    records = recorded(placed("kube a", *UP))
    made = tick_once(at("kube b"), records)

    (burst,) = made.records.bursts.values()
    assert burst.state is State.ONLINE
    assert "in kube a, and provider local is now set to kube b;" in burst.quarantined
    assert "a provider of another name for the new place" in burst.quarantined
    assert made.actions == ()
    again = run_tick(made.records, at("kube b"), settings(), T0 + 200)
    assert again.events == ()


def test_it_goes_on_once_its_provider_is_back():
    made = tick_once(at("kube b"), recorded(placed("kube a", *UP)))
    back = tick_once(at("kube a"), made.records)

    (burst,) = back.records.bursts.values()
    assert not burst.quarantined
    # What is not seen where it was made is gone.
    assert burst.state is State.REAP


def test_one_that_is_being_deleted_is_not_asked_for_elsewhere():
    down = placed("kube a", "provision-start", "exception")
    made = tick_once(at("kube b"), recorded(down))

    (burst,) = made.records.bursts.values()
    assert burst.state is State.REAP
    assert burst.quarantined
    assert made.actions == ()


def test_a_record_without_a_place_is_trusted():
    for there, was in (("", "kube a"), ("kube b", "")):
        made = tick_once(at(there), recorded(placed(was, *UP)))
        (burst,) = made.records.bursts.values()
        assert not burst.quarantined
        assert burst.state is State.REAP


@pytest.mark.parametrize(
    ("was", "there", "elsewhere"),
    [
        ("kube a as me", "kube a (:8443) as me", False),
        ("kube a (:8443) as me", "kube a (:8443) as me", False),
        ("kube a (/b) as me", "kube a (/c) as me", True),
        ("kube a (/b) as me", "kube a as me", True),
        ("kube a as me", "kube b (/b) as me", True),
    ],
)
def test_what_is_in_parentheses_counts_if_the_record_has_it(was, there, elsewhere):
    made = tick_once(at(there), recorded(placed(was, *UP)))
    (burst,) = made.records.bursts.values()
    assert bool(burst.quarantined) is elsewhere


def test_a_quarantine_for_another_reason_stays():
    burst = apply(placed("kube a", *UP), Event(T0 + 50, "quarantine", {"note": "odd"}))

    (burst,) = tick_once(at("kube a"), recorded(burst)).records.bursts.values()

    assert burst.quarantined == "odd"
