# SPDX-License-Identifier: MIT
"""Isolated bursts on real nodes: real Flux there, which runs jobs in the lead's stead.

The lead and its daemon are outside.
"""

from __future__ import annotations

import base64
import json
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from burst.kits import certificate
from tests.kubelab.cluster import Cluster
from tests.nodes.isolated_site import (
    KINDS,
    UNTIL_TOLD,
    IsolatedSite,
    isolated_site,
)
from tests.nodes.waiting import wait_until
from tests.support.fluxlead import needs_flux

pytestmark = [pytest.mark.nodes, needs_flux]
ISOLATED = (
    *("--setattr=burstable", "--setattr=burst.mode=isolated"),
    *("--setattr=burst.wait=0", "--cwd=/tmp"),
)


@pytest.fixture
def site(cluster: Cluster, namespace: str, tmp_path: Path) -> Iterator[IsolatedSite]:
    service = ["python3", "-m", "http.server", "5000"]
    with isolated_site(cluster, namespace, tmp_path, service=service) as found:
        yield found


def test_a_job_runs_there_and_its_end_and_output_come_back(site: IsolatedSite) -> None:
    script = 'echo "$GREETING from $(flux getattr hostname)"; echo oh >&2'
    words = ("-N2", "--env=GREETING=hello", *ISOLATED, "sh", "-c", script)
    job = site.flux("submit", *words)
    note = site.ended(job)
    assert note.startswith("ran in isolated burst burst-iso-"), note
    assert note.endswith(": exit status 0"), note
    name = note.split()[4].rstrip(":")
    said = site.burst("output", job)
    for index in (0, 1):
        assert f"hello from {name}-{index}\n" in said
    assert said.count("oh\n") == 2
    assert site.flux("jobs", "-no", "{user.burst.state}", job) == "exit 0"
    tail = site.flux("jobs", "-no", "{user.burst.output}", job)
    assert f"hello from {name}-0" in tail
    site.gone()


def test_it_runs_once_though_its_daemon_dies(site: IsolatedSite) -> None:
    job = site.flux("submit", "-N2", *ISOLATED, "sh", "-c", f"echo once; {UNTIL_TOLD}")
    wait_until(lambda: len(site.objects("pods")) == 2, site.look)
    site.daemon.kill()
    site.daemon.wait()
    site.daemon = site.start()
    site.tell_pods()
    assert site.ended(job).endswith(": exit status 0")
    assert site.burst("output", job) == "once\nonce\n"
    site.gone()


def test_one_of_ones_own_is_reached_and_taken_down(site: IsolatedSite) -> None:
    said = site.burst("request", "-N2", "--isolated")
    access = next(line for line in said.splitlines() if line.startswith("kubectl "))
    words = shlex.split(access.replace(" -it ", " "))[1:]
    words += ["flux", "run", "-N2", "flux", "getattr", "hostname"]
    hosts = site.cluster.kubectl(*words).split()
    row = json.loads(site.burst("status", "--json"))["bursts"][0]
    assert sorted(hosts) == [f"{row['id']}-0", f"{row['id']}-1"]
    check_secret(site)
    site.burst("down", row["id"])
    site.gone()


def test_a_service_has_an_address(site: IsolatedSite) -> None:
    said = site.burst("request", "-N1", "--isolated", "--service")
    address = next(w for w in said.split() if w.startswith("http://"))
    (pod,) = site.objects("pods")
    name = pod["metadata"]["name"]
    code = f"import urllib.request as u; print(u.urlopen({address!r}).status)"
    inside = ("exec", "-n", site.namespace, name, "--", "python3", "-c", code)
    wait_until(
        lambda: site.cluster.kubectl(*inside, check=False).strip() == "200", site.look
    )
    site.burst("down", json.loads(site.burst("status", "--json"))["bursts"][0]["id"])
    site.gone()


def check_secret(site: IsolatedSite) -> None:
    """The instance's certificate is its own, and in its Secret only."""
    (secret,) = site.objects("secrets")
    text = base64.b64decode(secret["data"]["curve.cert"]).decode()
    made = certificate.parse(text, "the Secret")
    assert made.public != certificate.read(site.lead.files.certificate).public
    key = made.secret.decode()
    kinds = KINDS.replace("secrets,", "") + ",events"
    where = ("-n", site.namespace, "-o", "json")
    assert key not in site.cluster.kubectl("get", kinds, *where)
    assert key not in site.log.read_text()
