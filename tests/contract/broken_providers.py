# SPDX-License-Identifier: MIT
"""Providers that break their word in one way each: the contract must tell every one."""

from __future__ import annotations

import contextlib
import math
import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

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
from burst.provider import (
    BurstSpec,
    BurstStatus,
    InstanceStatus,
    Offer,
    OwnedBurst,
    Phase,
)
from burst.testing import FakeCloud, FakeProvider
from burst.testing.cloud import FakeBurst

BROKEN: dict[type[FakeProvider], str] = {}
"""By broken provider: the test of the contract that has to fail, without `test_`."""
Kind = TypeVar("Kind", bound=type[FakeProvider])


def caught_by(test: str) -> Callable[[Kind], Kind]:
    """Have a provider run that test alone, with its parameter in brackets."""

    def note(kind: Kind) -> Kind:
        BROKEN[kind] = test
        return kind

    return note


class Retelling(FakeProvider):
    """Tells of each burst something else than is so."""

    def retold(self, status: BurstStatus) -> BurstStatus:
        raise NotImplementedError

    def observe(self) -> Sequence[BurstStatus]:
        return [self.retold(status) for status in super().observe()]


class SellingAnyNumber(FakeProvider):
    """Takes a burst of any number of nodes in the block."""

    @contextlib.contextmanager
    def selling_any_number(self) -> Iterator[None]:
        most = self.settings
        self.settings = msgspec.structs.replace(most, max_nodes=1000)
        yield
        self.settings = most


@caught_by("offers_are_sane")
class SellsNothing(FakeProvider):
    def offers(self) -> Sequence[Offer]:
        return []


@caught_by("isolated_it_tells_how_its_program_ended")
class NeverTellsTheEnd(FakeProvider):
    ends_with = None


@caught_by("isolated_it_tells_how_its_program_ended")
class ForgetsTheEndAtARestart(FakeProvider):
    def provision(self, spec: BurstSpec) -> None:
        self.ends_with = None if self.cloud.begun else 0
        super().provision(spec)


@caught_by("isolated_its_program_runs_once")
class RunsItsProgramOnARepeat(FakeProvider):
    def provision(self, spec: BurstSpec) -> None:
        super().provision(spec)
        self.cloud.begun.append(spec.burst_id)


@caught_by("offers_are_sane")
class SellsOneTwice(FakeProvider):
    def offers(self) -> Sequence[Offer]:
        return [*super().offers(), *super().offers()]


@caught_by("offers_are_sane")
class SellsEmptyNodes(FakeProvider):
    def offers(self) -> Sequence[Offer]:
        offers = super().offers()
        return [msgspec.structs.replace(offer, shape=Shape(0)) for offer in offers]


@caught_by("offers_are_sane")
class SellsForNoPrice(FakeProvider):
    def offers(self) -> Sequence[Offer]:
        nothing = {"fee": math.nan}
        return [msgspec.structs.replace(each, **nothing) for each in super().offers()]


@caught_by("offers_are_sane")
class SellsWhatIsFree(FakeProvider):
    def offers(self) -> Sequence[Offer]:
        asked = len(self.calls)
        return [
            msgspec.structs.replace(offer, max_nodes=4 - asked)
            for offer in super().offers()
        ]


@caught_by("a_burst_is_listed_and_then_runs")
class StartsInPart(FakeProvider):
    starts_only = 1


@caught_by("provisioned_twice_it_is_made_once")
class MakesTwiceOnARepeat(FakeProvider):
    def provision(self, spec: BurstSpec) -> None:
        known = self._mine().get(spec.burst_id)
        super().provision(spec)
        if known and known.ends_in is None:
            known.made += spec.hosts


@caught_by("a_restart_finds_what_was_made")
class ForgetsAtARestart(FakeProvider):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.mine: set[BurstId] = set()

    def provision(self, spec: BurstSpec) -> None:
        super().provision(spec)
        self.mine.add(spec.burst_id)

    def observe(self) -> Sequence[BurstStatus]:
        return [s for s in super().observe() if s.burst_id in self.mine]


@caught_by("half_built_it_is_listed_and_completed")
class ListsOnlyWhatIsWhole(FakeProvider):
    def observe(self) -> Sequence[BurstStatus]:
        whole = {i for i, b in self._mine().items() if len(b.made) == len(b.spec.hosts)}
        return [status for status in super().observe() if status.burst_id in whole]


