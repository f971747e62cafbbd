# SPDX-License-Identifier: MIT
"""Providers that break their word in one way each: the contract must tell every one."""

from __future__ import annotations

import contextlib
import math
import os
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from burst.errors import (
    InsufficientCapacity,
    NotFound,
    Refused,
    SpecRefused,
    Transient,
)
from burst.kits import certificate
from burst.model.burst import BurstId
from burst.model.shape import Shape
from burst.provider import BurstSpec, BurstStatus, Offer, OwnedBurst, Phase
from burst.testing import FakeProvider


class SellsNothing(FakeProvider):
    def offers(self) -> Sequence[Offer]:
        return []


class NeverTellsTheEnd(FakeProvider):
    ends_with = None


class ForgetsTheEndAtARestart(FakeProvider):
    def provision(self, spec: BurstSpec) -> None:
        self.ends_with = None if self.cloud.begun else 0
        super().provision(spec)


class EndsBadly(FakeProvider):
    ends_with = 1


class SellsOneTwice(FakeProvider):
    def offers(self) -> Sequence[Offer]:
        return [*super().offers(), *super().offers()]


class SellsEmptyNodes(FakeProvider):
    def offers(self) -> Sequence[Offer]:
        offers = super().offers()
        return [msgspec.structs.replace(offer, shape=Shape(0)) for offer in offers]


class SellsWhatIsFree(FakeProvider):
    def offers(self) -> Sequence[Offer]:
        asked = len(self.calls)
        return [
            msgspec.structs.replace(offer, max_nodes=4 - asked)
            for offer in super().offers()
        ]


class NeverStarts(FakeProvider):
    starts_only = 0


class StartsInPart(FakeProvider):
    starts_only = 1


class MakesTwiceOnARepeat(FakeProvider):
    def provision(self, spec: BurstSpec) -> None:
        known = self._mine().get(spec.burst_id)
        super().provision(spec)
        if known and known.ends_in is None:
            known.made += spec.hosts


class ForgetsAtARestart(FakeProvider):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.mine: set[BurstId] = set()

    def provision(self, spec: BurstSpec) -> None:
        super().provision(spec)
        self.mine.add(spec.burst_id)

    def observe(self) -> Sequence[BurstStatus]:
        return [s for s in super().observe() if s.burst_id in self.mine]


class ListsOnlyWhatIsWhole(FakeProvider):
    def observe(self) -> Sequence[BurstStatus]:
        whole = {i for i, b in self._mine().items() if len(b.made) == len(b.spec.hosts)}
        return [status for status in super().observe() if status.burst_id in whole]


class LeavesHalfBuiltThingsHalfBuilt(FakeProvider):
    def provision(self, spec: BurstSpec) -> None:
        if spec.burst_id not in self._mine():
            super().provision(spec)


class SaysNotFoundForHalfBuiltThings(FakeProvider):
    def reap(self, burst_id: BurstId) -> None:
        burst = self._mine().get(burst_id)
        if burst and len(burst.made) < len(burst.spec.hosts):
            raise NotFound("it is not complete, so it is not there")
        super().reap(burst_id)


class IgnoresTheOwner(FakeProvider):
    def __init__(self, owner: str, **kwargs: Any) -> None:
        super().__init__(owner="anybody", **kwargs)


class ReapsForAnyOwner(FakeProvider):
    def reap(self, burst_id: BurstId) -> None:
        for key in [key for key in self.cloud.bursts if key[2] == burst_id]:
            del self.cloud.bursts[key]
        raise NotFound("it is gone now")


class ReapsNothing(FakeProvider):
    def reap(self, burst_id: BurstId) -> None:
        if burst_id not in self._mine():
            raise NotFound("there is none")


class ReapsEverything(FakeProvider):
    def reap(self, burst_id: BurstId) -> None:
        super().reap(burst_id)
        for other in list(self._mine()):
            super().reap(other)


