# SPDX-License-Identifier: MIT
"""The provider contract can fail: every broken provider fails it, for its reason."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from burst.testing import FakeCloud
from burst.testing.contract import Begin, Count, MakeProvider
from burst.testing.trial import Trial, TrialTiming
from tests.contract.broken_providers import BROKEN
from tests.contract.fake_contract import FakeContract

_UNREACHABLE = "test_unreachable_it_raises_and_never_says_that_nothing_is_there"
_DEAD = "test_a_follower_that_dies_is_told_with_a_reason"
_ONE = "test_the_end_of_one_follower_is_not_that_of_the_others"
_FIRST = "test_grown_the_end_of_its_first_follower_is_not_that_of_the_others"
_FULL = "test_without_room_it_says_so_by_insufficient_capacity"
_AGAIN = "test_after_a_crash_at_the_request_it_is_made_once"
_REAPED = "test_after_a_crash_at_the_request_nothing_outlives_the_reaping"
_CERTIFICATE = "test_a_certificate_that_cannot_be_used_is_an_error_of_the_taxonomy"
_LEASE = "test_at_the_end_of_its_lease_it_ends_by_itself"
_NAME = "test_another_providers_burst_of_the_same_owner_is_neither_seen_nor_touched"
_TEMPORARY = "test_once_reaped_no_temporary_file_tells_of_it"

_OWNERS = "test_the_bursts_of_all_owners_are_listed_with_their_tags"

CAUGHT_BY = {
    "SellsNothing": "test_offers_are_sane",
    "NeverTellsTheEnd": "test_isolated_it_tells_how_its_program_ended",
    "ForgetsTheEndAtARestart": "test_isolated_it_tells_how_its_program_ended",
    "EndsBadly": "test_isolated_it_tells_how_its_program_ended",
    "SellsOneTwice": "test_offers_are_sane",
    "SellsEmptyNodes": "test_offers_are_sane",
    "SellsWhatIsFree": "test_offers_are_sane",
    "NeverStarts": "test_a_burst_is_listed_and_then_runs",
    "StartsInPart": "test_a_burst_is_listed_and_then_runs",
    "MakesTwiceOnARepeat": "test_provisioned_twice_it_is_made_once",
    "ForgetsAtARestart": "test_a_restart_finds_what_was_made",
    "ListsOnlyWhatIsWhole": "test_half_built_it_is_listed_and_completed",
    "LeavesHalfBuiltThingsHalfBuilt": "test_half_built_it_is_listed_and_completed",
    "SaysNotFoundForHalfBuiltThings": "test_half_built_it_can_be_reaped",
    "IgnoresTheOwner": "test_another_owners_burst_is_neither_seen_nor_touched",
    "ReapsForAnyOwner": "test_another_owners_burst_is_neither_seen_nor_touched",
    "ReapsNothing": "test_reaped_it_is_gone",
    "ReapsEverything": "test_two_bursts_are_independent",
    "SaysNotFoundTooEarly": "test_reaped_it_is_gone",
    "NeverSaysNotFound": "test_reaping_what_never_was_is_not_found",
    "RaisesItsOwnErrorForTheUnknown": "test_reaping_what_never_was_is_not_found",
    "ListsWhatIsGone": "test_reaped_it_is_gone",
    "ComesBackAfterItsEnd": "test_reaped_while_it_is_made_it_does_not_come_back",
    "RevivesWhatIsReaped": "test_provisioned_while_it_is_reaped_it_still_ends",
    "TellsTheSecretInAStatus": "test_a_burst_is_listed_and_then_runs",
    "TellsTheSecretInAnError": "test_a_burst_is_listed_and_then_runs",
    "ListsWhatCannotBeEncoded": "test_a_burst_is_listed_and_then_runs",
    "ListsOneTwice": "test_a_burst_is_listed_and_then_runs",
    "ListsAFollowerTwice": "test_a_burst_is_listed_and_then_runs",
    "RunsWithAFollowerMissing": "test_a_burst_is_listed_and_then_runs",
    "MixesBursts": "test_two_bursts_are_independent",
    "SellsAnything": "test_what_it_does_not_sell_it_declines[offer]",
    "SellsAnyNumber": "test_what_it_does_not_sell_it_declines[nodes]",
    "WaitsForProgress": "test_a_burst_is_listed_and_then_runs",
    "RaisesWhatNobodyKnows": (
        "test_misconfigured_it_says_so_in_errors_of_the_taxonomy"
    ),
    "GrowsAgainOnARepeat": "test_grown_twice_it_grows_once",
    "ForgetsAGrowthAtARestart": "test_a_restart_goes_on_with_a_growth",
    "GrowsInNameOnly": "test_grown_it_runs_with_all_its_followers",
    "RestartsWhatItResizes": "test_shrunk_its_first_followers_go_on",
    "ShrinksFromTheBottom": "test_shrunk_its_first_followers_go_on",
    "NeverEndsWhatLeaves": "test_shrunk_its_first_followers_go_on",
    "ListsNothingOfWhatLeaves": "test_shrunk_its_first_followers_go_on",
    "ReapsWithoutItsGrowth": "test_reaped_while_it_grows_it_is_gone",
    "SaysNothingOfWhatNeverWas": "test_what_does_not_exist_is_not_made_by_a_resize",
    "MakesByAResizeWhatNeverWas": "test_what_does_not_exist_is_not_made_by_a_resize",
    "ResizesForAnyOwner": "test_another_burst_is_not_touched_when_one_is_resized",
    "RevivesByAResize": "test_while_it_is_reaped_it_does_not_grow",
    "GrowsPastItsOffer": "test_past_what_it_sells_it_does_not_grow",
    "IsDisabledByALargeGrowth": "test_past_what_it_sells_it_does_not_grow",
    "TakesAnyHosts": "test_other_followers_are_no_resize",
    "EndsABurstForWantOfRoom": "test_without_room_its_first_followers_go_on",
    "SaysThatItGrewWhenUnreachable": "test_unreachable_a_resize_raises",
    "WaitsUntilItHasGrown": "test_a_resize_does_not_wait_for_progress",
    "ListsOnlyItsOwn": _OWNERS,
    "MixesCallsAtATime": "test_called_for_two_bursts_at_a_time_it_makes_and_ends_both",
    "LeavesTheLeaseOutOfItsTags": _OWNERS,
    "ListsNothingWhenUnreachable": _UNREACHABLE,
    "SaysNotFoundWhenUnreachable": _UNREACHABLE,
    "RaisesItsOwnErrorWhenUnreachable": _UNREACHABLE,
    "CallsTheDeadRunning": _DEAD,
    "GivesNoReasonForADeath": _DEAD,
    "EndsWithOneOfItsFollowers": _ONE,
    "EndsWithWhatItGrewFrom": _FIRST,
    "IsDisabledByOneSpec": "test_what_it_does_not_sell_it_declines[offer]",
    "CallsAFullBackendTransient": _FULL,
    "CallsAFullBackendRefused": _FULL,
    "MakesAgainWhatWasNotAnswered": f"{_AGAIN}[after]",
    "TakesItsIntentForTheDeed": f"{_AGAIN}[before]",
    "ListsNothingWhoseAnswerWasLost": f"{_REAPED}[after]",
    "ReadsACertificateWithoutCare": f"{_CERTIFICATE}[None]",
    "WaitsUntilItRuns": "test_provision_does_not_wait_for_progress",
    "PutsTheSecretIntoAFile": "test_no_secret_is_in_what_others_can_read",
    "LeavesAFile": "test_once_reaped_no_file_and_no_object_of_it_is_left",
    "LeavesATemporaryFile": _TEMPORARY,
    "GivesTheEndpointOfAnotherLead": "test_followers_are_given_the_leads_endpoint",
    "LeavesItsNameOutOfItsTags": _NAME,
    "StartsWhatNeverJoins": "test_its_followers_join_the_lead_and_leave_it",
    "IgnoresTheEndOfALease": _LEASE,
    "EndsBeforeItsLease": _LEASE,
}


class Broken(FakeContract):
    # Most of them use these up, and nothing depends on a stall: what is to fail fails.
    patience = 0.4
    pause = 0.01
    prompt = 60.0
    lease = 0.2

    @pytest.fixture
    def cloud(self, request: pytest.FixtureRequest) -> FakeCloud:
        cloud = FakeCloud()
        if "two_bursts_at_a_time" in request.node.name:
            cloud.__dict__["together"] = threading.Barrier(2)
        return cloud

    @pytest.fixture
    def begin(
        self, make_provider: MakeProvider, count: Count | None
    ) -> Iterator[Begin]:
        """Reap nothing at the end: it may be what they cannot do."""
        timing = TrialTiming(self.patience, self.pause, self.prompt)
        trials: list[Trial] = []

        def begin_one(owner: str, make: MakeProvider = make_provider) -> Trial:
            trials.append(Trial(make(owner), timing, count))
            return trials[-1]

        yield begin_one
        for trial in trials:
            trial.given.clear()
            trial.close()


OWN_TIMES: dict[str, dict[str, float]] = {
    "EndsBeforeItsLease": {"lease": 60.0},
    "WaitsForProgress": {"prompt": 0.5},
    "WaitsUntilItRuns": {"prompt": 0.5},
    "WaitsUntilItHasGrown": {"prompt": 5.0},
}
"""Of those that use `prompt` up, and of one that does not use up its lease."""


def must_fail(test: Callable[..., None], only: str) -> Callable[..., None]:
    """Return the test turned round, of its parameters only this one, by its id."""

    @functools.wraps(test)
    def turned_round(*given: Any, **fixtures: Any) -> None:
        with pytest.raises((Exception, pytest.fail.Exception)):
            test(*given, **fixtures)

    turned_round.__dict__["pytestmark"] = [
        _narrowed(mark, only) if mark.name == "parametrize" else mark
        for mark in getattr(test, "pytestmark", [])
    ]
    return turned_round


def _narrowed(parametrized: pytest.Mark, only: str) -> pytest.Mark:
    name, values = parametrized.args
    chosen = [value for value in values if str(value) == only]
    return pytest.mark.parametrize(name, chosen).mark


def test_every_broken_provider_is_listed_here() -> None:
    assert set(CAUGHT_BY) == set(BROKEN)


for _name, _caught_by in CAUGHT_BY.items():
    _test, _, _only = _caught_by.removesuffix("]").partition("[")
    _fields: dict[str, Any] = dict.fromkeys(
        name for name in dir(Broken) if name.startswith("test_")
    )
    _fields[_test] = must_fail(getattr(Broken, _test), _only)
    _fields |= {"kind": BROKEN[_name], **OWN_TIMES.get(_name, {})}
    globals()[f"Test{_name}"] = type(f"Test{_name}", (Broken,), _fields)
