# SPDX-License-Identifier: MIT
"""`run-burst` with the flags of the first experiment, and Google Cloud on loopback."""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from importlib.metadata import EntryPoint, distribution
from pathlib import Path

import pytest
from burst_gke.provider_type import GkeType

from burst.cli.run_burst import make_command
from burst.kits.kube import Cluster, Kubeconfig
from burst.kits.pods.diagnose.own_image import OwnImage, find_own_image, read_own_image
from burst.provider_type import GROUP
from tests.cli.cli_harness import CliHarness, CommandResult, invoke
from tests.embedded_instance import (
    EmbeddedInstance,
    R,
    short_directory,
    write_files,
)
from tests.kits.kubeserver import api_server, kubeconfig
from tests.plugins.gke.gke import PROJECT, Gke
from tests.plugins.gke.server import Service, serve
from tests.support.fluxlead import flux_lead
from tests.support.ports import free_port

Run = Callable[..., CommandResult]
HOSTS = tuple(f"burst-0-{number}" for number in range(4))
GOOGLE = "--project", PROJECT, "--image", "registry.test/flux"
OURS = "flux-burst-orchestrator"
PROVIDER = "burst_gke.provider:GkeProvider"
# As typed in the first experiment, where the values of variables stand.
SEED = """
python3 run-burst.py --project ${GOOGLE_PROJECT} --cluster-name flux-external-cluster --flux-operator-yaml ./external-config/flux-operator-dev.yaml \\
        --lead-host ${LEAD_HOST} --lead-port ${LEAD_PORT} --lead-size 4 \\
        --munge-key ./munge.key --name burst-0
"""  # noqa: E501
LEAD_CLUSTER = "BURST_TEST_LEAD_CLUSTER"


def lead_image() -> OwnImage:
    """Return the image of the lead's pod, if a test has a cluster with one."""
    if LEAD_CLUSTER not in os.environ:
        return find_own_image()
    with closing(Cluster(Kubeconfig(os.environ[LEAD_CLUSTER]))) as cluster:
        return read_own_image(cluster, "flux-operator", "flux-sample-0")


FLAGS = GkeType(lead_image)
COMMAND = make_command([EntryPoint("gke", f"{__name__}:FLAGS", GROUP)])


@pytest.fixture
def instance() -> Iterator[EmbeddedInstance]:
    """An instance whose burst hosts have four cores and no GPU, as n2-standard-8."""
    plain = json.loads(json.dumps(R).replace(', "gpu": "0"', ""))
    with short_directory() as directory:
        write_files(directory, free_port())
        (directory / "R").write_text(json.dumps(plain))
        instance = EmbeddedInstance(directory)
        try:
            instance.start()
            yield instance
        finally:
            instance.end()


@pytest.fixture
def gke() -> Gke:
    return Gke()


class Runner:
    """Runs it in this process, with another `gke` in the place of ours."""

    def __init__(self, gke: Gke, directory: Path, patch: pytest.MonkeyPatch) -> None:
        self._gke = gke
        self._directory = directory
        self._patch = patch

    @contextmanager
    def about(self, uri: str, config: Path) -> Iterator[Run]:
        """Yield how to run it about a lead; leave nothing of what it makes."""
        info = self._directory / f"{OURS.replace('-', '_')}-1.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Name: {OURS}\nVersion: 1\n")
        points = distribution(OURS).read_text("entry_points.txt") or ""
        assert PROVIDER in points
        other = "tests.plugins.gke.installed:InstalledGke"
        (info / "entry_points.txt").write_text(points.replace(PROVIDER, other))
        # Of two packages with one name, the first on the path counts.
        self._patch.setattr(sys, "path", [str(self._directory), *sys.path])

        def run(*words: str) -> CommandResult:
            more = ("-c", str(config), "--uri", uri)
            return invoke(COMMAND, "run-burst", *words, *more)

        with short_directory() as home, serve(Service(self._gke)) as address:
            self._patch.setenv("BURST_TEST_GKE_HOME", str(home))
            self._patch.setenv("BURST_TEST_GKE", address)
            try:
                yield run
            finally:
                if self._gke.things():
                    run("--down", *GOOGLE)