class SaysNotFoundTooEarly(FakeProvider):
    ends_after = 5

    def reap(self, burst_id: BurstId) -> None:
        super().reap(burst_id)
        raise NotFound("asked for is as good as done")


class NeverSaysNotFound(FakeProvider):
    def reap(self, burst_id: BurstId) -> None:
        if burst_id in self._mine():
            super().reap(burst_id)


class RaisesItsOwnErrorForTheUnknown(FakeProvider):
    def reap(self, burst_id: BurstId) -> None:
        try:
            super().reap(burst_id)
        except NotFound as error:
            raise KeyError(burst_id) from error


class ListsWhatIsGone(FakeProvider):
    listed_still = 1_000_000_000


class ComesBackAfterItsEnd(FakeProvider):
    def reap(self, burst_id: BurstId) -> None:
        known = self._mine().get(burst_id)
        super().reap(burst_id)
        if known and known.observed < 1:
            known.ends_in = None
            known.observed = 1
            self.returning = {self._key(burst_id): known}

    def observe(self) -> Sequence[BurstStatus]:
        statuses = super().observe()
        self.cloud.bursts |= self.__dict__.pop("returning", {})
        return statuses


class RevivesWhatIsReaped(FakeProvider):
    ends_after = 1

    def provision(self, spec: BurstSpec) -> None:
        known = self._mine().get(spec.burst_id)
        if known and known.ends_in is not None:
            known.ends_in = 1_000_000_000
            return
        super().provision(spec)


class TellsTheSecretInAStatus(FakeProvider):
    def observe(self) -> Sequence[BurstStatus]:
        mine = self._mine()
        return [
            msgspec.structs.replace(status, why=_secret(mine[status.burst_id].spec))
            for status in super().observe()
        ]


class TellsTheSecretInAnError(FakeProvider):
    def provision(self, spec: BurstSpec) -> None:
        if spec.burst_id not in self._mine():
            super().provision(spec)
            raise Transient(f"cannot send {_secret(spec)}")
        super().provision(spec)


class ListsWhatCannotBeEncoded(FakeProvider):
    def observe(self) -> Sequence[BurstStatus]:
        return [
            msgspec.structs.replace(status, why=Path("/a/log"))
            for status in super().observe()
        ]


class ListsOneTwice(FakeProvider):
    def observe(self) -> Sequence[BurstStatus]:
        return [status for status in super().observe() for _ in (1, 2)]


class ListsAFollowerTwice(FakeProvider):
    def observe(self) -> Sequence[BurstStatus]:
        return [
            msgspec.structs.replace(status, followers=status.followers * 2)
            for status in super().observe()
        ]


class RunsWithAFollowerMissing(FakeProvider):
    def observe(self) -> Sequence[BurstStatus]:
        return [
            msgspec.structs.replace(
                status, phase=Phase.RUNNING, followers=status.followers[1:]
            )
            for status in super().observe()
        ]


class MixesBursts(FakeProvider):
    def observe(self) -> Sequence[BurstStatus]:
        return list(super().observe())[:1]


class IsDisabledByOneSpec(FakeProvider):
    def provision(self, spec: BurstSpec) -> None:
        try:
            super().provision(spec)
        except SpecRefused as error:
            raise Refused(error.what) from error


class SellsAnything(FakeProvider):
    def provision(self, spec: BurstSpec) -> None:
        super().provision(msgspec.structs.replace(spec, offer="nodes"))


class SellsAnyNumber(FakeProvider):
    def provision(self, spec: BurstSpec) -> None:
        most = self.settings
        self.settings = msgspec.structs.replace(most, max_nodes=1000)
        super().provision(spec)
        self.settings = most


class WaitsForProgress(FakeProvider):
    def provision(self, spec: BurstSpec) -> None:
        # Far longer than a stall of the machine; nobody waits for it.
        threading.Event().wait(30.0)
        super().provision(spec)


