# SPDX-License-Identifier: MIT
"""The provider contract can fail: every broken provider fails it, for its reason."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from tests.contract import broken_providers

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


@pytest.fixture(scope="module")
def failures(tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[str]]:
    """Run for each of them the test that should tell; return who failed which."""
    report = tmp_path_factory.mktemp("mutants") / "report.xml"
    path = Path(broken_providers.__file__)
    tests = [f"{path}::Test{name}::{test}" for name, test in CAUGHT_BY.items()]
    words = ["-p", "no:cacheprovider", "-q", f"--junitxml={report}", *tests]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *words],
        cwd=path.parent.parent.parent,
        capture_output=True,
        text=True,
        timeout=100,
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
    assert set(CAUGHT_BY) == set(broken_providers.BROKEN)


@pytest.mark.parametrize("name", CAUGHT_BY)
def test_a_broken_provider_fails_the_contract(
    name: str, failures: dict[str, set[str]]
) -> None:
    assert CAUGHT_BY[name] in failures[name]
