# SPDX-License-Identifier: MIT
"""Reads scheduler, queues and configuration of a running instance."""

from __future__ import annotations

import base64
import json
from collections.abc import Collection, Mapping
from contextlib import closing
from typing import Any

import msgspec

from burst.errors import Denied
from burst.flux.handle import Handle
from burst.flux.queues import jobs_in_queues, read_queues
from burst.flux.rpc import RequestFailed, RpcClient, find_attribute
from burst.flux.scheduler import read_scheduler
from burst.model.jobid import JobId
from burst.model.lead import QueueView
from burst.model.ranks import parse_idset
from burst.model.scheduler import Scheduler


class RunningInstance(msgspec.Struct, frozen=True, kw_only=True):
    """What a running instance reports of itself."""

    known: Scheduler = Scheduler()
    """What is known of the scheduler; without a name if none is loaded."""
    config: Mapping[str, Any]
    excluded: frozenset[int] = frozenset()
    """Ranks that get no jobs: `[resource] exclude`, flux-config-resource(5)."""
    online: frozenset[int] = frozenset()
    """Ranks whose broker is up."""
    defined_by: str = ""
    """How Flux got its resources (`method` of RFC 44, `resource-define`)."""
    queue_states: Mapping[str, QueueView] = {}
    """The states of all queues by name; of the anonymous one if none has a name."""
    place: str = ""
    """The path of its configuration, a file or a directory; empty if it has none."""

    @property
    def queues(self) -> Mapping[str, Any]:
        """The named queues, flux-config-queues(5)."""
        queues: Mapping[str, Any] = self.config.get("queues", {})
        return queues

    @property
    def frobnicators(self) -> list[str]:
        """The frobnicators, names or paths in order; empty for Flux's own list."""
        table = self.config.get("ingest", {}).get("frobnicator", {})
        return [str(name) for name in table.get("plugins", ())]


def read_instance(uri: str) -> RunningInstance:
    """Ask the instance at this URI. Raises LeadGone, LeadError."""
    with closing(Handle(uri)) as handle:
        client = RpcClient(handle)
        known = read_scheduler(client)
        config = client.ask("config.get")
        resources = client.ask("resource.status")
        return RunningInstance(
            known=known,
            config=config,
            excluded=parse_idset(resources["exclude"]),
            online=parse_idset(resources["online"]),
            defined_by=_read_method(client),
            queue_states=read_queues(client),
            place=find_attribute(client, "config.path"),
        )


def _read_method(client: RpcClient) -> str:
    """Return by what method Flux got its resources; empty if that is not known."""
    asked = {"key": "resource.eventlog", "flags": 0, "namespace": "primary"}
    try:
        answer = client.ask("kvs.lookup", asked)
    except (Denied, RequestFailed):  # a guest, as in `burst setup`, may not ask
        return ""
    events = map(json.loads, base64.b64decode(answer["val"]["data"]).splitlines())
    methods = [e["context"]["method"] for e in events if e["name"] == "resource-define"]
    return str(methods[-1]) if methods else ""


def read_queue_names(uri: str) -> frozenset[str]:
    """Return the named queues of the instance. Raises LeadGone, LeadError."""
    with closing(Handle(uri)) as handle:
        # The one queue of an instance without named queues has no name.
        return frozenset(filter(None, read_queues(RpcClient(handle))))


def read_jobs_in(uri: str, queues: Collection[str]) -> list[JobId]:
    """Return the jobs that wait in these queues. Raises LeadGone, LeadError."""
    if not queues:
        return []
    with closing(Handle(uri)) as handle:
        return jobs_in_queues(RpcClient(handle), queues)