class RaisesWhatNobodyKnows(FakeProvider):
    def offers(self) -> Sequence[Offer]:
        if self.settings.credentials != "good":
            raise PermissionError("401")
        return super().offers()


class ListsNothingWhenUnreachable(FakeProvider):
    def observe(self) -> Sequence[BurstStatus]:
        return super().observe() if self.cloud.reachable else []


class SaysNotFoundWhenUnreachable(FakeProvider):
    def reap(self, burst_id: BurstId) -> None:
        if not self.cloud.reachable:
            raise NotFound("no answer, so there is none")
        super().reap(burst_id)


class RaisesItsOwnErrorWhenUnreachable(FakeProvider):
    def observe(self) -> Sequence[BurstStatus]:
        if not self.cloud.reachable:
            raise ConnectionRefusedError(111, "refused")
        return super().observe()


class CallsTheDeadRunning(FakeProvider):
    def observe(self) -> Sequence[BurstStatus]:
        for burst in self._mine().values():
            if list(burst.failed.values()) == ["was killed"]:
                burst.failed = {}
        return super().observe()


class EndsWithOneOfItsFollowers(FakeProvider):
    def observe(self) -> Sequence[BurstStatus]:
        for burst in self._mine().values():
            if "its broker has ended" in burst.failed.values():
                burst.failed = dict.fromkeys(burst.spec.hosts, "all have ended")
        return super().observe()


class EndsWithWhatItGrewFrom(FakeProvider):
    def observe(self) -> Sequence[BurstStatus]:
        for burst in self._mine().values():
            if burst.grown_at and "its broker has ended" in burst.failed.values():
                burst.failed = dict.fromkeys(burst.spec.hosts, "all have ended")
        return super().observe()


class GivesNoReasonForADeath(FakeProvider):
    def observe(self) -> Sequence[BurstStatus]:
        return [
            msgspec.structs.replace(status, why="")
            if status.phase is Phase.FAILED
            else status
            for status in super().observe()
        ]


class CallsAFullBackendTransient(FakeProvider):
    def provision(self, spec: BurstSpec) -> None:
        if self.cloud.full:
            raise Transient("no room now")
        super().provision(spec)


class CallsAFullBackendRefused(FakeProvider):
    def provision(self, spec: BurstSpec) -> None:
        if self.cloud.full:
            raise Refused("no room")
        super().provision(spec)


class MakesAgainWhatWasNotAnswered(FakeProvider):
    def provision(self, spec: BurstSpec) -> None:
        known = self._mine().get(spec.burst_id)
        answered = self.cloud.__dict__.setdefault("answered", set())
        whole = known is not None and len(known.made) == len(spec.hosts)
        if known and whole and known.ends_in is None and spec.burst_id not in answered:
            known.made += spec.hosts
        lost = self.next_answer_lost
        super().provision(spec)
        if not lost:
            answered.add(spec.burst_id)


class TakesItsIntentForTheDeed(FakeProvider):
    def provision(self, spec: BurstSpec) -> None:
        died = isinstance(self.next_provision_error, RuntimeError)
        if spec.burst_id in self.cloud.__dict__.setdefault("intents", set()):
            return
        if died:
            self.cloud.__dict__["intents"].add(spec.burst_id)
        super().provision(spec)


class ListsNothingWhoseAnswerWasLost(FakeProvider):
    def provision(self, spec: BurstSpec) -> None:
        lost = self.next_answer_lost
        if lost:
            self.cloud.__dict__.setdefault("lost", set()).add(spec.burst_id)
        else:
            self.cloud.__dict__.get("lost", set()).discard(spec.burst_id)
        super().provision(spec)

    def reap(self, burst_id: BurstId) -> None:
        if burst_id in self.cloud.__dict__.get("lost", set()):
            raise NotFound("it was never answered")
        super().reap(burst_id)


