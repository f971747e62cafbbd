# SPDX-License-Identifier: MIT
"""What would keep followers from running in a kind cluster, found before they do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import urlsplit

from burst.errors import ProviderError
from burst.model.finding import Finding, note, ok, wrong
from burst.model.host import is_loopback
from burst.model.lead import LeadIdentity
from burst_kind.cluster import ClusterState, ClusterView, KindCluster, is_archive
from burst_kind.programs import Programs


def examine_cluster(cluster: KindCluster, view: ClusterView) -> Iterator[Finding]:
    """Say how the cluster is. That it could be read says that docker answers."""
    name = f"the kind cluster {cluster.name}"
    why = f": {view.why}" if view.why else ""
    if view.stage is ClusterState.ABSENT and cluster.ours:
        yield ok(f"{name} is made for the first burst; docker answers")
    elif view.stage is ClusterState.ABSENT:
        yield wrong(
            f"there is no kind cluster {cluster.name}",
            f"`kind create cluster --name {cluster.name}` makes one, or create = true",
        )
    elif view.stage in (ClusterState.FAILED, ClusterState.BROKEN):
        advice = "its bursts are ended, and then it is deleted"
        yield wrong(
            f"{name}: {view.stage.value}{why}",
            advice if cluster.ours else "`docker start` its nodes, or make it anew",
        )
    elif view.stage is ClusterState.READY:
        yield ok(f"{name} runs with {len(view.nodes)} nodes")
    else:
        yield note(f"{name}: {view.stage.value}{why}", "look again in half a minute")
    yield from _examine_kind(cluster)


def examine_images(programs: Programs, images: Sequence[str]) -> Iterator[Finding]:
    """Look whether what is to be loaded is there."""
    for image in images:
        if is_archive(image):
            if Path(image).is_file():
                yield ok(f"{image} is there to be loaded")
            else:
                yield wrong(f"there is no file {image}", "set images to what is there")
            continue
        try:
            programs.run(programs.docker("image", "inspect", "--format=.", image))
        except ProviderError:
            yield wrong(f"docker has no image {image}", f"docker pull {image}")
        else:
            yield ok(f"{image} is there to be loaded")


def examine_address(setting: str, lead: LeadIdentity | None) -> Iterator[Finding]:
    """Look at where followers are told that the lead is."""
    if lead is None:
        return
    host = urlsplit(lead.endpoint).hostname or ""
    if is_loopback(host):
        yield wrong(
            f"{lead.endpoint} leads each pod to itself",
            'set lead = "host" if the lead runs on this host and listens on all its'
            " addresses",
        )
    elif setting:
        yield ok(f"followers find the lead at {lead.endpoint}, which is {setting}'s")


def _examine_kind(cluster: KindCluster) -> Iterator[Finding]:
    try:
        yield ok(f"nodes are made by {cluster.version()}")
    except ProviderError as error:
        yield wrong(error.what, error.advice or "try it again")
