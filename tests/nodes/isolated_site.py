# SPDX-License-Identifier: MIT
"""A lead outside of real nodes, its daemon, and a provider of isolated bursts there.

Pods have this machine's Flux, by mounts.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import tomli_w

from burst.lead_setup.lead_plan import PlannedSlot
from burst.model.shape import Shape
from tests.e2e.programs import (
    BURST,
    PATH,
    host_paths,
    provider_table,
    run,
    running,
    says,
)
from tests.kubelab.build import PAUSE_IMAGE
from tests.kubelab.cluster import Cluster
from tests.kubelab.sandbox import OUTSIDE_IP
from tests.nodes.seed import some_user
from tests.nodes.waiting import wait_until
from tests.support.fluxlead import FluxLead, flux_lead
from tests.support.waiting import HANG_S

KINDS = "pods,jobs,configmaps,secrets,services"
OURS = ("-l", "burst.flux-framework.org/owner")
SLOT = PlannedSlot(hosts="burst-0-[0-1]", shape=Shape(1))
UNTIL_TOLD = "until [ -e /tmp/told ]; do sleep 0.2; done"
"""A script that ends once `tell_pods` was called."""
# It does not end by itself, nor when it is told to.
ENDLESS = ["sh", "-c", "trap '' TERM; while :; do sleep 1; done"]
NEVER = {"exec": {"command": ["false"]}, "periodSeconds": 1}


def container(name: str, **fields: Any) -> dict[str, Any]:
    """Return one with this machine's programs beside the broker's."""
    mounts = [
        {"name": f"host-{number}", "mountPath": path, "readOnly": True}
        for number, path in enumerate(host_paths(flux=True))
    ]
    return {
        "name": name,
        "command": ENDLESS,
        **fields,
        "image": PAUSE_IMAGE,
        "imagePullPolicy": "Never",
        "env": [{"name": "PATH", "value": PATH}, *fields.get("env", ())],
        "volumeMounts": [*mounts, *fields.get("volumeMounts", ())],
    }


class IsolatedSite:
    """A lead, its daemon, and a cluster where its jobs can run."""

    def __init__(
        self, lead: FluxLead, cluster: Cluster, namespace: str, place: Path
    ) -> None:
        self.lead = lead
        self.cluster = cluster
        self.namespace = namespace
        self.place = place
        self.config = place / "burst.toml"
        self.log = place / "daemon.log"
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
        # It waits by itself: to start the program again and again costs more.
        wait = ("job", "wait-event", f"--timeout={HANG_S:g}", job, "clean")
        wait_until(lambda: self.lead.flux(*wait).returncode == 0, self.look)
        lines = self.flux("job", "eventlog", "-f", "json", job).splitlines()
        events = [json.loads(line) for line in lines]
        given = [e["context"] for e in events if e["name"] == "alloc"]
        assert given in ([], [{"bypass": True}])  # no nodes of the lead
        note = self.flux("jobs", "-ano", "{user.burst.why}", job)
        status = self.lead.flux("job", "status", job).returncode
        assert not given or note.endswith(f": exit status {status}")
        return note

    def tell_pods(self) -> None:
        """Have what runs in the pods end."""
        told = ("-c", "broker", "--", "sh", "-c", "touch /tmp/told && echo told")
        for pod in self.objects("pods"):
            where = ("exec", "-n", self.namespace, pod["metadata"]["name"])
            wait_until(partial(self._says, "told", *where, *told), self.look)

    def _says(self, word: str, *words: str) -> bool:
        return word in self.cluster.kubectl(*words, check=False)

    def gone(self) -> None:
        """Wait until nothing of any burst is left."""
        wait_until(lambda: not self.objects(), self.look)


@contextmanager
def isolated_site(
    cluster: Cluster,
    namespace: str,
    place: Path,
    slot: PlannedSlot = SLOT,
    **more: Any,
) -> Iterator[IsolatedSite]:
    """Start a lead and its daemon; `more` goes into the provider's table."""
    ours = {"type": "kube", "user": some_user()}
    table = provider_table(cluster, namespace, **{**ours, **more})
    tables = {
        "daemon": {"cadence": "1s"},
        # A mount that the kubelet tries again, and a join, take minutes.
        "deadlines": {"join": "1h"},
        "providers": {"far": table},
    }
    with served_by(cluster, namespace, place, slot, tables) as found:
        yield found


@contextmanager
def served_by(
    cluster: Cluster,
    namespace: str,
    place: Path,
    slot: PlannedSlot,
    tables: Mapping[str, Any],
) -> Iterator[IsolatedSite]:
    """Start a lead, and a daemon with these settings."""
    with flux_lead(slot, address=OUTSIDE_IP) as lead, ExitStack() as stack:
        found = IsolatedSite(lead, cluster, namespace, place)
        found.config.write_text(tomli_w.dumps(tables))
        command = [BURST, "daemon", "-c", str(found.config), "--uri", lead.files.uri]

        def start() -> subprocess.Popen[bytes]:
            daemon = stack.enter_context(running(command, found.log))
            says(found.log, " serves ")
            return daemon

        found.start = start
        found.daemon = start()
        yield found