class ReadsACertificateWithoutCare(FakeProvider):
    def provision(self, spec: BurstSpec) -> None:
        Path(spec.lead.certificate).read_text()
        super().provision(spec)


class WaitsUntilItRuns(FakeProvider):
    def provision(self, spec: BurstSpec) -> None:
        super().provision(spec)
        for _ in range(1000):
            if not self.cloud.stalled:
                return
            threading.Event().wait(0.01)


class PutsTheSecretIntoAFile(FakeProvider):
    def provision(self, spec: BurstSpec) -> None:
        super().provision(spec)
        if Path(spec.lead.certificate).name == "burst.cert":
            self.cloud.files[f"{spec.burst_id}/job.sh"] = _secret(spec)


class LeavesAFile(FakeProvider):
    def reap(self, burst_id: BurstId) -> None:
        left = {path: self.cloud.files[path] for path in self.cloud.files_of(burst_id)}
        try:
            super().reap(burst_id)
        finally:
            self.cloud.files |= left


class LeavesATemporaryFile(FakeProvider):
    def provision(self, spec: BurstSpec) -> None:
        super().provision(spec)
        handle, _ = tempfile.mkstemp(prefix=spec.burst_id)
        os.close(handle)


class GivesTheEndpointOfAnotherLead(FakeProvider):
    def provision(self, spec: BurstSpec) -> None:
        super().provision(spec)
        self.cloud.files[f"{spec.burst_id}/broker.toml"] = "tcp://10.0.0.1:9"


class LeavesItsNameOutOfItsTags(FakeProvider):
    def __init__(self, name: str = "fake", **kwargs: Any) -> None:
        super().__init__(name="any", **kwargs)


class ListsOnlyItsOwn(FakeProvider):
    def list_all(self) -> Sequence[OwnedBurst]:
        return [burst for burst in super().list_all() if burst.owner == self.owner]


class LeavesTheLeaseOutOfItsTags(FakeProvider):
    def list_all(self) -> Sequence[OwnedBurst]:
        found = super().list_all()
        return [msgspec.structs.replace(burst, lease_end=0.0) for burst in found]


class MixesCallsAtATime(FakeProvider):
    concurrency = 2

    def provision(self, spec: BurstSpec) -> None:
        self._present = spec
        # As for a request, where another call comes meanwhile.
        together = self.cloud.__dict__.get("together")
        if together:
            together.wait(60.0)
        super().provision(self._present)


class StartsWhatNeverJoins(FakeProvider):
    def provision(self, spec: BurstSpec) -> None:
        super().provision(spec)
        self._mine()[spec.burst_id].joins = False


class IgnoresTheEndOfALease(FakeProvider):
    def observe(self) -> Sequence[BurstStatus]:
        self.clock = None
        return super().observe()


class EndsBeforeItsLease(FakeProvider):
    def observe(self) -> Sequence[BurstStatus]:
        statuses = super().observe()
        self.clock = lambda: math.inf
        return statuses


class GrowsAgainOnARepeat(FakeProvider):
    def resize(self, spec: BurstSpec) -> None:
        known = self._mine().get(spec.burst_id)
        again = known is not None and known.spec == spec and len(spec.hosts) > 1
        super().resize(spec)
        if known and again:
            known.made += spec.hosts[1:]


class ForgetsAGrowthAtARestart(FakeProvider):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for burst in self._mine().values():
            if burst.grown_at:
                burst.made, burst.grown_at = burst.made[:1], {}


class GrowsInNameOnly(FakeProvider):
    def resize(self, spec: BurstSpec) -> None:
        super().resize(spec)
        known = self._mine()[spec.burst_id]
        known.made = known.made[:1]


class RestartsWhatItResizes(FakeProvider):
    def resize(self, spec: BurstSpec) -> None:
        known = self._mine().get(spec.burst_id)
        super().resize(spec)
        if known and len(spec.hosts) < 2:
            known.grown_at |= dict.fromkeys(spec.hosts, known.observed)
            self.starts_after = 1


