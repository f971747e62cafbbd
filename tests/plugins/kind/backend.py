# SPDX-License-Identifier: MIT
"""The docker, the kind and the clusters of a desk as a provider's backend."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

from burst.provider import BurstSpec, Provider
from burst.testing import Backend
from burst.testing.backend import Moment
from tests.plugins.kind.harness import Desk


class KindBackend(Backend):
    """What a test does at a desk."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk

    @contextlib.contextmanager
    def unreachable(self) -> Iterator[None]:
        self.desk.set("docker-error", "Cannot connect to the Docker daemon")
        yield
        self.desk.unset("docker-error")

    @contextlib.contextmanager
    def stalled(self) -> Iterator[None]:
        self.desk.stalled = True
        self.desk.tell()
        yield
        self.desk.stalled = False
        self.desk.tell()

    def full(self, owner: str) -> Provider:
        self.desk.full = True
        self.desk.tell()
        return self.desk.provider(owner)

    def crashing(self, owner: str, when: Moment) -> Provider:
        provider = self.desk.provider(owner)
        return Dying(provider, self.desk, when)

    def kill(self, spec: BurstSpec, host: str) -> None:
        for cloud in self.desk.clouds.values():
            for burst in cloud.bursts.values():
                if burst.spec.burst_id == spec.burst_id:
                    burst.failed[host] = "was killed"

    def given(self, spec: BurstSpec) -> str:
        given = self.desk.pods[-1].given
        return given.endpoint if given else ""

    def left(self, spec: BurstSpec) -> Sequence[str]:
        found = [path for path in self.desk.path.rglob("*") if spec.owner in str(path)]
        return [str(path) for path in found]


class Dying:
    """A provider that dies in its first provision: before docker, or at its end."""

    def __init__(self, provider: Provider, desk: Desk, when: Moment) -> None:
        self.offers, self.observe = provider.offers, provider.observe
        self.reap, self._provider = provider.reap, provider
        self._desk = desk
        self._when = when

    def provision(self, spec: BurstSpec) -> None:
        if self._when == "before":
            self._desk.set("docker-error", "Cannot connect to the Docker daemon")
            try:
                self._provider.provision(spec)
            finally:
                self._desk.unset("docker-error")
        else:
            self._desk.provision(self._provider, spec)  # type: ignore[arg-type]
            raise RuntimeError("the process died")
