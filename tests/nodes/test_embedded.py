# SPDX-License-Identifier: MIT
"""A job of an embedded lead outside of the cluster runs in pods, driven by the daemon.

The whole path, by the commands that a user has: files by `burst lead init`, the lead,
`burst daemon`, a job that is only submitted; then nothing of it is left.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import tomli_w
from burst_embedded.commands import STAND_IN

from burst.kits import certificate
from burst.lead_setup.init_lead import InitializedLead, init_lead
from burst.lead_setup.lead_plan import LeadPlan, PlannedSlot
from burst.model.shape import Shape
from tests.e2e.programs import BURST, host_paths, run, running, says
from tests.kubelab.build import PAUSE_IMAGE
from tests.kubelab.cluster import Cluster
from tests.kubelab.sandbox import OUTSIDE_IP
from tests.nodes.waiting import wait_until
from tests.support.pod_words import pod_words
from tests.support.ports import free_port

pytestmark = pytest.mark.nodes
KINDS = "pods,jobs,configmaps,secrets,services"
OURS = ("-l", "burst.flux-framework.org/owner", "-o", "json")


@pytest.fixture
def directory() -> Iterator[Path]:
    """A short one: sockets are in it. Pods do not see it."""
    path = Path(tempfile.mkdtemp(prefix="b-", dir="/tmp"))
    yield path
    shutil.rmtree(path)


@pytest.fixture
def ready(directory: Path) -> InitializedLead:
    plan = LeadPlan(
        hosts="lead-0",
        shape=Shape(1),
        slots=(PlannedSlot(hosts="burst-0-[0-1]", shape=Shape(1)),),
        address=OUTSIDE_IP,
        port=free_port(),
    )
    return init_lead(directory / "lead", plan, "none")


def uri_of(ready: InitializedLead) -> str:
    return STAND_IN.uri(ready.settings.parent)


def write_settings(ready: InitializedLead, cluster: Cluster, namespace: str) -> Path:
    kube = {
        "type": "kube",
        "kubeconfig": str(cluster.kubeconfig),
        "namespace": namespace,
        "image": PAUSE_IMAGE,
        "image_pull": "Never",
        "one_per_node": False,
        "host_paths": host_paths(),
        "python": str(Path(BURST).with_name("python")),
        "pod": pod_words({"PYTHONDONTWRITEBYTECODE": "1"}),
        "offers": {"nodes": {"cores": 1, "cpu": "100m", "max_nodes": 2}},
    }
    tables = {
        "lead": {"uri": uri_of(ready), "address": OUTSIDE_IP},
        "deadlines": {"lead": "30s", "idle": "1s"},
        "daemon": {"cadence": "1s"},
        "providers": {"kube": kube},
    }
    ready.settings.write_text(tomli_w.dumps(tables))
    return ready.settings


def objects(cluster: Cluster, namespace: str) -> list[dict[str, Any]]:
    """Return all objects of bursts in the namespace."""
    found = cluster.kubectl("get", KINDS, "-n", namespace, *OURS)
    return list(json.loads(found)["items"])


def test_a_job_that_is_submitted_runs_in_pods_and_nothing_is_left(
    cluster: Cluster, namespace: str, ready: InitializedLead, directory: Path
) -> None:
    settings = write_settings(ready, cluster, namespace)
    options = ("-c", str(settings))
    # The daemon first: it waits for the lead.
    log = directory / "daemon.log"
    (command,) = STAND_IN.brokers(ready.settings.parent, ("lead-0",))
    with ExitStack() as stack:
        stack.enter_context(running([BURST, "daemon", *options], log))
        says(log, "waiting, for at most 30s")
        stack.enter_context(running([BURST, *command[1:]], directory / "lead.log"))
        says(log, " serves embedded ")
        uri = f"--uri={uri_of(ready)}"
        name = ("sh", "-c", "cat /etc/hostname; echo $FLUX_JOB_NNODES")
        wanted = ("-N2", "--requires=burst", "--setattr=burstable")
        job = run(BURST, "embedded", "submit", uri, *wanted, *name).strip()
        # Before it ends: the daemon takes all of it down soon after.
        there: list[dict[str, Any]] = []

        def made() -> bool:
            there[:] = objects(cluster, namespace)
            return {"Job", "Pod", "Secret"} <= {thing["kind"] for thing in there}

        wait_until(made, log.read_text)
        try:
            output = run(BURST, "embedded", "attach", uri, job).split()
        except BaseException:
            print(log.read_text(), objects(cluster, namespace))  # noqa: T201
            raise
        # Each task wrote the name of the pod that it ran in.
        [stem] = [t["metadata"]["name"] for t in there if t["kind"] == "Job"]
        assert sorted(set(output) - {"2"}) == [f"{stem}-0", f"{stem}-1"]
        wait_until(
            lambda: not objects(cluster, namespace),
            lambda: f"{log.read_text()}\n{objects(cluster, namespace)}",
        )
        says(log, "reaped")
        status = json.loads(run(BURST, "status", "-a", "--json", *options))
        assert [burst["state"] for burst in status["bursts"]] == ["inactive"]
    key = certificate.read(ready.files.certificate).secret.decode()
    events = cluster.kubectl("get", "events", "-n", namespace, "-o", "json")
    public = [thing for thing in there if thing["kind"] != "Secret"]
    assert key not in json.dumps(public) + events + log.read_text()
