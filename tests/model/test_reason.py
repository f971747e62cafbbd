# SPDX-License-Identifier: MIT
"""Every reason says itself what follows from it."""

import datetime
import re
import string
from pathlib import Path

import pytest

import burst
from burst.model.decision import Decision, OfferRejection, moment
from burst.model.reason import JobReason, OfferReason, Reason

ABOUT_JOBS = [reason for reason in Reason if isinstance(reason.value, JobReason)]
ABOUT_OFFERS = [reason for reason in Reason if isinstance(reason.value, OfferReason)]


NAMED = re.compile(r"\bReason\.([A-Z_]+)\b")


class AnyFact(dict[str, object]):
    """Has every fact, such as a time may be, too."""

    def __missing__(self, key):
        return 0.0


def test_each_reason_is_about_a_job_or_about_an_offer():
    assert {*ABOUT_JOBS, *ABOUT_OFFERS} == set(Reason)
    assert len(Reason.__members__) == len(Reason)


def test_each_reason_is_given_somewhere():
    sources = Path(burst.__file__).parent.rglob("*.py")
    given = {name for source in sources for name in NAMED.findall(source.read_text())}

    assert given >= {reason.name for reason in Reason}


@pytest.mark.parametrize("reason", ABOUT_JOBS)
def test_what_a_reason_implies_of_a_job_is_in_itself_consistent(reason):
    implied = reason.about_job

    if implied.lasting:
        assert implied.refused
    if implied.left_alone:
        assert not implied.refused
        assert not implied.final
    if implied.refused or implied.final:
        # Whoever waits for nothing is told so.
        assert implied.memo in {"waiting", "impossible"}


@pytest.mark.parametrize("reason", ABOUT_JOBS)
def test_a_job_is_told_a_sentence_with_all_its_facts(reason):
    verdict = Decision(reason, AnyFact())

    assert "{" not in verdict.text() + (verdict.memo_word() or "")


def test_times_are_times_of_day_whatever_the_reason():
    fields = {
        (name, conversion)
        for reason in Reason
        for _, name, _, conversion in string.Formatter().parse(reason.value.text)
        if name == "until"
    }

    assert fields == {("until", "t")}
    facts = {"limit": "5m", "until": 0.0, "stood": "nothing"}
    assert Decision(Reason.NOT_STARTED, facts).text().count(":") == 3


def test_other_conversions_of_facts_are_those_of_python():
    shown = OfferRejection("local/small", Reason.OFFERS_UNKNOWN, {"provider": "gke!t"})

    assert shown.text() == "provider gke!t has not answered yet"


def test_a_time_that_may_be_days_away_has_its_date():
    until = datetime.datetime(2026, 8, 5, 13, 46, 44)
    facts = {"rule": "night", "until": until.timestamp()}
    assert (
        Decision(Reason.OWN_FIRST, facts).text().endswith("until 2026-08-05 13:46:44")
    )


@pytest.mark.parametrize("until", [float("inf"), 1e12, float("nan")])
def test_a_time_that_no_calendar_has_is_never(until):
    facts = {"why": "full", "until": until, "provider": "a"}
    text = OfferRejection("a/b", Reason.OFFER_COOLDOWN, facts).text()
    assert "set aside until never (burst enable a" in text
    assert moment(until) == "never"


def test_a_reason_is_shown_by_its_name():
    assert repr(Reason.LOCAL) == "<Reason.LOCAL>"
