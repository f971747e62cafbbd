# SPDX-License-Identifier: MIT
"""What a provider tells and is told beyond its four methods, by an engine's ticks."""

import math
from typing import Any

import pytest

from burst.core.plan.offers import lease_end
from burst.model.burst import Result, State
from tests.builders import T0, but, offer, whole
from tests.sim import Sim


def sim(lifetime: float = 0.0, **tables: Any) -> Sim:
    made = Sim(**tables)
    made.fake_settings = but(made.fake_settings, lifetime=lifetime)
    made.boot()
    made.tick(2)
    return made


@pytest.mark.parametrize(
    ("lifetime", "longest", "end"),
    [
        (0.0, math.inf, 0.0),
        (3600.0, math.inf, T0 + 3600),
        (0.0, 7200.0, T0 + 7200),
        (3600.0, 7200.0, T0 + 3600),
        (7200.0, 3600.0, T0 + 3600),
        (1e300, math.inf, 0.0),
    ],
)
def test_a_lease_ends_by_the_least_of_offer_and_settings(
    lifetime: float, longest: float, end: float
) -> None:
    assert lease_end(offer(lifetime=lifetime), longest, T0) == end


def test_an_offer_shorter_than_the_drain_deadline_is_of_use_for_half_of_its_life() -> (
    None
):
    s = sim(100.0, deadlines={"drain": "30m", "idle": "1h"})
    s.lead.submit(whole(4), userid=4711)
    s.until(s.in_state(State.ONLINE))
    created = s.burst.lease.created
    [made] = s.cloud.bursts.values()
    assert made.spec.lease_end == s.burst.lease.end == created + 100
    assert made.spec.userids == (4711,)
    s.tick(48 - round(s.now - created))
    assert s.in_state(State.ONLINE)()
    s.tick(4)
    assert s.in_state(State.DRAIN)()
    note = s.burst.events[-1].context["note"]
    assert note == "it is drained 50s before its lease ends"


def test_a_provider_has_a_provision_deadline_of_its_own() -> None:
    s = sim(provision="20s")
    s.provider.starts_only = 0
    s.lead.submit(whole(4))
    s.until(s.in_state(State.INACTIVE), ticks=200)
    assert s.burst.result is Result.TIMEOUT
    [note] = [e.context["note"] for e in s.burst.events if e.name == "exception"]
    assert note == "not all followers were started within 20s: not up yet"


def test_an_offer_whose_bursts_come_up_too_late_for_any_job_is_set_aside() -> None:
    s = sim(20.0)
    s.provider.starts_after = 15
    s.lead.submit(whole(4))

    s.tick(100, seconds=5.0)

    assert len(s.bursts) == 1
    assert s.state() is State.INACTIVE
    assert s.records.health["local"].rows["offer/nodes"].failures == 1