@caught_by("half_built_it_is_listed_and_completed")
class LeavesHalfBuiltThingsHalfBuilt(FakeProvider):
    def provision(self, spec: BurstSpec) -> None:
        if spec.burst_id not in self._mine():
            super().provision(spec)


@caught_by("half_built_it_can_be_reaped")
class SaysNotFoundForHalfBuiltThings(FakeProvider):
    def reap(self, burst_id: BurstId) -> None:
        burst = self._mine().get(burst_id)
        if burst and len(burst.made) < len(burst.spec.hosts):
            raise NotFound("it is not complete, so it is not there")
        super().reap(burst_id)


@caught_by("another_owners_burst_is_neither_seen_nor_touched")
class IgnoresTheOwner(FakeProvider):
    def __init__(self, owner: str, **kwargs: Any) -> None:
        super().__init__(owner="anybody", **kwargs)


@caught_by("another_owners_burst_is_neither_seen_nor_touched")
class SeesLongerOwners(FakeProvider):
    def _mine(self) -> dict[BurstId, FakeBurst]:
        bursts = self.cloud.bursts.items()
        return {
            key[2]: burst
            for key, burst in bursts
            if key[0].startswith(self.owner) and key[1] == self.name
        }


@caught_by("another_owners_burst_is_neither_seen_nor_touched")
class ReapsForAnyOwner(FakeProvider):
    def reap(self, burst_id: BurstId) -> None:
        for key in [key for key in self.cloud.bursts if key[2] == burst_id]:
            del self.cloud.bursts[key]
        raise NotFound("it is gone now")


@caught_by("reaped_it_is_gone")
class ReapsNothing(FakeProvider):
    def reap(self, burst_id: BurstId) -> None:
        if burst_id not in self._mine():
            raise NotFound("there is none")


@caught_by("two_bursts_are_independent")
class ReapsEverything(FakeProvider):
    def reap(self, burst_id: BurstId) -> None:
        super().reap(burst_id)
        for other in list(self._mine()):
            super().reap(other)


@caught_by("reaped_it_is_gone")
class SaysNotFoundTooEarly(FakeProvider):
    ends_after = 5

    def reap(self, burst_id: BurstId) -> None:
        super().reap(burst_id)
        raise NotFound("asked for is as good as done")


@caught_by("reaping_what_never_was_is_not_found")
class RaisesItsOwnErrorForTheUnknown(FakeProvider):
    def reap(self, burst_id: BurstId) -> None:
        try:
            super().reap(burst_id)
        except NotFound as error:
            raise KeyError(burst_id) from error


@caught_by("reaped_it_is_gone")
class ListsWhatIsGone(FakeProvider):
    listed_still = 1_000_000_000


@caught_by("reaped_while_it_is_made_it_does_not_come_back")
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


@caught_by("provisioned_while_it_is_reaped_it_still_ends")
class RevivesWhatIsReaped(FakeProvider):
    ends_after = 1

    def provision(self, spec: BurstSpec) -> None:
        known = self._mine().get(spec.burst_id)
        if known and known.ends_in is not None:
            known.ends_in = 1_000_000_000
            return
        super().provision(spec)


@caught_by("a_burst_is_listed_and_then_runs")
class TellsTheSecretInAStatus(Retelling):
    def retold(self, status: BurstStatus) -> BurstStatus:
        secret = _secret(self._mine()[status.burst_id].spec)
        return msgspec.structs.replace(status, why=secret)


@caught_by("a_burst_is_listed_and_then_runs")
class TellsTheSecretInAnError(FakeProvider):
    def provision(self, spec: BurstSpec) -> None:
        if spec.burst_id not in self._mine():
            super().provision(spec)
            raise Transient(f"cannot send {_secret(spec)}")
        super().provision(spec)


@caught_by("a_burst_is_listed_and_then_runs")
class ListsWhatCannotBeEncoded(Retelling):
    def retold(self, status: BurstStatus) -> BurstStatus:
        return msgspec.structs.replace(status, why=Path("/a/log"))


@caught_by("a_burst_is_listed_and_then_runs")
class ListsAnExitStatusOfManyBits(Retelling):
    def retold(self, status: BurstStatus) -> BurstStatus:
        instance = InstanceStatus(exit_status=10**30)
        return msgspec.structs.replace(status, instance=instance)


