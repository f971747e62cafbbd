# SPDX-License-Identifier: MIT
"""What becomes of `burst request --job`."""

from typing import Any

import pytest

from burst.core.burst_requests import request_for_job
from burst.core.records import Records, Transaction
from burst.errors import BurstError, Unreadable
from burst.model.hold import Hold, HoldState
from burst.model.jobid import JobId
from burst.model.lead import JobState, JobView
from tests.builders import T0, but, job, settings, view, whole, world

ONE = JobId(1)
FRUGAL = settings(plan={"worth": 0.1})
WAITING = job(1, whole(2))


def asked(one: JobView, hold: Hold | None = None, **tables: Any) -> Records:
    records = Records(holds={ONE: hold} if hold else {})
    found = settings(**tables) if tables else FRUGAL
    tx = Transaction(records, world(view(one)), found, T0 + 9)
    request_for_job(tx, ONE)
    return tx.result()


def test_a_request_is_on_record_and_changes_nothing_else() -> None:
    (hold,) = asked(WAITING).holds.values()
    known = Hold(urgency=16, state=HoldState.RELEASED, since=T0 + 1)
    assert hold == but(known, expected_urgency=16, requested=True)


def test_a_hold_stays_as_it_is() -> None:
    held = Hold(urgency=9, state=HoldState.HELD, since=T0)
    one = but(WAITING, urgency=0)
    assert asked(one, held).holds[ONE] == but(held, requested=True)


def test_a_job_that_a_rule_marks_may_have_one() -> None:
    plain = but(WAITING, burstable=False)
    assert asked(plain, policy=[{"mark": True}]).holds[ONE].requested
    with pytest.raises(BurstError, match="burst knows no job ƒ2: it has ended"):
        asked(plain)


@pytest.mark.parametrize(
    ("changes", "state", "says"),
    [
        ({"state": JobState.RUN}, None, "ƒ2 does not wait any more"),
        ({"urgency": 0}, None, "ƒ2 is held by its user; flux job urgency"),
        (
            {},
            HoldState.TAKEN_BACK,
            "released by hand, so it is left alone; submit it again",
        ),
        ({"urgency": 0}, HoldState.TAKEN_BACK, "released by hand"),
    ],
)
def test_what_would_come_to_nothing_is_refused(changes, state, says):
    hold = Hold(urgency=16, state=state, since=T0) if state else None
    with pytest.raises(BurstError, match=says):
        asked(but(WAITING, **changes), hold)


def test_a_job_or_a_lead_that_cannot_be_read() -> None:
    with pytest.raises(BurstError, match="burst knows no job ƒ2"):
        request_for_job(Transaction(Records(), world(view()), FRUGAL, T0), ONE)
    with pytest.raises(Unreadable, match="run burst doctor"):
        request_for_job(Transaction(Records(), world(None), FRUGAL, T0), ONE)
