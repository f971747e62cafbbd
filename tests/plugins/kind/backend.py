# SPDX-License-Identifier: MIT
"""The docker, the kind and the clusters of a kind as a provider's backend."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

from burst.provider import BurstSpec, Provider
from burst.testing import Backend, WrappedProvider
from burst.testing.backend import Moment
from tests.plugins.kind.harness import KindHarness


class KindBackend(Backend):
    """What a test does at a kind."""

    def __init__(self, kind: KindHarness) -> None:
        self.kind = kind

    @contextlib.contextmanager
    def unreachable(self) -> Iterator[None]:
        self.kind.set("docker-error", "Cannot connect to the Docker daemon")
        yield
        self.kind.unset("docker-error")

    @contextlib.contextmanager
    def stalled(self) -> Iterator[None]:
        self.kind.stalled = True
        self.kind.tell()
        yield
        self.kind.stalled = False
        self.kind.tell()

    def full(self, owner: str) -> Provider:
        self.kind.full = True
        self.kind.tell()
        return self.kind.provider(owner)

    def crashing(self, owner: str, when: Moment) -> Provider:
        provider = self.kind.provider(owner)
        return Dying(provider, self.kind, when)

    def kill(self, spec: BurstSpec, host: str) -> None:
        self._fail(spec, host, "was killed")

    def end(self, spec: BurstSpec, host: str) -> None:
        self._fail(spec, host, "its broker has ended")

    def _fail(self, spec: BurstSpec, host: str, why: str) -> None:
        for cloud in self.kind.clouds.values():
            for burst in cloud.bursts.values():
                if burst.spec.burst_id == spec.burst_id:
                    burst.failed[host] = why

    def given(self, spec: BurstSpec) -> str:
        given = self.kind.pods[-1].given
        return given.endpoint if given else ""

    def left(self, spec: BurstSpec) -> Sequence[str]:
        found = [path for path in self.kind.path.rglob("*") if spec.owner in str(path)]
        return [str(path) for path in found]


class Dying(WrappedProvider):
    """A provider that dies in its first provision: before docker, or at its end."""

    def __init__(self, provider: Provider, kind: KindHarness, when: Moment) -> None:
        super().__init__(provider)
        self._cli = kind
        self._when = when

    def provision(self, spec: BurstSpec) -> None:
        if self._when == "before":
            self._cli.set("docker-error", "Cannot connect to the Docker daemon")
            try:
                super().provision(spec)
            finally:
                self._cli.unset("docker-error")
        else:
            self._cli.provision(self.provider, spec)  # type: ignore[arg-type]
            raise RuntimeError("the process died")
