# SPDX-License-Identifier: MIT
"""manifests/ensemble-agent: a MiniCluster of the real Flux Operator is a member of an
ensemble, by the agent in its pods.
"""

from __future__ import annotations

import json
import os
import signal
import time
import tomllib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import tomli_w
import yaml

from tests.e2e.programs import BURST
from tests.e2e.shellimage import SHELL_IMAGE
from tests.kubelab.cluster import Cluster
from tests.kubernetes.access import new_namespace
from tests.nodes.miniclusters import (
    flux_operator,
    mounted_directories,
    needs_operator,
    patch_of,
)
from tests.nodes.seed import (
    LEAD_ENVIRONMENT,
    MANIFESTS,
    Seed,
    named_namespaces,
    some_user,
)
from tests.nodes.waiting import wait_until
from tests.support.fluxlead import needs_flux

pytestmark = [
    pytest.mark.xdist_group("namespace-burst"),
    pytest.mark.nodes,
    needs_flux,
    needs_operator,
]
FILES = MANIFESTS / "ensemble-agent"
TOKEN = "0123456789abcdef0123456789abcdef"
SOCKET = "local:///mnt/flux/config/run/flux/local"
ABOUT = "shared/research"
_WAIT = "flux kvs get --namespace=primary --waitcreate"
STEP = (
    "sh -c 'n=$(flux jobs -n --filter=completed | wc -l);"
    f" [ $n -lt 2 ] || {_WAIT} restarted; [ $n -lt 5 ] || {_WAIT} moved'"
)
"""In place of `sleep 5`: after so many, the next waits for what the test does."""


class AgentSeed(Seed):
    """Both sides, with the names that are in the files; `far` is the member's."""

    overlay = "ensemble-agent"
    changed = (*Seed.changed, "ensemble.toml")

    def apply(self, idle: str = "1s") -> None:
        kubectl = self.cluster.kubectl
        literal = f"--from-literal=token={TOKEN}"
        for place, name in ((self.near, "http"), (self.far, "agent")):
            kubectl("create", "namespace", place)
            secret = ("create", "secret", "generic", f"burst-{name}-token")
            kubectl(*secret, "-n", place, literal)
        folder = self.overlay
        self.apply_lead(
            idle,
            components=[self._path("ensemble-agent/state", folder)],
            patches=[self._member(), self._state()],
        )

    def _state(self) -> dict[str, Any]:
        """Make a volume for the member's state; return the patch that claims it."""
        claim = json.loads(self._claim("research-state", self.far)["patch"])
        # kustomize finds it by all that its own file says.
        claim["metadata"]["namespace"] = self.far
        return {"patch": json.dumps(claim)}

    def _write_files(self, idle: str) -> None:
        resources = json.loads((self.files / "R").read_text())
        for group in resources["execution"]["R_lite"]:
            group["children"]["core"] = "0"
        (self.place / "R").write_text(json.dumps(resources))
        tables = tomllib.loads((FILES / "lead" / "burst.toml").read_text())
        tables["daemon"] |= {"cadence": "1s"}
        (self.place / "burst.toml").write_text(tomli_w.dumps(tables))
        ensemble = tomllib.loads((FILES / "lead" / "ensemble.toml").read_text())
        (step,) = ensemble["members"][0]["jobs"]
        assert step["command"] == "sleep 5"
        step["command"] = STEP
        (self.place / "ensemble.toml").write_text(tomli_w.dumps(ensemble))

    def _member(self) -> dict[str, Any]:
        """Return the patch that puts this machine's programs in place of images."""
        (cluster,) = yaml.safe_load_all(
            (FILES / "member" / "minicluster.yaml").read_text()
        )
        init = cluster["spec"]["containers"][1]["commands"]["init"]
        user = some_user()
        own = {"runAsUser": user, "runAsGroup": user}
        changes: dict[str, Any] = {
            "/flux/container/image": SHELL_IMAGE,
            "/flux/container/disable": True,
            "/pod/securityContext/fsGroup": user,
            "/containers/0/resources/requests/cpu": "100m",
            "/containers/0/environment": LEAD_ENVIRONMENT,
            "/containers/1/commands/init": init.replace("/opt/burst/bin/burst", BURST),
        }
        for name, volume in mounted_directories().items():
            changes[f"/containers/0/volumes/{name}"] = volume
        for name, text in LEAD_ENVIRONMENT.items():
            changes[f"/containers/1/environment/{name}"] = text
        for container in ("/flux/container", "/containers/0", "/containers/1"):
            for key, value in own.items():
                changes[f"{container}/securityContext/{key}"] = value
        for container in ("/containers/0", "/containers/1"):
            changes[f"{container}/image"] = SHELL_IMAGE
            changes[f"{container}/imagePullPolicy"] = "Never"
        return patch_of("research", changes)

    @property
    def member(self) -> dict[str, Any]:
        """The member, empty as the ensemble is."""
        return dict(self.ensemble().get("members", {}).get("research", {}))

    def succeeded(self) -> int:
        """Return how many jobs have."""
        groups = self.member.get("jobs", {})
        return int(groups["step"]["tally"]["success"]) if groups else 0

    def pods(self) -> dict[str, dict[str, Any]]:
        """Return the member's pods that are not going, by their index."""
        where = ("pods", "-l", "job-name=research", "-n", self.far, "-o", "json")
        found = json.loads(self.cluster.kubectl("get", *where))["items"]
        index = "batch.kubernetes.io/job-completion-index"
        return {
            pod["metadata"]["labels"][index]: pod
            for pod in found
            if "deletionTimestamp" not in pod["metadata"]
        }

    def agent(self, index: str = "0") -> dict[str, Any]:
        """Return the status of the agent's container in a pod, empty without one."""
        pod = self.pods().get(index, {"status": {}})
        found = pod["status"].get("containerStatuses", ())
        return next((each for each in found if each["name"] == "agent"), {})

    def first_pod(self) -> str:
        """Return the name of the pod of the member's rank 0, empty without one."""
        return str(self.pods().get("0", {"metadata": {"name": ""}})["metadata"]["name"])

    def member_flux(self, *words: str, check: bool = True) -> str:
        """Run flux in the broker's container of the member's rank 0."""
        where = ("exec", "-n", self.far, self.first_pod(), "-c", "research")
        program = ("env", f"FLUX_URI={SOCKET}", "flux")
        return self.cluster.kubectl(*where, "--", *program, *words, check=check)

    def serves(self) -> bool:
        """Tell whether the member's instance answers.

        With one pod of two it runs jobs, and says that it waits for a quorum.
        """
        return bool(self.member_flux("kvs", "dir", check=False))

    def tell(self, event: str) -> None:
        """Have the jobs end that wait for this."""
        self.member_flux("kvs", "put", f"{event}=1")

    def look(self) -> str:
        """Return, too, what the member's instance says of its nodes and jobs."""
        told = [super().look(), json.dumps(self.ensemble())]
        commands = (("resource", "list"), ("overlay", "status"), ("jobs", "-a"))
        told += [self.member_flux(*words, check=False) for words in commands]
        return "\n".join(told)

    def agent_log(self) -> str:
        """Return what the agents of all pods wrote, this time."""
        where = ("logs", "-n", self.far, "-l", "job-name=research", "--tail=-1")
        return self.cluster.kubectl(*where, "-c", "agent", check=False)