@caught_by("a_burst_is_listed_and_then_runs")
class ListsOneTwice(FakeProvider):
    def observe(self) -> Sequence[BurstStatus]:
        return [status for status in super().observe() for _ in (1, 2)]


@caught_by("a_burst_is_listed_and_then_runs")
class ListsAFollowerTwice(Retelling):
    def retold(self, status: BurstStatus) -> BurstStatus:
        return msgspec.structs.replace(status, followers=status.followers * 2)


@caught_by("a_burst_is_listed_and_then_runs")
class RunsWithAFollowerMissing(Retelling):
    def retold(self, status: BurstStatus) -> BurstStatus:
        fewer = status.followers[1:]
        return msgspec.structs.replace(status, phase=Phase.RUNNING, followers=fewer)


@caught_by("two_bursts_are_independent")
class MixesBursts(FakeProvider):
    def observe(self) -> Sequence[BurstStatus]:
        return list(super().observe())[:1]


@caught_by("what_it_does_not_sell_it_declines[offer]")
class IsDisabledByOneSpec(FakeProvider):
    def provision(self, spec: BurstSpec) -> None:
        try:
            super().provision(spec)
        except SpecRefused as error:
            raise Refused(error.what) from error


@caught_by("what_it_does_not_sell_it_declines[shape]")
class IgnoresTheShape(FakeProvider):
    def _admit(self, spec: BurstSpec) -> FakeBurst:
        shape = self.settings.shape
        return super()._admit(msgspec.structs.replace(spec, shape=shape))


@caught_by("what_it_does_not_sell_it_declines[nodes]")
class SellsAnyNumber(SellingAnyNumber):
    def provision(self, spec: BurstSpec) -> None:
        with self.selling_any_number():
            super().provision(spec)


@caught_by("a_burst_is_listed_and_then_runs")
class WaitsForProgress(FakeProvider):
    def provision(self, spec: BurstSpec) -> None:
        # Far longer than a stall of the machine; nobody waits for it.
        threading.Event().wait(30.0)
        super().provision(spec)


@caught_by("misconfigured_it_says_so_in_errors_of_the_taxonomy[provision]")
class RaisesWhatNobodyKnows(FakeProvider):
    def offers(self) -> Sequence[Offer]:
        if self.settings.credentials != "good":
            raise PermissionError("401")
        return super().offers()


@caught_by("misconfigured_it_says_so_in_errors_of_the_taxonomy[observe]")
class CallsADeniedListEmpty(FakeProvider):
    def observe(self) -> Sequence[BurstStatus]:
        try:
            return super().observe()
        except Refused:
            return []


@caught_by("misconfigured_it_says_so_in_errors_of_the_taxonomy[reap]")
class SaysNotFoundWhenDenied(FakeProvider):
    def reap(self, burst_id: BurstId) -> None:
        try:
            super().reap(burst_id)
        except Refused as error:
            raise NotFound("403 or 404") from error


@caught_by("unreachable_it_raises_and_never_says_that_nothing_is_there")
class ListsNothingWhenUnreachable(FakeProvider):
    def observe(self) -> Sequence[BurstStatus]:
        return super().observe() if self.cloud.reachable else []


@caught_by("unreachable_it_raises_and_never_says_that_nothing_is_there")
class SaysNotFoundWhenUnreachable(FakeProvider):
    def reap(self, burst_id: BurstId) -> None:
        if not self.cloud.reachable:
            raise NotFound("no answer, so there is none")
        super().reap(burst_id)


@caught_by("unreachable_it_raises_and_never_says_that_nothing_is_there")
class RaisesItsOwnErrorWhenUnreachable(FakeProvider):
    def observe(self) -> Sequence[BurstStatus]:
        if not self.cloud.reachable:
            raise ConnectionRefusedError(111, "refused")
        return super().observe()


@caught_by("a_follower_that_dies_is_told_with_a_reason")
class CallsTheDeadRunning(FakeProvider):
    def observe(self) -> Sequence[BurstStatus]:
        for burst in self._mine().values():
            if list(burst.failed.values()) == ["was killed"]:
                burst.failed = {}
        return super().observe()


