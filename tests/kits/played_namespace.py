# SPDX-License-Identifier: MIT
"""A namespace with two bursts, whose API server is played."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from burst.kits.kube import Cluster, Endpoint
from burst.kits.kube.kinds import Manifest
from burst.kits.pods import PodBursts
from burst.kits.pods.names import HOSTS, ID, INDEX, SPEC, STARTED
from burst.provider import Phase
from tests.kits.kubeserver import Said, Watch, api_server
from tests.kits.pods import SETTINGS, TAGS
from tests.support.waiting import HANG_S

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


class Namespace:
    """Two bursts of one pod each that run, and their provider."""

    def __init__(self, server: Said) -> None:
        self.server = server
        cluster = Cluster(Endpoint(server.url, "", lambda: "t"), timeout=HANG_S)
        self.bursts = PodBursts(cluster, SETTINGS, TAGS, clock=lambda: NOW)
        self.serve(JOBS, *map(job, BURSTS))
        self.serve(PODS, *map(pod, BURSTS))
        for kind in ("configmaps", "secrets", "services", "events"):
            self.serve(f"{ROOT}/{kind}")
        for burst in BURSTS:
            self.log(burst, JOINED)

    def serve(self, path: str, *items: Manifest) -> None:
        page = {"metadata": {"resourceVersion": "7"}, "items": items}
        self.server.answer("GET", path, (200, page))

    def log(self, burst: str, text: str) -> None:
        self.server.answer("GET", f"{PODS}/{burst}-0-x/log", (200, text))

    def phases(self) -> list[Phase]:
        return [status.phase for status in self.bursts.observe()]

    def watch(self) -> Watch:
        """Observe until pods are watched."""
        self.bursts.observe()
        self.bursts.observe()
        return self.server.watches[PODS][-1]

    def asked(self, part: str) -> int:
        return sum(part in path for _, path, _ in self.server.asked)


@contextmanager
def played_namespace() -> Iterator[Namespace]:
    """Play it for the time of a test."""
    with api_server() as server:
        server.watches |= {PODS: [], JOBS: []}
        namespace = Namespace(server)
        yield namespace
        for watch in (*server.watches[PODS], *server.watches[JOBS]):
            watch.end(cut=True)
        namespace.bursts.close()