@pytest.fixture
def seed(cluster: Cluster, tmp_path: Path) -> Iterator[AgentSeed]:
    seed = AgentSeed(cluster, "burst", "burst-member", tmp_path)
    with flux_operator(tmp_path / "operator.log"), named_namespaces(seed):
        try:
            yield seed
        finally:
            everything = ("miniclusters,jobs", "--all", "-n", seed.far)
            cluster.kubectl("delete", *everything, check=False)


def kill_agent() -> None:
    """Kill the process of the agent, whose container the kubelet starts again."""
    found = [
        int(pid)
        for pid in filter(str.isdecimal, os.listdir("/proc"))
        if ABOUT.encode() in words_of(Path("/proc", pid, "cmdline"))
    ]
    assert found, "no agent runs"
    for pid in found:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def words_of(path: Path) -> list[bytes]:
    try:
        return path.read_bytes().split(b"\0")
    except OSError:
        return []  # it has ended


def test_a_minicluster_of_somebody_else_runs_each_job_once(seed: AgentSeed) -> None:
    seed.apply()
    wait_until(lambda: seed.succeeded() >= 1, seed.look)
    instance = check_report(seed)
    own = seed.member_flux("submit", "-N1", "--cwd=/tmp", "true").strip()
    kill_agent()
    wait_until(lambda: seed.agent().get("restartCount", 0) >= 1, seed.look)
    before = seed.succeeded()
    seed.tell("restarted")
    wait_until(lambda: seed.succeeded() > before, seed.look)

    # The pod of rank 0 with broker and agent; the next one has the same instance.
    pod = seed.first_pod()
    seed.cluster.kubectl("delete", "pod", pod, "-n", seed.far, "--grace-period=20")
    wait_until(seed.serves, seed.look)
    seed.tell("moved")
    wait_until(lambda: seed.ensemble().get("state") == "ended", seed.look)
    member = seed.member["member"]
    assert member["why"] == "8 jobs have succeeded"
    assert member["instance"] == instance
    assert seed.first_pod() != pod
    check_jobs(seed, own)
    wait_until(lambda: ended(seed) == [0, 0], seed.look)
    check_token(seed)