@caught_by("the_end_of_one_follower_is_not_that_of_the_others")
class EndsWithOneOfItsFollowers(FakeProvider):
    def observe(self) -> Sequence[BurstStatus]:
        for burst in self._mine().values():
            if "its broker has ended" in burst.failed.values():
                burst.failed = dict.fromkeys(burst.spec.hosts, "all have ended")
        return super().observe()


@caught_by("grown_the_end_of_its_first_follower_is_not_that_of_the_others")
class EndsWithWhatItGrewFrom(FakeProvider):
    def observe(self) -> Sequence[BurstStatus]:
        for burst in self._mine().values():
            if burst.grown_at and "its broker has ended" in burst.failed.values():
                burst.failed = dict.fromkeys(burst.spec.hosts, "all have ended")
        return super().observe()


@caught_by("a_follower_that_dies_is_told_with_a_reason")
class GivesNoReasonForADeath(Retelling):
    def retold(self, status: BurstStatus) -> BurstStatus:
        failed = status.phase is Phase.FAILED
        return msgspec.structs.replace(status, why="") if failed else status


@caught_by("without_room_it_says_so_by_insufficient_capacity")
class CallsAFullBackendTransient(FakeProvider):
    def provision(self, spec: BurstSpec) -> None:
        if self.cloud.full:
            raise Transient("no room now")
        super().provision(spec)


@caught_by("after_a_crash_at_the_request_it_is_made_once[after]")
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


@caught_by("after_a_crash_at_the_request_it_is_made_once[before]")
class TakesItsIntentForTheDeed(FakeProvider):
    def provision(self, spec: BurstSpec) -> None:
        died = isinstance(self.next_provision_error, RuntimeError)
        if spec.burst_id in self.cloud.__dict__.setdefault("intents", set()):
            return
        if died:
            self.cloud.__dict__["intents"].add(spec.burst_id)
        super().provision(spec)


@caught_by("after_a_crash_at_the_request_nothing_outlives_the_reaping[after]")
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


@caught_by("a_certificate_that_cannot_be_used_is_an_error_of_the_taxonomy[None]")
class ReadsACertificateWithoutCare(FakeProvider):
    def provision(self, spec: BurstSpec) -> None:
        Path(spec.lead.certificate).read_text()
        super().provision(spec)


@caught_by("provision_does_not_wait_for_progress")
class WaitsUntilItRuns(FakeProvider):
    def provision(self, spec: BurstSpec) -> None:
        super().provision(spec)
        _wait_while_stalled(self.cloud)


@caught_by("reap_does_not_wait_for_progress")
class WaitsUntilItIsGone(FakeProvider):
    def reap(self, burst_id: BurstId) -> None:
        while True:
            super().reap(burst_id)
            threading.Event().wait(0.01)


@caught_by("no_secret_is_in_what_others_can_read")
class PutsTheSecretIntoAFile(FakeProvider):
    def provision(self, spec: BurstSpec) -> None:
        super().provision(spec)
        if Path(spec.lead.certificate).name == "burst.cert":
            self.cloud.files[f"{spec.burst_id}/job.sh"] = _secret(spec)


@caught_by("once_reaped_no_file_and_no_object_of_it_is_left")
class LeavesAFile(FakeProvider):
    def reap(self, burst_id: BurstId) -> None:
        left = {path: self.cloud.files[path] for path in self.cloud.files_of(burst_id)}
        try:
            super().reap(burst_id)
        finally:
            self.cloud.files |= left


@caught_by("once_reaped_no_temporary_file_tells_of_it")
class LeavesATemporaryFile(FakeProvider):
    def provision(self, spec: BurstSpec) -> None:
        super().provision(spec)
        handle, _ = tempfile.mkstemp(prefix=spec.burst_id)
        os.close(handle)


@caught_by("no_variable_of_the_daemon_reaches_followers")
class PassesItsVariablesOn(FakeProvider):
    def provision(self, spec: BurstSpec) -> None:
        self.cloud.environment = dict(os.environ)
        super().provision(spec)


@caught_by("no_variable_of_the_daemon_reaches_followers")
class PutsTheSecretIntoAVariable(FakeProvider):
    def provision(self, spec: BurstSpec) -> None:
        self.cloud.environment["CERTIFICATE"] = _secret(spec)
        super().provision(spec)


