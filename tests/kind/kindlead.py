# SPDX-License-Identifier: MIT
"""A lead in a pod of a kind cluster of its own, behind a NodePort.

Its files are in a directory that this host, the cluster's node and the pod have at one
path, so its socket is this host's too: commands and daemon are used from here.
"""

from __future__ import annotations

import contextlib
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from burst.lead_setup.lead_files import LeadFiles, write_lead
from burst.lead_setup.lead_plan import LeadPlan, PlannedSlot
from burst.model.shape import Shape
from tests.kind.kindnear import LONG_S, NearCluster
from tests.support.fluxlead import broker_environment
from tests.support.waiting import HANG_S, wait_until

NODE_PORT = 30093
FOLLOWERS = 2
_SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def path_with(program: str) -> str:
    """Return a PATH for a pod by which what lies beside the program is found."""
    return f"{Path(program).parent}:{_SYSTEM_PATH}"


class PodLead:
    """The lead, and jobs for it."""

    def __init__(self, cluster: NearCluster, directory: Path) -> None:
        self.cluster = cluster
        self.directory = directory
        plan = LeadPlan(
            hosts="lead-0",
            shape=Shape(1),
            slots=(PlannedSlot(hosts=f"burst-0-[0-{FOLLOWERS - 1}]", shape=Shape(1)),),
            address=cluster.address(),
            port=NODE_PORT,
        )
        self.files: LeadFiles = write_lead(directory / "lead", plan)
        self.uri = self.files.uri

    def start(self) -> None:
        """Start the pod and open the port; return once the lead serves."""
        for manifest in (self.pod(), self._service()):
            self.cluster.kubectl("apply", "-f", "-", manifest=manifest)
        try:
            wait_until(self.is_up, "the lead to serve", LONG_S)
            # It serves on a socket before its port is open: kube-proxy takes its time.
            wait_until(self._is_open, "the NodePort to open", LONG_S)
        except AssertionError as failure:
            said = self.cluster.kubectl("describe", "pod", "lead")
            said += self.cluster.kubectl("logs", "lead")
            raise AssertionError(said) from failure

    def stop(self) -> None:
        """Delete the pod, and close the port."""
        self.cluster.kubectl("delete", "pod/lead", "service/lead", "--wait=true")

    def _is_open(self) -> bool:
        try:
            socket.create_connection(
                (self.cluster.address(), NODE_PORT), timeout=1
            ).close()
        except OSError:
            return False
        return True

    def pod(self) -> dict[str, Any]:
        """Return its manifest."""
        path = str(self.directory)
        variables = {"SHELL": "/bin/sh", "PATH": path_with(self.command()[0])}.items()
        container = {
            "name": "lead",
            "image": self.cluster.image,
            "imagePullPolicy": "Never",
            "command": self.command(),
            "env": [{"name": name, "value": value} for name, value in variables],
            "volumeMounts": [
                {"name": "files", "mountPath": path},
                {"name": "tmp", "mountPath": "/var/tmp"},
            ],
        }
        spec = {
            "hostname": "lead-0",
            "terminationGracePeriodSeconds": 5,
            "containers": [container],
            "volumes": [
                {"name": "files", "hostPath": {"path": path}},
                {"name": "tmp", "emptyDir": {}},
            ],
        }
        meta = {"name": "lead", "labels": {"app": "lead"}}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}

    def _service(self) -> dict[str, Any]:
        port = {"port": 8050, "targetPort": NODE_PORT, "nodePort": NODE_PORT}
        spec = {"type": "NodePort", "selector": {"app": "lead"}, "ports": [port]}
        meta = {"name": "lead"}
        return {"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": spec}

    def command(self) -> list[str]:
        """Return what its pod runs."""
        # Of its image, only what the image's PATH names would be found by name.
        program, *words = self.files.commands[0]
        return [shutil.which(program) or program, *words]

    def submit(self, command: list[str]) -> str:
        """Submit a burstable job for all followers and return its id."""
        size = (f"-N{FOLLOWERS}", "--requires=burst")
        words = ("submit", *size, "--setattr=burstable", "--cwd=/tmp", *command)
        done = self._flux(*words)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def is_done(self, job: str) -> bool:
        """Tell whether a job has ended."""
        return self._flux("jobs", "-no", "{state}", job).stdout.strip() == "INACTIVE"

    def output(self, job: str) -> str:
        """Return what a job says, once it has ended."""
        done = self._flux("job", "attach", "--read-only", job)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def is_up(self) -> bool:
        """Tell whether it serves."""
        return " run " in self._flux("uptime").stdout

    def _flux(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["flux", *words],
            env={**broker_environment(), "FLUX_URI": self.uri},
            capture_output=True,
            text=True,
            timeout=HANG_S,
            check=False,
        )


@contextlib.contextmanager
def pod_lead(cluster: NearCluster) -> Iterator[PodLead]:
    """Give a lead that serves, and leave nothing of it."""
    directory = cluster.directory / "flux"
    directory.mkdir()
    lead = PodLead(cluster, directory)
    try:
        lead.start()
        yield lead
    finally:
        lead.stop()
        shutil.rmtree(directory)
