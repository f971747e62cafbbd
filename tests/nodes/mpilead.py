# SPDX-License-Identifier: MIT
"""A lead outside with its daemon, which bursts by the settings of examples/mpi."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import tomli_w

from burst.lead_setup.lead_plan import PlannedSlot
from burst.model.shape import Shape
from tests.e2e.programs import (
    BURST,
    ENVIRONMENT,
    ROOT,
    provider_table,
    running,
    says,
)
from tests.kubelab.cluster import Cluster
from tests.kubelab.sandbox import OUTSIDE_IP
from tests.support.fluxlead import FluxLead, flux_lead
from tests.support.pod_words import pod_words

EXAMPLE = ROOT / "examples" / "mpi"
PODS = 2
CORES = 2
"""Of a pod, and of the machine that its nodes share."""
_LOOK = "pods,jobs,events"


class MpiLead:
    """The lead, and what is to be seen of its bursts."""

    def __init__(
        self, lead: FluxLead, cluster: Cluster, namespace: str, log: Path
    ) -> None:
        self.lead = lead
        self.cluster = cluster
        self.namespace = namespace
        self.log = log

    def bursts(self) -> str:
        """Return the names of the Jobs of bursts; empty without any."""
        where = ("-n", self.namespace, "-o", "name")
        return self.cluster.kubectl("get", "jobs", *where).strip()

    def look(self) -> str:
        """Return what a person would look at who asks what is wrong."""
        where = ("-n", self.namespace)
        logs = ("logs", *where, "-l", "job-name", "--tail=20")
        return "\n".join(
            [
                self.log.read_text(),
                self.cluster.kubectl("get", _LOOK, *where),
                self.cluster.kubectl(*logs, check=False),
            ]
        )


@contextmanager
def mpi_lead(cluster: Cluster, namespace: str, place: Path) -> Iterator[MpiLead]:
    """Run them, with the log and the settings in `place`; bursts end when idle."""
    slot = PlannedSlot(hosts=f"burst-0-[0-{PODS - 1}]", shape=Shape(CORES))
    settings, log = place / "burst.toml", place / "daemon.log"
    with flux_lead(slot, address=OUTSIDE_IP) as lead:
        settings.write_text(tomli_w.dumps(_tables(cluster, namespace)))
        command = [BURST, "daemon", "-c", str(settings), "--uri", lead.files.uri]
        with running(command, log):
            says(log, " serves ")
            yield MpiLead(lead, cluster, namespace, log)


def _tables(cluster: Cluster, namespace: str) -> dict[str, Any]:
    """Return the example's settings with this machine's programs as the image."""
    tables = tomllib.loads((EXAMPLE / "burst.toml").read_text())
    # The lead's own files say at which address and port it is.
    del tables["lead"]
    tables["deadlines"] |= {"idle": "20s", "join": "1h"}
    tables["daemon"] = {"cadence": "1s"}
    table = tables["providers"]["far"]
    del table["context"]
    # The example's pod stays, with the variables that this machine's programs need.
    pod, [ours] = table["pod"], pod_words(ENVIRONMENT)["spec"]["containers"]
    [broker] = pod["spec"]["containers"]
    broker |= ours
    table |= provider_table(cluster, namespace, offers=table["offers"], pod=pod)
    for offer in table["offers"].values():
        offer |= {"cores": CORES, "cpu": "100m", "memory": "1500Mi", "max_nodes": PODS}
    return tables
