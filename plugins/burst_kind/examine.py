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
    """Report the state of the cluster, and the version of kind."""
    name = f"the kind cluster {cluster.name}"
    if view.state is ClusterState.ABSENT and cluster.ours:
        yield ok(f"docker answers; {name} is made for the first burst")
    elif view.state is ClusterState.ABSENT:
        yield wrong(
            f"there is no kind cluster {cluster.name}",
            f"`kind create cluster --name {cluster.name}` makes one, or create = true",
        )
    elif view.state in (ClusterState.FAILED, ClusterState.BROKEN):
        deleted = "nothing: its bursts are ended, and then it is deleted"
        by_hand = "`docker start` its nodes, or delete it and create it again"
        yield wrong(f"{name} {view.text}", deleted if cluster.ours else by_hand)
    elif view.state is ClusterState.READY:
        yield ok(f"{name} runs with {len(view.nodes)} nodes")
    else:
        yield note(f"{name} {view.text}", "look again in half a minute")
    try:
        yield ok(f"nodes are made by {cluster.version()}")
    except ProviderError as error:
        yield wrong(error.what, error.advice or "try again")


def examine_images(programs: Programs, images: Sequence[str]) -> Iterator[Finding]:
    """Report whether the images that are to be loaded exist."""
    for image in images:
        if is_archive(image) and not Path(image).is_file():
            yield wrong(f"there is no file {image}", "correct images")
            continue
        try:
            if not is_archive(image):
                programs.run(programs.docker("image", "inspect", "--format=.", image))
            yield ok(f"{image} can be loaded")
        except ProviderError:
            yield wrong(f"docker has no image {image}", f"docker pull {image}")


def examine_address(setting: str, lead: LeadIdentity | None) -> Iterator[Finding]:
    """Report the address of the lead that followers are given."""
    if lead is None:
        return
    if is_loopback(urlsplit(lead.endpoint).hostname or ""):
        yield wrong(
            f"{lead.endpoint} is a loopback address: in each pod, the pod itself",
            'set lead = "host" if the lead runs on this host and listens on all its'
            " addresses",
        )
    elif setting:
        yield ok(f"followers connect to the lead at {lead.endpoint}, of {setting}")