@pytest.fixture
def runner(gke: Gke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Runner:
    return Runner(gke, tmp_path, monkeypatch)


@pytest.fixture
def run(runner: Runner, cli: CliHarness) -> Iterator[Run]:
    with runner.about(cli.uri, cli.config) as run:
        yield run


@pytest.fixture
def lead_pod(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The lead's cluster, with the pod of the first experiment in it."""
    image = "ghcr.io/flux-framework/flux-restful-api:latest"
    pod = {
        "metadata": {"name": "flux-sample-0-kktl7", "labels": {}},
        "spec": {
            "hostname": "flux-sample-0",
            "containers": [{"name": "flux-sample", "image": image}],
        },
    }
    with api_server() as server:
        listed = {"items": [pod], "metadata": {}}
        path = "/api/v1/namespaces/flux-operator/pods"
        server.answer("GET", path, (200, listed))
        user = {"token": "t"}
        file = kubeconfig(tmp_path / "lead-cluster", server.url, user)
        monkeypatch.setenv(LEAD_CLUSTER, file)
        yield


@pytest.mark.flux
@pytest.mark.usefixtures("lead_pod")
def test_the_first_experiment(
    runner: Runner, gke: Gke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its command as typed, from inside a Flux lead with a waiting job."""
    monkeypatch.chdir(tmp_path)
    config = tmp_path / "burst.toml"
    config.write_text("")
    operator = tmp_path / "external-config" / "flux-operator-dev.yaml"
    operator.parent.mkdir()
    operator.write_text("apiVersion: v1\nkind: Namespace\nmetadata: {name: x}\n")
    (tmp_path / "munge.key").write_bytes(bytes(range(128)))
    with (
        flux_lead(hosts="flux-sample-[0-3]") as lead,
        runner.about(lead.files.uri, config) as run,
    ):
        job = lead.flux("submit", "-N6", "--setattr=burstable", "hostname")
        monkeypatch.setenv("GOOGLE_PROJECT", PROJECT)
        monkeypatch.setenv("LEAD_HOST", "127.0.0.1")
        monkeypatch.setenv("LEAD_PORT", str(lead.plan.port))
        _, _, *words = shlex.split(os.path.expandvars(SEED.replace("\\\n", "")))
        up = run(*words)
        assert up.status == 0, up.stderr
        assert lead.online() >= set(HOSTS)
        job_id = job.stdout.strip()
        assert lead.flux("job", "attach", "--read-only", job_id).returncode == 0
        ran_on = lead.flux("jobs", "-no", "{nodelist}", job_id).stdout.strip()
        assert "burst-0-" in ran_on, "six nodes are more than the lead's own"

        joined, stays, login, listing = up.stdout.splitlines()
        assert joined.startswith("burst-0-[0-3] joined as ranks 4-7")
        assert "followers run image ghcr.io/flux-framework/flux-r" in up.stderr
        assert "--munge-key ./munge.key: goes into the burst's" in up.stderr
        assert "flux-operator-dev.yaml: applied" in up.stderr
        # Told too, but for a moment only, which a busy machine may miss.
        records = lead.flux("kvs", "dir", "-R", "-w0", "burst").stdout
        assert "GKE has begun to make flux-external-cluster-burst-0-" in records
        (cluster,) = gke.clusters.values()
        assert cluster.name.startswith("flux-external-cluster-burst-0-")
        assert login == (
            "to reach it: gcloud container clusters get-credentials"
            f" {cluster.name} --project={PROJECT} --location=us-central1-a"
        )
        assert listing.startswith("to reach it: kubectl --namespace=default get pods ")
        (pool,) = cluster.node_pools
        assert pool.config.machine_type == "n2-standard-8"
        assert pool.initial_node_count == 4

        begin = "it stays until: run-burst "
        assert stays.startswith(f"{begin}--down --name burst-0 --project")
        down = run(*stays.removeprefix(begin).split())
        assert down.status == 0, down.stderr
        assert gke.clusters == {}


def test_a_persons_way_to_the_cluster(run: Run, gke: Gke, cli: CliHarness) -> None:
    offer = {"machine_type": "n2-standard-8", "max_nodes": 4}
    table = {
        "type": "gke",
        "project": PROJECT,
        "location": "us-central1-a",
        "image": "registry.test/flux",
        "offers": {"n2": offer},
    }
    cli.write(providers={"gke": table})
    assert run("--provider", "gke", "-N1").lines
    (burst,) = cli.status()["bursts"]
    login, listing = cli.run("kubeconfig", burst["id"]).lines
    (cluster,) = gke.clusters.values()
    assert f"get-credentials {cluster.name} --project={PROJECT}" in login
    assert f"burst.flux-framework.org/id={burst['id']}" in listing
    cli.write(providers={})
    told = cli.run("kubeconfig", burst["id"])
    assert "gke, which these settings do not have; name the daemon's" in told.stderr
    assert run("--down", *GOOGLE).lines


def test_a_daemon_has_settings_of_its_own(run: Run, cli: CliHarness) -> None:
    with cli.daemon():
        said = run(*GOOGLE)
    assert said.status == 1
    assert f"--project {PROJECT}" in said.stderr
    assert "[providers.gke]" in said.stderr