class ShrinksFromTheBottom(FakeProvider):
    def resize(self, spec: BurstSpec) -> None:
        known = self._mine().get(spec.burst_id)
        made = list(known.made) if known else []
        super().resize(spec)
        if known and len(made) > len(spec.hosts):
            known.made = made[len(spec.hosts) :]


class NeverEndsWhatLeaves(FakeProvider):
    def resize(self, spec: BurstSpec) -> None:
        self.ends_after = 1_000_000_000
        super().resize(spec)
        self.ends_after = 0


class ListsNothingOfWhatLeaves(FakeProvider):
    def resize(self, spec: BurstSpec) -> None:
        known = self._mine().get(spec.burst_id)
        made = list(known.made) if known else []
        super().resize(spec)
        if known and len(made) > len(spec.hosts):
            known.made = made


class ReapsWithoutItsGrowth(FakeProvider):
    def reap(self, burst_id: BurstId) -> None:
        known = self._mine().get(burst_id)
        if known is None or not known.grown_at:
            super().reap(burst_id)
            return
        known.made = [host for host in known.made if host in known.grown_at]
        raise NotFound("what was provisioned is gone")


class MakesByAResizeWhatNeverWas(FakeProvider):
    def resize(self, spec: BurstSpec) -> None:
        try:
            super().resize(spec)
        except NotFound:
            self.provision(spec)


class SaysNothingOfWhatNeverWas(FakeProvider):
    def resize(self, spec: BurstSpec) -> None:
        with contextlib.suppress(NotFound):
            super().resize(spec)


class ResizesForAnyOwner(FakeProvider):
    def resize(self, spec: BurstSpec) -> None:
        owners = [key[0] for key in self.cloud.bursts if key[2] == spec.burst_id]
        self.owner = owners[0] if owners else self.owner
        super().resize(spec)


class RevivesByAResize(FakeProvider):
    ends_after = 1

    def resize(self, spec: BurstSpec) -> None:
        known = self._mine().get(spec.burst_id)
        if known and known.ends_in is not None:
            known.ends_in = 1_000_000_000
            return
        super().resize(spec)


class GrowsPastItsOffer(FakeProvider):
    def resize(self, spec: BurstSpec) -> None:
        most = self.settings
        self.settings = msgspec.structs.replace(most, max_nodes=1000)
        super().resize(spec)
        self.settings = most


class IsDisabledByALargeGrowth(FakeProvider):
    def resize(self, spec: BurstSpec) -> None:
        try:
            super().resize(spec)
        except InsufficientCapacity as error:
            if len(spec.hosts) > self.settings.max_nodes:
                raise Refused(error.what) from error
            raise


class TakesAnyHosts(FakeProvider):
    def resize(self, spec: BurstSpec) -> None:
        try:
            super().resize(spec)
        except SpecRefused:
            known = self._mine()[spec.burst_id]
            known.spec, known.made = spec, list(spec.hosts)


class EndsABurstForWantOfRoom(FakeProvider):
    def resize(self, spec: BurstSpec) -> None:
        try:
            super().resize(spec)
        except InsufficientCapacity:
            if self.cloud.full:
                self.fail(spec.burst_id, "there is no room for its growth")
            raise


class SaysThatItGrewWhenUnreachable(FakeProvider):
    def resize(self, spec: BurstSpec) -> None:
        if self.cloud.reachable:
            super().resize(spec)


class WaitsUntilItHasGrown(FakeProvider):
    def resize(self, spec: BurstSpec) -> None:
        super().resize(spec)
        for _ in range(1000):
            if not self.cloud.stalled:
                return
            threading.Event().wait(0.01)


def _secret(spec: BurstSpec) -> str:
    return certificate.read(Path(spec.lead.certificate)).secret.decode()


BROKEN = {
    kind.__name__: kind
    for kind in FakeProvider.__subclasses__()
    if kind.__module__ == __name__
}
