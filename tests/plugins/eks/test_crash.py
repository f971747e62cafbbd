# SPDX-License-Identifier: MIT
"""kill -9 of the daemon at each step of a burst in EKS.

AWS is moto's server, which outlives the daemons. Followers are processes.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from tests.cli.cli_harness import DaemonProcess
from tests.flux import gated
from tests.flux.crash_story import SOON, kill_at_each_step
from tests.flux.site import Site, open_site
from tests.flux_instance import FLUX, MISSING
from tests.flux_pool import FluxPool
from tests.plugins.eks import here
from tests.plugins.eks.account import Account
from tests.plugins.eks.moto_eks import CLUSTER, REGION, ROLE, SUBNETS, EksServer
from tests.support.fluxlead import short_directory

pytestmark = [pytest.mark.flux, pytest.mark.skipif(not FLUX, reason=MISSING)]
SHAPE = {"cores": 4, "gpus": 1, "max_nodes": 2}
TABLE = {
    "type": here.TYPE,
    "region": REGION,
    "cluster": CLUSTER,
    "node_role": ROLE,
    "subnets": SUBNETS,
    "image": "registry.test/flux",
    "offers": {"nodes": {"instance_types": ["c7i.2xlarge"], **SHAPE}},
}


@pytest.fixture
def site(
    flux_pool: FluxPool,
    server: EksServer,
    eks: Account,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Site]:
    """Yield a site with the account; at its end nothing of the burst is there."""
    for name in ("HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_ENDPOINT_URL", server.url)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "swordfish")
    with short_directory() as path:
        processes = {"dir": str(path), **SHAPE}
        with open_site(pool=flux_pool, table={**TABLE, "processes": processes}) as site:
            gated.install(site.cli.directory / "site", here.TYPE, here.WHERE)
            site.offer_provider(monkeypatch)
            yield site
        assert [each for each in path.rglob("*") if each.is_file()] == []
    made = ("POST", f"/clusters/{CLUSTER}/node-groups")
    assert eks.calls.count(made) == 1, "no node group was made twice"
    assert eks.groups == {}


def test_a_burst_goes_on_under_the_next_daemon_at_each_step_of_its_life(
    site: Site,
) -> None:
    kill_at_each_step(site)


def test_a_daemon_killed_in_a_request_makes_no_second_nodes(
    site: Site, eks: Account
) -> None:
    """AWS makes them, and nobody hears its answer."""
    site.write(deadlines=SOON)
    with DaemonProcess(site.cli) as daemon:
        eks.when_made = lambda: daemon.process.send_signal(signal.SIGKILL)
        job = site.submit("-N2", "--requires=burst", "true")
        assert daemon.wait() == -signal.SIGKILL
    assert len(eks.groups) == 1
    with site.cli.daemon():
        site.wait_for_job(job, "COMPLETED")
        [row] = site.bursts()
        assert site.wait_for_end(row["id"])["result"] == "completed"
        site.check_that_nothing_is_left()