@caught_by("followers_are_given_the_leads_endpoint")
class GivesTheEndpointOfAnotherLead(FakeProvider):
    def provision(self, spec: BurstSpec) -> None:
        super().provision(spec)
        self.cloud.files[f"{spec.burst_id}/broker.toml"] = "tcp://10.0.0.1:9"


@caught_by("another_providers_burst_of_the_same_owner_is_neither_seen_nor_touched")
class LeavesItsNameOutOfItsTags(FakeProvider):
    def __init__(self, name: str = "fake", **kwargs: Any) -> None:
        super().__init__(name="any", **kwargs)


@caught_by("another_providers_burst_of_the_same_owner_is_neither_seen_nor_touched")
class SeesLongerNames(FakeProvider):
    def _mine(self) -> dict[BurstId, FakeBurst]:
        bursts = self.cloud.bursts.items()
        return {
            key[2]: burst
            for key, burst in bursts
            if key[0] == self.owner and key[1].startswith(self.name)
        }


@caught_by("the_bursts_of_all_providers_are_listed_with_their_names")
class ListsAllUnderItsOwnName(FakeProvider):
    def list_all(self) -> Sequence[OwnedBurst]:
        found = super().list_all()
        return [msgspec.structs.replace(burst, provider=self.name) for burst in found]


@caught_by("the_bursts_of_all_owners_are_listed_with_their_tags")
class ListsOnlyItsOwn(FakeProvider):
    def list_all(self) -> Sequence[OwnedBurst]:
        return [burst for burst in super().list_all() if burst.owner == self.owner]


@caught_by("the_bursts_of_all_owners_are_listed_with_their_tags")
class LeavesTheLeaseOutOfItsTags(FakeProvider):
    def list_all(self) -> Sequence[OwnedBurst]:
        found = super().list_all()
        return [msgspec.structs.replace(burst, lease_end=0.0) for burst in found]


@caught_by("called_for_two_bursts_at_a_time_it_makes_and_ends_both")
class MixesCallsAtATime(FakeProvider):
    concurrency = 2

    def provision(self, spec: BurstSpec) -> None:
        self._present = spec
        # As for a request, where another call comes meanwhile.
        together = self.cloud.__dict__.get("together")
        if together:
            together.wait(60.0)
        super().provision(self._present)


@caught_by("its_followers_join_the_lead_and_leave_it")
class StartsWhatNeverJoins(FakeProvider):
    def provision(self, spec: BurstSpec) -> None:
        super().provision(spec)
        self._mine()[spec.burst_id].joins = False


@caught_by("at_the_end_of_its_lease_it_ends_by_itself")
class IgnoresTheEndOfALease(FakeProvider):
    def observe(self) -> Sequence[BurstStatus]:
        self.cloud.clock = None
        return super().observe()


@caught_by("at_the_end_of_its_lease_it_ends_by_itself")
class EndsBeforeItsLease(FakeProvider):
    def observe(self) -> Sequence[BurstStatus]:
        statuses = super().observe()
        self.cloud.clock = lambda: math.inf
        return statuses


@caught_by("at_the_end_of_its_lease_it_ends_by_itself")
class EndsItsLeaseOnlyWhenObserved(FakeProvider):
    def observe(self) -> Sequence[BurstStatus]:
        self.cloud.clock = time.time
        statuses = super().observe()
        self.cloud.clock = None
        return statuses


@caught_by("grown_twice_it_grows_once")
class GrowsAgainOnARepeat(FakeProvider):
    def resize(self, spec: BurstSpec) -> None:
        known = self._mine().get(spec.burst_id)
        again = known is not None and known.spec == spec and len(spec.hosts) > 1
        super().resize(spec)
        if known and again:
            known.made += spec.hosts[1:]


@caught_by("a_restart_goes_on_with_a_growth")
class ForgetsAGrowthAtARestart(FakeProvider):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for burst in self._mine().values():
            if burst.grown_at:
                burst.made, burst.grown_at = burst.made[:1], {}


@caught_by("grown_it_runs_with_all_its_followers")
class GrowsInNameOnly(FakeProvider):
    def resize(self, spec: BurstSpec) -> None:
        super().resize(spec)
        known = self._mine()[spec.burst_id]
        known.made = known.made[:1]


