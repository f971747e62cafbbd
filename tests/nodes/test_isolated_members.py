# SPDX-License-Identifier: MIT
"""An isolated member of an ensemble on real nodes: a real instance for each job."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.kubelab.cluster import Cluster
from tests.nodes.isolated_site import IsolatedSite, isolated_site
from tests.nodes.waiting import wait_until
from tests.support.fluxlead import needs_flux
from tests.support.waiting import HANG_S

pytestmark = [pytest.mark.nodes, needs_flux]
FILE = """
name = "far"
checkSeconds = "0.5s"
growWindow = "1s"
shrinkWindow = "1s"
limits.nodes = 2

[[members]]
name = "a"
mode = "isolated"
max = 2
algorithm = [
    { name = "workload-demand", options = { scaleUpStrategy = "total" } },
    { name = "stop", options = { successTarget = 3 } },
]

[[members.jobs]]
name = "one"
command = "sh -c 'echo one on $(flux getattr size); sleep 1'"
count = 2

[[members.jobs]]
name = "two"
command = "sh -c 'echo two on $(flux getattr size)'"
nodes = 2
"""
# Three bursts, one after another.
LONG_S = 2 * HANG_S


@pytest.fixture
def site(cluster: Cluster, namespace: str, tmp_path: Path) -> Iterator[IsolatedSite]:
    with isolated_site(cluster, namespace, tmp_path) as found:
        yield found


def test_each_job_has_an_instance_and_nothing_is_left(site: IsolatedSite) -> None:
    file = site.place / "far.toml"
    file.write_text(FILE)
    site.burst("ensemble", "check", str(file))
    site.burst("ensemble", "up", str(file))

    def row() -> Any:
        (found,) = json.loads(site.burst("ensemble", "status", "--json"))["ensembles"]
        bursts = found["members"]["a"]["member"]["bursts"]
        assert sum(burst["nodes"] for burst in bursts) <= 2
        return found

    wait_until(lambda: row()["state"] == "ended", site.look, LONG_S, pause=1)
    assert "3 jobs have succeeded" in row()["members"]["a"]["member"]["why"]
    told = site.flux("jobs", "-ano", "{id.f58} {name} {status} {returncode}")
    jobs = [line.split() for line in told.splitlines() if " far.a." in line]
    assert [(status, code) for _, _, status, code in jobs] == [("COMPLETED", "0")] * 3
    outputs = sorted(site.burst("output", job) for job, *_ in jobs)
    assert outputs == ["one on 1\n", "one on 1\n", "two on 2\ntwo on 2\n"]
    site.gone()
