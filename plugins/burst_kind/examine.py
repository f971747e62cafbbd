# SPDX-License-Identifier: MIT
"""Checks, without making anything, whether followers can run in a kind cluster."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

from burst.errors import NotFound, ProviderError
from burst.model.finding import Finding, note, ok, wrong
from burst.model.host import is_loopback
from burst.model.lead import LeadIdentity
from burst_kind.cluster import ClusterState, ClusterView, KindCluster
from burst_kind.programs import Programs
from burst_kind.settings import KindSettings, is_archive


def examine_cluster(cluster: KindCluster, view: ClusterView) -> Finding:
    """Report the state of the cluster."""
    name = f"the kind cluster {cluster.name}"
    if view.state is ClusterState.READY:
        return ok(f"{name} {view.text}")
    if view.state in (ClusterState.FAILED, ClusterState.STOPPED):
        deleted = "do nothing: its bursts are ended, and then it is deleted"
        by_hand = "`docker start` its nodes, or delete it and create it again"
        return wrong(f"{name} {view.text}", deleted if cluster.ours else by_hand)
    if view.nodes or view.state is ClusterState.BUSY:
        return note(f"{name} {view.text}", "look again in half a minute")
    if cluster.ours:
        return ok(f"docker answers; {name} is made for the first burst")
    return wrong(f"there is no kind cluster {cluster.name}", cluster.create_by_hand)


def examine_programs(programs: Programs, settings: KindSettings) -> Iterator[Finding]:
    """Report the version of kind, and whether the images to be loaded exist."""
    try:
        version = programs.run(programs.kind("version")).strip()
        yield ok(f"nodes are made by {version}")
    except ProviderError as error:
        yield wrong(error.what, error.advice or "try again")
    if settings.config and not Path(settings.config).is_file():
        yield wrong(f"there is no file {settings.config}", "correct config")
    for image in settings.images:
        if is_archive(image) and not Path(image).is_file():
            yield wrong(f"there is no file {image}", "correct images")
            continue
        try:
            if not is_archive(image):
                programs.run(programs.docker("image", "inspect", "--format=.", image))
            yield ok(f"{image} can be loaded")
        except NotFound:
            yield wrong(f"docker has no image {image}", f"docker pull {image}")
        except ProviderError as error:
            yield wrong(error.what, error.advice or "try again")


def examine_address(setting: str, lead: LeadIdentity) -> Iterator[Finding]:
    """Report the address of the lead that followers are given."""
    if is_loopback(urlsplit(lead.endpoint).hostname or ""):
        yield wrong(
            f"{lead.endpoint} is a loopback address, which in each pod is the pod"
            " itself",
            'set lead = "host" if the lead runs on this host and listens on all its'
            " addresses",
        )
    elif setting:
        yield ok(f"followers connect to the lead at {lead.endpoint}, of {setting}")
