# SPDX-License-Identifier: MIT
"""The provider contract can fail: every broken provider fails it, for its reason."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from tests.contract import broken_providers

LONGEST_S = 900.0
"""Of one run, on a machine that is very slow. It takes half a minute."""

# The first test waits for all runs.
pytestmark = pytest.mark.timeout(2 * LONGEST_S + 60)

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
}

CAUGHT_BY |= {
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
}

_UNREACHABLE = "test_unreachable_it_raises_and_never_says_that_nothing_is_there"
_DEAD = "test_a_follower_that_dies_is_told_with_a_reason"
_FULL = "test_without_room_it_says_so_by_insufficient_capacity"
_AGAIN = "test_after_a_crash_at_the_request_it_is_made_once"
_REAPED = "test_after_a_crash_at_the_request_nothing_outlives_the_reaping"
_CERTIFICATE = "test_a_certificate_that_cannot_be_used_is_an_error_of_the_taxonomy"
_LEASE = "test_at_the_end_of_its_lease_it_ends_by_itself"
_NAME = "test_another_providers_burst_of_the_same_owner_is_neither_seen_nor_touched"
_TEMPORARY = "test_once_reaped_no_temporary_file_tells_of_it"

_OWNERS = "test_the_bursts_of_all_owners_are_listed_with_their_tags"

CAUGHT_ONLY_BY = {
    "RevivesByAResize": {"test_while_it_is_reaped_it_does_not_grow"},
    "GrowsPastItsOffer": {"test_past_what_it_sells_it_does_not_grow"},
    "IsDisabledByALargeGrowth": {"test_past_what_it_sells_it_does_not_grow"},
    "TakesAnyHosts": {"test_other_followers_are_no_resize"},
    "EndsABurstForWantOfRoom": {"test_without_room_its_first_followers_go_on"},
    "SaysThatItGrewWhenUnreachable": {"test_unreachable_a_resize_raises"},
    "WaitsUntilItHasGrown": {"test_a_resize_does_not_wait_for_progress"},
    "ListsOnlyItsOwn": {_OWNERS},
    "MixesCallsAtATime": {
        "test_called_for_two_bursts_at_a_time_it_makes_and_ends_both"
    },
    "LeavesTheLeaseOutOfItsTags": {_OWNERS},
    "ListsNothingWhenUnreachable": {_UNREACHABLE},
    "SaysNotFoundWhenUnreachable": {_UNREACHABLE},
    "RaisesItsOwnErrorWhenUnreachable": {_UNREACHABLE},
    "CallsTheDeadRunning": {_DEAD},
    "GivesNoReasonForADeath": {_DEAD},
    "IsDisabledByOneSpec": {"test_what_it_does_not_sell_it_declines[offer]"},
    "CallsAFullBackendTransient": {_FULL},
    "CallsAFullBackendRefused": {_FULL},
    "MakesAgainWhatWasNotAnswered": {f"{_AGAIN}[after]"},
    "TakesItsIntentForTheDeed": {f"{_AGAIN}[before]"},
    "ListsNothingWhoseAnswerWasLost": {f"{_REAPED}[after]"},
    "ReadsACertificateWithoutCare": {f"{_CERTIFICATE}[None]"},
    "WaitsUntilItRuns": {"test_provision_does_not_wait_for_progress"},
    "PutsTheSecretIntoAFile": {"test_no_secret_is_in_what_others_can_read"},
    "LeavesAFile": {"test_once_reaped_no_file_and_no_object_of_it_is_left"},
    "LeavesATemporaryFile": {_TEMPORARY},
    "GivesTheEndpointOfAnotherLead": {"test_followers_are_given_the_leads_endpoint"},
    "LeavesItsNameOutOfItsTags": {_NAME},
    "StartsWhatNeverJoins": {"test_its_followers_join_the_lead_and_leave_it"},
    "IgnoresTheEndOfALease": {_LEASE},
    "EndsBeforeItsLease": {_LEASE},
}
"""Each of these fails nothing else of the whole contract."""


@pytest.fixture(scope="module")
def failures(tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[str]]:
    """Run for each of them what should tell; return who failed which."""
    tests = [f"{name}::{test}" for name, test in CAUGHT_BY.items()]
    return run(tmp_path_factory.mktemp("mutants"), [*tests, *CAUGHT_ONLY_BY])


@pytest.fixture(scope="module")
def differences(
    failures: dict[str, set[str]], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, set[str]]:
    """Return by whom which tests are failed, or are not, against what is said here.

    Their times are short. What a stall of the machine did is not there a second time;
    what a broken provider does is.
    """
    first = {
        name: differs
        for name, expected in CAUGHT_ONLY_BY.items()
        if (differs := failures[name] ^ expected)
    }
    again = run(tmp_path_factory.mktemp("again"), list(first)) if first else {}
    return {
        name: differs & (again[name] ^ CAUGHT_ONLY_BY[name])
        for name, differs in first.items()
    }


def run(place: Path, tests: list[str]) -> dict[str, set[str]]:
    """Run broken providers, by name, or one test of each; return who failed which."""
    report = place / "report.xml"
    path = Path(broken_providers.__file__)
    names = [f"{path}::Test{test}" for test in tests]
    words = ["-p", "no:cacheprovider", "-q", f"--junitxml={report}", *names]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *words],
        cwd=path.parent.parent.parent,
        # One of them leaves temporary files.
        env={**os.environ, "TMPDIR": str(place)},
        capture_output=True,
        text=True,
        timeout=LONGEST_S,
        check=False,
    )
    assert report.exists(), done.stdout + done.stderr
    found: dict[str, set[str]] = {}
    for case in ET.parse(report).iter("testcase"):
        failed = found.setdefault(
            case.attrib["classname"].rpartition(".Test")[2], set()
        )
        if case.find("failure") is not None:
            failed.add(case.attrib["name"])
    return found


def test_every_broken_provider_is_listed_here() -> None:
    assert {*CAUGHT_BY, *CAUGHT_ONLY_BY} == set(broken_providers.BROKEN)


@pytest.mark.parametrize("name", CAUGHT_BY)
def test_a_broken_provider_fails_the_contract(
    name: str, failures: dict[str, set[str]]
) -> None:
    assert CAUGHT_BY[name] in failures[name]


@pytest.mark.parametrize("name", CAUGHT_ONLY_BY)
def test_one_check_alone_catches_it(
    name: str, differences: dict[str, set[str]]
) -> None:
    assert differences.get(name, set()) == set()
