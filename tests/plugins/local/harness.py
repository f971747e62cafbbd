# SPDX-License-Identifier: MIT
"""A local provider in a short directory, with shell scripts for followers."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
from burst_local.burst_dirs import FollowerDirectory, ProviderDirectory
from burst_local.processes import scan
from burst_local.provider import LocalProvider, LocalSettings
from burst_local.stopping import GRACE_S

from burst.model.burst import BurstId
from burst.provider import BurstSpec, BurstStatus, Phase
from burst.testing import example_lead, example_spec
from tests.support.fluxlead import short_directory
from tests.support.reaping import reap_until_gone
from tests.support.waiting import wait_until

SLEEP = "exec sleep 1000"
STUBBORN = "trap 'echo asked' TERM; echo ready; while :; do echo tick; sleep 0.05; done"


class LocalHarness:
    """Providers of one owner, as before and after restarts."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.owner = f"owner-{uuid.uuid4().hex[:8]}"
        self.settings = LocalSettings(dir=str(directory / "run"), cores=8)
        self.script = SLEEP
        self.now = 1000.0
        self.home = ProviderDirectory(directory / "run", self.owner, "here")

    def provider(self, *, grace: float = GRACE_S, **changes: Any) -> LocalProvider:
        """Return a new provider object, whose followers run the script."""
        settings = msgspec.structs.replace(self.settings, **changes)
        return LocalProvider(
            "here",
            settings,
            self.owner,
            command=lambda *_: ["/bin/sh", "-c", self.script],
            clock=lambda: self.now,
            grace=grace,
        )

    def spec(self, number: int = 0, nodes: int = 2, **changes: Any) -> BurstSpec:
        """Return a burst of an example lead."""
        lead = example_lead(self.directory, self.owner)
        spec = example_spec(lead, number, "local", nodes)
        return msgspec.structs.replace(spec, **changes)

    def begun(self, nodes: int = 2, **changes: Any) -> tuple[LocalProvider, BurstSpec]:
        """Provision a burst with these settings; return its provider and its spec."""
        provider, spec = self.provider(**changes), self.spec(nodes=nodes)
        provider.provision(spec)
        return provider, spec

    def ready(self, nodes: int = 2, **changes: Any) -> tuple[LocalProvider, BurstSpec]:
        """Provision a burst, and wait until each of its scripts says `ready`."""
        provider, spec = self.begun(nodes, **changes)
        wait_said(self, spec, "ready")
        return provider, spec

    def place(self, spec: BurstSpec, number: int = 0) -> FollowerDirectory:
        """Return the directory of a follower."""
        return self.home.burst(spec.burst_id).follower(spec.hosts[number])

    def logs(self, spec: BurstSpec) -> list[str]:
        """Return what each follower said so far."""
        place = self.home.burst(spec.burst_id)
        return [place.follower(host).log.read_text() for host in spec.hosts]

    def pids(self, burst_id: BurstId) -> set[int]:
        """Return the processes that have the burst's tag, whoever counts them."""
        return {p.pid for p in scan().values() if p.environ.get("BURST_ID") == burst_id}

    def status(self, provider: LocalProvider) -> BurstStatus:
        """Return the status of the only burst."""
        (status,) = provider.observe()
        return status

    def all_failed(self, provider: LocalProvider) -> bool:
        """Tell whether each follower has ended; the burst has FAILED with the first."""
        followers = self.status(provider).followers
        return all(follower.phase is Phase.FAILED for follower in followers)

    def reap_all(self, provider: LocalProvider, burst_id: BurstId) -> None:
        """Reap until nothing is left."""
        reap_until_gone(provider, burst_id)


def wait_said(local: LocalHarness, spec: BurstSpec, word: str) -> None:
    """Wait until every follower said it."""
    wait_until(lambda: all(word in log for log in local.logs(spec)), word)


@contextlib.contextmanager
def open_bench() -> Iterator[LocalHarness]:
    """Give a local, and end whatever was started on it."""
    with short_directory() as directory:
        local = LocalHarness(directory)
        try:
            yield local
        finally:
            killer = local.provider(grace=0)
            for status in killer.observe():
                local.reap_all(killer, status.burst_id)
