# SPDX-License-Identifier: MIT
from burst.core.job_report import job_row
from burst.model.decision import Decision, OfferRejection
from burst.model.reason import Reason
from tests.builders import job, whole

FULL = OfferRejection("local/local", Reason.SLOTS_SMALL, {"most": 3, "need": 17})
SMALL = OfferRejection("local/local", Reason.FEW_NODES, {"most": 8, "need": 20})


def test_what_is_impossible_is_not_told_by_what_was_free_when_it_was_decided():
    decision = Decision(Reason.TOO_LARGE, {"need": 20, "most": 8}, (FULL, SMALL))

    told = job_row(job(1, whole(20)), decision)["refusals"]

    assert [refusal["why"] for refusal in told] == [SMALL.text()]


def test_a_job_that_waits_is_told_what_is_not_free():
    told = job_row(job(1, whole(20)), Decision(Reason.TURNED_DOWN, {}, (FULL, SMALL)))[
        "refusals"
    ]

    assert [refusal["why"] for refusal in told] == [FULL.text(), SMALL.text()]