@caught_by("shrunk_its_first_followers_go_on")
class ShrinksFromTheBottom(FakeProvider):
    def resize(self, spec: BurstSpec) -> None:
        known = self._mine().get(spec.burst_id)
        made = list(known.made) if known else []
        super().resize(spec)
        if known and len(made) > len(spec.hosts):
            known.made = made[len(spec.hosts) :]


@caught_by("shrunk_its_first_followers_go_on")
class NeverEndsWhatLeaves(FakeProvider):
    def resize(self, spec: BurstSpec) -> None:
        self.ends_after = 1_000_000_000
        super().resize(spec)
        self.ends_after = 0


@caught_by("shrunk_its_first_followers_go_on")
class ListsNothingOfWhatLeaves(FakeProvider):
    def resize(self, spec: BurstSpec) -> None:
        known = self._mine().get(spec.burst_id)
        made = list(known.made) if known else []
        super().resize(spec)
        if known and len(made) > len(spec.hosts):
            known.made = made


@caught_by("reaped_while_it_grows_it_is_gone")
class ReapsWithoutItsGrowth(FakeProvider):
    def reap(self, burst_id: BurstId) -> None:
        known = self._mine().get(burst_id)
        if known is None or not known.grown_at:
            super().reap(burst_id)
            return
        known.made = [host for host in known.made if host in known.grown_at]
        raise NotFound("what was provisioned is gone")


@caught_by("what_does_not_exist_is_not_made_by_a_resize")
class MakesByAResizeWhatNeverWas(FakeProvider):
    def resize(self, spec: BurstSpec) -> None:
        try:
            super().resize(spec)
        except NotFound:
            self.provision(spec)


@caught_by("another_burst_is_not_touched_when_one_is_resized")
class ResizesForAnyOwner(FakeProvider):
    def resize(self, spec: BurstSpec) -> None:
        owners = [key[0] for key in self.cloud.bursts if key[2] == spec.burst_id]
        self.owner = owners[0] if owners else self.owner
        super().resize(spec)


@caught_by("while_it_is_reaped_it_does_not_grow")
class RevivesByAResize(FakeProvider):
    ends_after = 1

    def resize(self, spec: BurstSpec) -> None:
        known = self._mine().get(spec.burst_id)
        if known and known.ends_in is not None:
            known.ends_in = 1_000_000_000
            return
        super().resize(spec)


@caught_by("past_what_it_sells_it_does_not_grow")
class GrowsPastItsOffer(SellingAnyNumber):
    def resize(self, spec: BurstSpec) -> None:
        with self.selling_any_number():
            super().resize(spec)


@caught_by("past_what_it_sells_it_does_not_grow")
class IsDisabledByALargeGrowth(FakeProvider):
    def resize(self, spec: BurstSpec) -> None:
        try:
            super().resize(spec)
        except InsufficientCapacity as error:
            if len(spec.hosts) > self.settings.max_nodes:
                raise Refused(error.what) from error
            raise


@caught_by("other_followers_are_no_resize")
class TakesAnyHosts(FakeProvider):
    def resize(self, spec: BurstSpec) -> None:
        try:
            super().resize(spec)
        except SpecRefused:
            known = self._mine()[spec.burst_id]
            known.spec, known.made = spec, list(spec.hosts)


@caught_by("without_room_its_first_followers_go_on")
class EndsABurstForWantOfRoom(FakeProvider):
    def resize(self, spec: BurstSpec) -> None:
        try:
            super().resize(spec)
        except InsufficientCapacity:
            if self.cloud.full:
                self.fail(spec.burst_id, "there is no room for its growth")
            raise


@caught_by("unreachable_a_resize_raises")
class SaysThatItGrewWhenUnreachable(FakeProvider):
    def resize(self, spec: BurstSpec) -> None:
        if self.cloud.reachable:
            super().resize(spec)


@caught_by("a_resize_does_not_wait_for_progress")
class WaitsUntilItHasGrown(FakeProvider):
    def resize(self, spec: BurstSpec) -> None:
        super().resize(spec)
        _wait_while_stalled(self.cloud)


def _wait_while_stalled(cloud: FakeCloud) -> None:
    for _ in range(1000):
        if not cloud.stalled:
            return
        threading.Event().wait(0.01)


def _secret(spec: BurstSpec) -> str:
    return certificate.read(Path(spec.lead.certificate)).secret.decode()
