# SPDX-License-Identifier: MIT
"""The docker, the kind and the clusters of a kind as a provider's backend."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator, Sequence

from burst_kind.provider import KindProvider

from burst.provider import BurstSpec, Provider
from burst.testing import Backend, WrappedProvider
from burst.testing.backend import Moment
from tests.plugins.kind.harness import KindHarness
from tests.support.interrupted import Interrupted


class KindBackend(Backend):
    """What a test does at a kind."""

    def __init__(self, kind: KindHarness) -> None:
        self.kind = kind

    @contextlib.contextmanager
    def unreachable(self) -> Iterator[None]:
        self.kind.set("docker-error", "Cannot connect to the Docker daemon")
        try:
            yield
        finally:
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
        if when == "before":
            return Interrupted(provider, self.unreachable)
        return Dying(provider, self.kind)

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
    """A provider that dies once its first provision has come through, in many calls."""

    def __init__(self, provider: KindProvider, kind: KindHarness) -> None:
        super().__init__(provider)
        self._provision = functools.partial(kind.provision, provider)

    def provision(self, spec: BurstSpec) -> None:
        self._provision(spec)
        raise RuntimeError("the process died")
