# SPDX-License-Identifier: MIT
"""Isolated bursts on real nodes: real Flux there, which runs jobs in the lead's stead.

The lead and its daemon are outside. Pods have this machine's Flux, by mounts.
"""

from __future__ import annotations

import base64
import json
import shlex
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import tomli_w

from burst.kits import certificate
from burst.lead_setup.lead_plan import PlannedSlot
from burst.model.shape import Shape
from tests.e2e.programs import BURST, host_paths, run, running, says
from tests.e2e.seed import some_user
from tests.kubelab.build import PAUSE_IMAGE
from tests.kubelab.sandbox import OUTSIDE_IP
from tests.kubernetes.access import GivenCluster
from tests.support.fluxlead import FluxLead, flux_lead, needs_flux
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.e2e, needs_flux]
KINDS = "pods,jobs,configmaps,secrets,services"
OURS = ("-l", "burst.flux-framework.org/owner")
SLOT = PlannedSlot(hosts="burst-0-[0-1]", shape=Shape(1))
FLUX = shutil.which("flux") or ""
ISOLATED = (
    *("--setattr=burstable", "--setattr=burst.mode=isolated"),
    *("--setattr=burst.wait=0", "--cwd=/tmp"),
)


class Site:
    """A lead, its daemon, and a cluster where its jobs can run."""

    def __init__(self, lead: FluxLead, cluster: GivenCluster, place: Path) -> None:
        self.lead = lead
        self.cluster = cluster
        self.place = place
        self.config = place / "burst.toml"
        self.log = place / "daemon.log"
        self.namespace = ""
        self.daemon: subprocess.Popen[bytes]
        self.start: Callable[[], subprocess.Popen[bytes]]

    def flux(self, *words: str) -> str:
        done = self.lead.flux(*words)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def burst(self, *words: str) -> str:
        where = ("-c", str(self.config), "--uri", self.lead.files.uri)
        first = words.index("--") if "--" in words else len(words)
        return run(BURST, *words[:first], *where, *words[first:])

    def objects(self, kinds: str = KINDS) -> list[dict[str, Any]]:
        where = ("-n", self.namespace, *OURS, "-o", "json")
        return list(json.loads(self.cluster.kubectl("get", kinds, *where))["items"])

    def look(self) -> str:
        where = ("-n", self.namespace)
        logs = ("logs", *where, *OURS, "--all-containers", "--tail=30")
        return "\n".join(
            [
                self.log.read_text(),
                self.cluster.kubectl("get", KINDS, *where),
                self.cluster.kubectl(*logs, check=False),
            ]
        )

    def ended(self, job: str) -> str:
        """Wait for the end of a job; return what its user is told of it."""
        wait_until(lambda: "clean" in self.flux("job", "eventlog", job), self.look)
        lines = self.flux("job", "eventlog", "-f", "json", job).splitlines()
        events = [json.loads(line) for line in lines]
        given = [e["context"] for e in events if e["name"] == "alloc"]
        assert given in ([], [{"bypass": True}])  # no nodes of the lead
        note = self.flux("jobs", "-ano", "{user.burst.why}", job)
        status = self.lead.flux("job", "status", job).returncode
        assert not given or note.endswith(f": exit status {status}")
        return note

    def gone(self) -> None:
        """Wait until nothing of any burst is left."""
        wait_until(lambda: not self.objects(), self.look)


@pytest.fixture
def site(cluster: GivenCluster, namespace: str, tmp_path: Path) -> Iterator[Site]:
    table = {
        "type": "kube",
        "kubeconfig": str(cluster.kubeconfig),
        "namespace": namespace,
        "image": PAUSE_IMAGE,
        "image_pull": "Never",
        "one_per_node": False,
        "offers": {"nodes": {"cores": 1, "max_nodes": 4, "cpu": "100m"}},
        "host_paths": host_paths(flux=True),
        "flux": FLUX,
        "environment": {"PATH": f"{Path(FLUX).parent}:/usr/bin:/bin", "HOME": "/tmp"},
        "user": some_user(),
        "service": ["python3", "-m", "http.server", "5000"],
    }
    with flux_lead(SLOT, address=OUTSIDE_IP) as lead:
        found = Site(lead, cluster, tmp_path)
        found.namespace = namespace
        tables = {
            "daemon": {"cadence": "1s", "observe": "0.2s"},
            "providers": {"far": table},
        }
        found.config.write_text(tomli_w.dumps(tables))
        command = [BURST, "daemon", "-c", str(found.config), "--uri", lead.files.uri]
        with ExitStack() as stack:

            def start() -> subprocess.Popen[bytes]:
                daemon = stack.enter_context(running(command, found.log))
                says(found.log, " serves ")
                return daemon

            found.start = start
            found.daemon = start()
            yield found


def test_a_job_runs_there_and_its_end_and_output_come_back(site: Site) -> None:
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


def test_an_exit_status_that_is_not_zero_comes_back(site: Site) -> None:
    # As flux submit --burst --burst-mode=isolated has it, so that it cannot start here.
    held = ("--urgency=hold", "--setattr=burst.urgency=16")
    words = ("-n1", *held, *ISOLATED, "sh", "-c", "echo no; exit 3")
    job = site.flux("submit", *words)
    assert site.ended(job).endswith(": exit status 3")
    site.gone()


def test_it_runs_once_though_its_daemon_dies(site: Site) -> None:
    job = site.flux("submit", "-N2", *ISOLATED, "sh", "-c", "echo once; sleep 3")
    wait_until(lambda: site.objects("pods"), site.look)
    site.daemon.kill()
    site.daemon.wait()
    site.daemon = site.start()
    assert site.ended(job).endswith(": exit status 0")
    assert site.burst("output", job) == "once\nonce\n"
    site.gone()


def test_a_batch_script_is_the_initial_program_there(site: Site) -> None:
    script = site.place / "script.sh"
    script.write_text(
        "#!/bin/sh\necho size $(flux getattr size) level"
        " $(flux getattr instance-level) $1\nflux run -N2 flux getattr rank\nexit 4\n"
    )
    job = site.flux("batch", "-N2", "-n2", *ISOLATED, str(script), "word")
    assert site.ended(job).endswith(": exit status 4")
    done = site.lead.flux("--version")
    assert done.returncode == 0
    row = next(
        row
        for row in json.loads(site.burst("status", "-a", "--json"))["bursts"]
        if row["exit_status"] == 4
    )
    said = site.flux("jobs", "-no", "{user.burst.output}", job)
    assert "size 2 level 0 word" in said, (said, row)
    site.gone()


def test_one_of_ones_own_is_reached_and_taken_down(site: Site) -> None:
    said = site.burst("request", "-N2", "--isolated")
    access = next(line for line in said.splitlines() if line.startswith("kubectl "))
    words = shlex.split(access.replace(" -it ", " "))[1:]
    words += ["flux", "run", "-N2", "flux", "getattr", "hostname"]
    hosts = site.cluster.kubectl(*words).split()
    row = json.loads(site.burst("status", "--json"))["bursts"][0]
    assert sorted(hosts) == [f"{row['id']}-0", f"{row['id']}-1"]
    check_secret(site)
    site.burst("down", row["id"])
    assert site.objects() == []


def test_a_service_has_an_address(site: Site) -> None:
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
    assert site.objects() == []


def test_a_command_needs_no_job(site: Site) -> None:
    said = site.burst("request", "-N2", "--isolated", "--", "flux", "getattr", "rank")
    assert {"0", "1"} <= set(said.split())
    assert site.objects() == []


def check_secret(site: Site) -> None:
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
