# SPDX-License-Identifier: MIT
"""What a person deletes, or takes labels from, is told as that, and nothing stays."""

from __future__ import annotations

import pytest

from burst.errors import SpecRefused
from burst.kits.kube.kinds import name_of
from burst.kits.pods.names import OWNER
from burst.kits.pods.settings import PodForm
from tests.kubernetes.bursts import (
    Bursts,
    bring_up,
    reap_all,
    resize_all,
    runs,
    sized,
    wait_for_number,
    wait_status,
)
from tests.kubernetes.operator import PlayedOperator

pytestmark = pytest.mark.kubernetes


def strip(bursts: Bursts, name: str) -> None:
    """Take the owner's label from a Job."""
    path = bursts.job(name)
    bursts.api.patch(path, {"metadata": {"labels": {OWNER: None}}})


@pytest.mark.parametrize("stripped", ["main", "growth", "both"])
def test_a_job_without_its_owner_is_reaped_all_the_same(
    bursts: Bursts, stripped: str
) -> None:
    provider = bursts.provider()
    one, two = sized(bursts, "burst-0-0"), sized(bursts, "burst-0-[0-1]")
    bring_up(provider, one)
    resize_all(provider, two)
    names = sorted(map(name_of, bursts.objects("jobs")))
    for name in {"main": names[:1], "growth": names[1:], "both": names}[stripped]:
        strip(bursts, name)
    if stripped == "both":
        words = "labels of burst were removed from it"
        wait_status(provider, lambda status: words in status.why)
    reap_all(provider, two)
    for kind in ("jobs", "pods", "secrets"):
        wait_for_number(bursts, kind, 0)


@pytest.mark.usefixtures("miniclusters")
@pytest.mark.parametrize(("then", "now"), [("operator", "job"), ("job", "operator")])
def test_a_burst_of_the_other_form_lives_on_and_is_reaped(
    bursts: Bursts, then: PodForm, now: PodForm
) -> None:
    one, two = sized(bursts, "burst-0-0"), sized(bursts, "burst-0-[0-1]")
    where = ("-n", bursts.namespace, "-o", "name")
    with PlayedOperator(bursts.api, bursts.namespace):
        bring_up(bursts.provider(form=then), two)
        provider = bursts.provider(form=now)
        wait_status(provider, runs(*two.hosts))
        with pytest.raises(SpecRefused, match="was made with another form"):
            provider.resize(one)
        reap_all(provider, two)
        assert bursts.lab.kubectl("get", "miniclusters", *where).strip() == ""
    for kind in ("pods", "jobs", "secrets", "services"):
        wait_for_number(bursts, kind, 0)
    names = set(map(name_of, bursts.objects("configmaps")))
    assert two.burst_id not in names
