# SPDX-License-Identifier: MIT
"""What became of a burst is seen by `kubectl describe`."""

from __future__ import annotations

import time

import pytest

from burst.errors import NotFound
from burst.provider import Event
from tests.kubernetes.bursts import Bursts, reap_all

pytestmark = pytest.mark.kubernetes


def at(name: str) -> Event:
    return Event(time.time(), name)


PLANNED = at("submit")


def test_events_are_shown_with_the_job_and_after_its_end(bursts: Bursts) -> None:
    provider, name = bursts.provider(), bursts.spec.burst_id
    with pytest.raises(NotFound):
        provider.record_event(name, PLANNED, "it was planned")
    provider.provision(bursts.spec)
    for _ in range(2):  # whoever does not know whether it was written writes it again
        provider.record_event(name, PLANNED, "it was planned for job ƒA")
    provider.record_event(name, at("lost"), "ranks were lost: its node is gone")
    said = bursts.lab.kubectl("describe", f"job/{name}", "-n", bursts.namespace)
    lines = [" ".join(line.split()) for line in said.splitlines()]
    planned = [line for line in lines if "BurstPlanned" in line]
    assert [line.endswith("burst it was planned for job ƒA") for line in planned]
    assert [line for line in lines if line.startswith("Warning BurstLost")]
    reap_all(provider, bursts.spec)
    provider.record_event(name, at("reaped"), "nothing of it is left at its provider")
    ours = [
        event["reason"]
        for event in bursts.objects("events")
        if event["source"].get("component") == "burst"
    ]
    assert sorted(ours) == ["BurstLost", "BurstPlanned", "BurstReaped"]
    # An event alone is no burst.
    assert provider.observe() == []
