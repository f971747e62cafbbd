# SPDX-License-Identifier: MIT
"""Two real kind clusters: the lead's, and one that a burst makes and takes down."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import tomli_w

from burst.kits import certificate
from burst.kits.private_dir import default_base
from tests.kind.conftest import IMAGE
from tests.kind.kindlead import FOLLOWERS, PodLead, pod_lead
from tests.kind.kindnear import LONG_S, NODE, NearCluster, run
from tests.support.fluxlead import needs_flux
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.kind, pytest.mark.xdist_group("near"), needs_flux]
BURST = str(Path(sys.executable).with_name("burst"))


@pytest.fixture
def lead(near: NearCluster) -> Iterator[PodLead]:
    with pod_lead(near) as lead:
        yield lead


def homes() -> set[Path]:
    """Return the directories of all providers that are called far."""
    return set(default_base().glob("*.far"))


class Daemon:
    """`burst daemon` with a kind provider, as a user would start it."""

    def __init__(self, lead: PodLead) -> None:
        self.home = lead.directory / "home"
        self.home.mkdir()
        self._others = homes()
        self.config = lead.directory / "burst.toml"
        self.config.write_text(tomli_w.dumps(self._settings(lead)))
        self._log = lead.directory / "daemon.log"
        self.start()

    def start(self) -> None:
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(
                [BURST, "daemon", "-c", str(self.config)],
                env={**os.environ, "HOME": str(self.home)},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def _settings(self, lead: PodLead) -> dict[str, object]:
        far = {
            "type": "kind",
            "create": True,
            "config": str(self._config()),
            "images": [IMAGE],
            "image": IMAGE,
            "schedule": "1h",
            "lead": NODE,
            "flux": shutil.which("flux") or "flux",
            "offers": {"pod": {"cores": 1, "cpu": "100m", "max_nodes": FOLLOWERS}},
        }
        return {
            "lead": {"uri": lead.uri},
            "daemon": {"cadence": "1s"},
            "deadlines": {"idle": "2s", "join": "1h"},
            "limits": {"cooldown": "10s"},
            "providers": {"far": far},
        }

    def _config(self) -> Path:
        """Write kind's own configuration, and return its path."""
        node = {"role": "control-plane", "image": os.environ["KINDLAB_IMAGE"]}
        path = self.home.with_name("far-kind.json")
        config = {
            "kind": "Cluster",
            "apiVersion": "kind.x-k8s.io/v1alpha4",
            # The near cluster has those that kind gives by itself.
            "networking": {
                "podSubnet": "10.245.0.0/16",
                "serviceSubnet": "10.97.0.0/16",
            },
            "nodes": [node],
        }
        path.write_text(json.dumps(config))
        return path

    def has_no_files(self) -> bool:
        """Tell whether none of its provider is left."""
        return homes() <= self._others

    def log(self) -> str:
        return self._log.read_text()

    def end(self) -> None:
        """End it, and then whatever it left."""
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(LONG_S)
        finally:
            self.kill()
            for cluster in run("kind", "get", "clusters").split():
                if cluster.startswith("far-"):
                    run("kind", "delete", "cluster", "--name", cluster)


@pytest.fixture
def daemon(lead: PodLead) -> Iterator[Daemon]:
    daemon = Daemon(lead)
    try:
        yield daemon
    finally:
        daemon.end()


def containers() -> set[str]:
    """Return those of these two clusters: other tests have some at the same time."""
    names = run("docker", "ps", "--all", "--format", "{{.Names}}").split()
    return {name for name in names if name == NODE or name.startswith("far-")}


def volumes_of(names: set[str]) -> set[str]:
    """Return the volumes that containers have, of those that are still there."""
    form = '{{range .Mounts}}{{if eq .Type "volume"}}{{.Name}} {{end}}{{end}}'
    command = ["docker", "inspect", "-f", form, *sorted(names)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return set(done.stdout.split())


def wait_for_end(lead: PodLead, job: Any) -> tuple[set[str], set[str]]:
    """Wait until a job has ended; return all containers that were there meanwhile, and
    the volumes of those of the far cluster, which goes soon after.
    """
    seen: set[str] = set()
    volumes: set[str] = set()

    def ended() -> bool:
        seen.update(containers())
        if far := seen - {NODE}:
            volumes.update(volumes_of(far))
        return lead.is_done(job)

    wait_until(ended, "the job's end", LONG_S, pause=0.3)
    return seen, volumes


def test_a_waiting_job_runs_in_a_cluster_that_comes_and_goes_though_the_daemon_dies(
    lead: PodLead, daemon: Daemon
) -> None:
    said = run(BURST, "doctor", "-c", daemon.config)
    assert "is made for the first burst" in said
    assert f"followers connect to the lead at tcp://{lead.cluster.address()}" in said
    job = lead.submit(["hostname"])
    with reading(daemon):
        wait_until(lambda: len(containers()) > 1, "a node of the far cluster", LONG_S)
        daemon.kill()
        daemon.start()
        seen, volumes = wait_for_end(lead, job)
    # A pod of an indexed Job is called by its Job, which is called by the burst.
    hosts = lead.output(job).split()
    assert len(set(hosts)) == FOLLOWERS
    (stem,) = {host.rpartition("-")[0] for host in hosts}
    assert re.fullmatch(r"burst-0-[0-9a-f]{6}", stem)
    (far,) = {name.removesuffix("-control-plane") for name in seen - {NODE}}
    assert re.fullmatch(r"far-[0-9a-f]{8}", far)
    with reading(daemon):
        wait_until(lambda: containers() == {NODE}, "the far cluster to be gone", LONG_S)
        wait_until(daemon.has_no_files, "its files to be gone", LONG_S)
    assert volumes
    assert not volumes & set(run("docker", "volume", "ls", "-q").split())
    assert not (daemon.home / ".kube").exists()
    secret = certificate.read(lead.files.certificate).secret.decode()
    assert secret not in daemon.log()


@contextlib.contextmanager
def reading(daemon: Daemon) -> Iterator[None]:
    """Have a failure say what the daemon said."""
    try:
        yield
    except (AssertionError, pytest.fail.Exception) as failure:
        raise AssertionError(daemon.log()) from failure
