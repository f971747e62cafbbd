# SPDX-License-Identifier: MIT
import math
from typing import Any, cast

import msgspec
import pytest

from burst.core.plan.estimate import StartEstimate
from burst.errors import LeadError, LeadGone
from burst.lead import Lead
from burst.model.decision import moment
from burst.model.jobid import JobId
from burst.model.lead import JobState, LeadView
from burst.runtime.start_teller import StartTeller
from tests.builders import T0, but, job, settings, view, whole

HOUR = 3600.0


class TellingLead:
    """Remembers what it was sent."""

    def __init__(self) -> None:
        self.starts: list[dict[JobId, float]] = []
        self.memos: list[dict[JobId, Any]] = []
        self.error: Exception | None = None
        self.failures: dict[JobId, str] = {}

    def send_starts(self, starts: dict[JobId, float]) -> None:
        if self.error:
            raise self.error
        self.starts.append(starts)

    def write_memos(self, memos: dict[JobId, Any]) -> dict[JobId, str]:
        self.memos.append(memos)
        return self.failures


def at(seconds: float) -> StartEstimate:
    return StartEstimate(expected=seconds, earliest=seconds, latest=seconds)


def waiting(*numbers: int, **changes: Any) -> LeadView:
    shown: LeadView = view(*(job(number, whole(1), **changes) for number in numbers))
    return shown


