# SPDX-License-Identifier: MIT
"""A lead outside with its daemon, which bursts by the settings of examples/mpi."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from burst.lead_setup.lead_plan import PlannedSlot
from burst.model.shape import Shape
from tests.e2e.programs import ENVIRONMENT, ROOT, provider_table
from tests.kubelab.cluster import Cluster
from tests.nodes.isolated_site import IsolatedSite, served_by
from tests.support.pod_words import pod_words

EXAMPLE = ROOT / "examples" / "mpi"
PODS = 2
CORES = 2
"""Of a pod, and of the machine that its nodes share."""


@contextmanager
def mpi_lead(cluster: Cluster, namespace: str, place: Path) -> Iterator[IsolatedSite]:
    """Run them, with the log and the settings in `place`; bursts end when idle."""
    slot = PlannedSlot(hosts=f"burst-0-[0-{PODS - 1}]", shape=Shape(CORES))
    tables = _tables(cluster, namespace)
    with served_by(cluster, namespace, place, slot, tables) as site:
        yield site


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
