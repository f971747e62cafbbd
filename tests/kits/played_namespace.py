# SPDX-License-Identifier: MIT
"""A namespace with two bursts, whose API server is played."""

from typing import Any

from burst.kits.kube.kinds import Manifest
from burst.kits.pods.names import HOSTS, ID, INDEX, SPEC, STARTED
from burst.provider import Phase
from tests.kits.kubeserver import ABSENT, Said, Watch
from tests.kits.pods import bursts_in
from tests.support.waiting import wait_until

ROOT = "/api/v1/namespaces/jobs"
PODS = f"{ROOT}/pods"
JOBS = "/apis/batch/v1/namespaces/jobs/jobs"
NOW = 1_767_225_700.0
"""Some seconds after the brokers were started."""
BURSTS = "burst-0-aaaaaa", "burst-1-bbbbbb"
JOINED = "<6>broker.info[1]: parent-ready: join->config-sync 4ms"
REFUSED = "<7>x: parent sockevent tcp://h:1 connect delayed/closed"


def meta(name: str, burst: str, index: str = "") -> dict[str, Any]:
    labels = {ID: burst, "other": "x", **({INDEX: index} if index else {})}
    host = burst.rpartition("-")[0]
    annotations = {HOSTS: f"{host}-0", SPEC: "1", STARTED: "1", "other": "y"}
    uid = f"uid-{name}"
    return {"name": name, "uid": uid, "labels": labels, "annotations": annotations}


def job(burst: str) -> Manifest:
    return {"metadata": meta(burst, burst), "spec": {"template": {"spec": {}}}}


def pod(burst: str, restarts: int = 0, **state: Any) -> Manifest:
    status = {
        "name": "broker",
        "restartCount": restarts,
        "state": state or {"running": {"startedAt": "2026-01-01T00:00:00Z"}},
    }
    return {
        "metadata": meta(f"{burst}-0-x", burst, "0"),
        "spec": {"nodeName": "n", "containers": [{"name": "broker", "env": ["big"]}]},
        "status": {"phase": "Running", "containerStatuses": [status]},
    }


def let_provision(server: Said, burst: str) -> Manifest:
    """Let a burst be made, of which no watch tells; return its Job."""
    made = job(burst)
    made["metadata"]["namespace"] = "jobs"
    for path in (JOBS, f"{ROOT}/configmaps", f"{ROOT}/secrets", f"{ROOT}/services"):
        server.answer("GET", f"{path}/{burst}", ABSENT)
        server.answer("POST", path, (201, made))
    server.answer("PATCH", f"{JOBS}/{burst}", (200, made))
    return made


class Namespace:
    """Two bursts of one pod each that run, and their provider."""

    def __init__(self, server: Said) -> None:
        self.server = server
        server.watches |= {PODS: [], JOBS: []}
        self.serve = server.serve
        self.bursts = bursts_in(server, lambda: NOW)
        server.serve_nothing()
        self.serve(JOBS, *map(job, BURSTS))
        self.serve(PODS, *map(pod, BURSTS))
        for burst in BURSTS:
            self.log(burst, JOINED)

    def log(self, burst: str, text: str) -> None:
        self.server.answer("GET", f"{PODS}/{burst}-0-x/log", (200, text))

    def phases(self) -> list[Phase]:
        return [status.phase for status in self.bursts.observe()]

    def wait_for(self, *phases: Phase) -> None:
        """Observe until the bursts are in these phases."""
        wait_until(lambda: self.phases() == [*phases], self.phases)

    def watch(self) -> Watch:
        """Observe until pods are watched."""
        self.bursts.observe()
        self.bursts.observe()
        return self.server.watches[PODS][-1]

    def close(self) -> None:
        for watch in (*self.server.watches[PODS], *self.server.watches[JOBS]):
            watch.end(cut=True)

    def asked(self, part: str) -> int:
        return sum(part in path for _, path, _ in self.server.asked)