class Telling:
    def __init__(self, mode: str) -> None:
        self.lead: Any = TellingLead()
        self.now = T0
        self.teller = StartTeller(
            cast("Lead", self.lead), settings(intake={"mode": mode})
        )

    def tell(self, shown: LeadView, **starts: float) -> None:
        """Tell starts, each in seconds after T0, by `j` and the number of the job."""
        estimates = {JobId(int(n[1:])): at(T0 + s) for n, s in starts.items()}
        self.teller.tell(estimates, shown, self.now)

    def later(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def memos() -> Telling:
    return Telling("hold")


@pytest.fixture
def scheduler() -> Telling:
    return Telling("scheduler")


def test_the_scheduler_is_told_again_once_a_start_moved(scheduler: Telling) -> None:
    scheduler.tell(waiting(1), j1=HOUR, j2=math.inf, j3=2 * HOUR)
    assert scheduler.lead.starts == [{1: T0 + HOUR, 3: T0 + 2 * HOUR}]
    assert not scheduler.lead.memos
    scheduler.later(10.0)
    scheduler.tell(waiting(1), j1=HOUR + 60.0, j3=2 * HOUR)
    assert len(scheduler.lead.starts) == 1
    scheduler.tell(waiting(1), j1=2 * HOUR)
    assert len(scheduler.lead.starts) == 2
    scheduler.tell(waiting(1), j1=HOUR)
    assert len(scheduler.lead.starts) == 2, "too soon"
    scheduler.later(10.0)
    scheduler.tell(waiting(1))
    assert scheduler.lead.starts[-1] == {}
    scheduler.later(HOUR)
    scheduler.tell(waiting(1))
    assert len(scheduler.lead.starts) == 3


def test_a_lead_whose_scheduler_takes_no_starts(scheduler: Telling) -> None:
    modes = settings(intake={"mode": "scheduler"})
    scheduler.teller = StartTeller(object(), modes)  # type: ignore[arg-type]
    scheduler.tell(waiting(1), j1=HOUR)


def test_a_failure_is_logged_and_the_loss_of_the_lead_raised(
    scheduler: Telling, caplog: pytest.LogCaptureFixture
) -> None:
    scheduler.lead.error = LeadError("no such service", "load it")
    scheduler.tell(waiting(1), j1=HOUR)
    assert "jobs are not given their expected start: no such service" in caplog.text
    scheduler.lead.error = LeadGone("away")
    scheduler.later(60.0)
    with pytest.raises(LeadGone):
        scheduler.tell(waiting(1), j1=HOUR)


def test_a_memo_is_written_again_only_where_the_start_moved_a_lot(
    memos: Telling,
) -> None:
    memos.tell(waiting(1, 2), j1=HOUR, j2=math.inf)
    assert memos.lead.memos == [{1: {"start": moment(T0 + HOUR)}}]
    memos.later(700.0)
    memos.tell(waiting(1), j1=HOUR + 650.0)
    assert len(memos.lead.memos) == 1
    memos.tell(waiting(1), j1=2 * HOUR)
    assert memos.lead.memos[-1] == {1: {"start": moment(T0 + 2 * HOUR)}}
    memos.later(300.0)
    memos.tell(waiting(1), j1=9 * HOUR)
    assert len(memos.lead.memos) == 2, "too soon"


def test_a_start_that_is_not_known_any_more_is_taken_out(memos: Telling) -> None:
    memos.tell(waiting(1), j1=HOUR)
    memos.later(30.0)
    memos.tell(waiting(1))
    assert len(memos.lead.memos) == 1
    memos.later(40.0)
    memos.tell(waiting(1))
    assert memos.lead.memos[-1] == {1: {"start": None}}
    memos.tell(waiting(1))
    assert len(memos.lead.memos) == 2


def test_what_the_lead_dropped_or_refused_is_written_again(memos: Telling) -> None:
    memos.lead.failures = {JobId(1): "no"}
    memos.tell(waiting(1), j1=HOUR)
    memos.lead.failures = {}
    memos.tell(waiting(1), j1=HOUR)
    memos.tell(waiting(1, memos_dropped=1), j1=HOUR)
    memos.tell(waiting(1, memos_dropped=1), j1=HOUR)
    assert len(memos.lead.memos) == 3
    memos.tell(waiting(2), j2=HOUR)
    memos.tell(waiting(1, memos_dropped=1), j1=HOUR)
    assert len(memos.lead.memos) == 5


def test_starts_that_are_the_same_are_compared_now_and_then(memos: Telling) -> None:
    starts = {JobId(n): at(T0 + HOUR * n) for n in range(1, 121)}
    shown = waiting(*range(1, 121))
    for _ in range(2):
        memos.teller.tell(starts, shown, memos.now)
    # Those that start first come first.
    assert [max(told) for told in memos.lead.memos] == [50, 100]
    assert [len(told) for told in memos.lead.memos] == [50, 50]
    # One has ended by its turn, one has started; what was dropped is seen in time.
    left = dict(shown.jobs)
    del left[JobId(101)]
    left[JobId(102)] = but(left[JobId(102)], state=JobState.RUN)
    left[JobId(1)] = but(left[JobId(1)], memos_dropped=1)
    shown = but(shown, jobs=left)
    for _ in range(3):
        memos.teller.tell(starts, shown, memos.now)
    assert len(memos.lead.memos) == 3
    assert set(memos.lead.memos[2]) == set(range(103, 121))
    memos.later(5.0)
    memos.teller.tell(starts, shown, memos.now)
    assert set(memos.lead.memos[3]) == {1}


def test_the_scheduler_is_not_asked_about_the_same_starts(scheduler: Telling) -> None:
    starts = {JobId(1): at(T0 + HOUR)}
    scheduler.teller.tell(starts, waiting(1), scheduler.now)
    scheduler.later(10.0)
    moved = {JobId(1): at(T0 + 3 * HOUR)}
    scheduler.teller.tell(starts, waiting(1), scheduler.now)
    assert len(scheduler.lead.starts) == 1
    scheduler.teller.tell(moved, waiting(1), scheduler.now)
    scheduler.later(60.0)
    scheduler.teller.tell(moved, waiting(1), scheduler.now)
    assert len(scheduler.lead.starts) == 3


def test_settings_may_change(memos: Telling) -> None:
    memos.teller.change(settings(intake={"mode": "scheduler"}))
    memos.tell(waiting(1), j1=HOUR)
    assert memos.lead.starts
    assert msgspec.to_builtins(memos.lead.memos) == []