def ended(seed: AgentSeed) -> list[int | None]:
    """Return the exit statuses of the agents in both pods."""
    states = (seed.agent(index).get("state", {}) for index in ("0", "1"))
    return [state.get("terminated", {}).get("exitCode") for state in states]


def check_report(seed: AgentSeed) -> str:
    """The daemon knows the instance by its agent; return which it is."""
    shown: dict[str, Any] = {}

    def is_told() -> bool:
        shown.clear()
        shown.update(seed.member)
        up = shown.get("nodes", {}).get("node_up_count")
        return up == 2 and shown["member"]["silent"] is False

    wait_until(is_told, seed.look)
    assert shown["member"]["bursts"] == []
    assert seed.status()["providers"] == []
    said = (
        f"agent of {ABOUT} beside {SOCKET}",
        "the token is sent in the clear to burst-daemon.burst.svc",
        "this is pod 1; the agent is beside rank 0",
    )

    def all_said() -> bool:
        log = seed.agent_log()
        return all(words in log for words in said)

    # The kubelet starts an agent's container after the broker's of its pod.
    wait_until(all_said, lambda: f"{said} in {seed.agent_log()}")
    return str(shown["member"]["instance"])


def check_jobs(seed: AgentSeed, own: str) -> None:
    """Each job ran once, on nodes of the MiniCluster, and none at the lead."""
    wait_until(seed.serves, seed.look)
    form = ("jobs", "-a", "-n", "-o", "{id} {name} {result} {nodelist}")
    rows = [line.split() for line in seed.member_flux(*form).splitlines()]
    assert own in {row[0] for row in rows}, rows
    jobs = [row for row in rows if row[0] != own]
    names = [name.partition("-")[0] for _, name, *_ in jobs]
    assert all(name.startswith("shared.research.step.") for name in names), rows
    assert len(set(names)) == len(names), rows
    results = [result for _, _, result, *_ in jobs]
    # Others ran when the pod of rank 0 was deleted, which ends them.
    assert results.count("COMPLETED") == 8, "\n".join(map(str, [*rows, seed.look()]))
    assert len(results) <= 8 + 2, rows
    assert {row[3] for row in jobs if row[2] == "COMPLETED"} <= {
        "research-0",
        "research-1",
    }
    assert seed.flux("jobs", "-a", "-n").strip() == ""


def check_token(seed: AgentSeed) -> None:
    """It is in Secrets alone: in no object besides, no event, no log."""
    kinds = "pods,jobs,configmaps,services,events"
    everything = [seed.log(), seed.agent_log()]
    for place in (seed.near, seed.far):
        found = seed.cluster.kubectl("get", kinds, "-n", place, "-o", "json")
        everything.append(found)
    named = ("miniclusters", "-n", seed.far, "-o", "json")
    everything.append(seed.cluster.kubectl("get", *named))
    assert TOKEN not in "".join(everything)


def test_its_pods_are_admitted_where_the_restricted_standard_is_enforced(
    cluster: Cluster, tmp_path: Path
) -> None:
    """As it is, with images that cannot be had here."""
    with (
        new_namespace(cluster, "restricted") as place,
        flux_operator(tmp_path / "operator.log"),
    ):
        label = "pod-security.kubernetes.io/enforce=restricted"
        cluster.kubectl("label", "namespace", place, label)
        file = FILES / "member" / "minicluster.yaml"
        cluster.kubectl("apply", "-n", place, "-f", file)

        def pods() -> list[str]:
            names = (
                "get",
                "pods",
                "-l",
                "job-name=research",
                "-n",
                place,
                "-o",
                "name",
            )
            return cluster.kubectl(*names).split()

        wait_until(lambda: len(pods()) == 2, lambda: events(cluster, place))
        assert "violates PodSecurity" not in events(cluster, place)


def events(cluster: Cluster, place: str) -> str:
    time.sleep(0.2)
    return cluster.kubectl("get", "events,jobs,pods", "-n", place)
