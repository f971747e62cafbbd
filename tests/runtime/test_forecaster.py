# SPDX-License-Identifier: MIT
"""The forecaster with a lead that shows what the test says."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from burst.core.forecast.grades import Grade
from burst.core.plan.estimate import StartEstimate
from burst.core.records import Records
from burst.core.tick import TickResult
from burst.errors import Unreadable
from burst.model.active_job import ActiveJob, QueuePicture, picture_of
from burst.model.decision import Decision
from burst.model.jobid import JobId
from burst.model.lead import JobState
from burst.model.reason import Reason
from burst.model.shape import Shape
from burst.runtime.forecast_pass import Forecasts
from burst.runtime.forecaster import Forecaster
from burst.runtime.run_log import GRADES_KEY, HISTORY_KEY, MOST_BYTES, RunLog
from tests.builders import T0, but, job, settings, slots, view, world
from tests.support.waiting import HANG_S


def active(number: int, **fields: Any) -> ActiveJob:
    given = {
        "userid": 1,
        "name": "app",
        "state": JobState.SCHED,
        "priority": 16,
        "request": slots(4),
        "duration": 600.0,
        **fields,
    }
    return ActiveJob(id=JobId(number), **given)


BUSY = {0: Shape(2), 1: Shape(2)}
RUNNING = active(1, state=JobState.RUN, taken=BUSY, t_start=T0 - 60.0)
OVER = but(RUNNING, t_finish=T0)


ASKED = Reason.NOT_FORECAST
NOTHING = TickResult(records=Records(), events=(), actions=(), decisions={})


def unreadable() -> None:
    raise Unreadable("read again")


class OneLead:
    """Shows `jobs`; `before` is called while a picture is taken."""

    def __init__(self) -> None:
        self.jobs: list[ActiveJob] = [RUNNING, active(2)]
        self.before: Callable[[], None] = lambda: None
        self.pictures = 0

    def follow_queue(self, *_: Any) -> None:
        raise AssertionError("the session does that")

    def queue_picture(self) -> QueuePicture:
        self.before()
        self.pictures += 1
        return picture_of(self.jobs)

    def active_job(self, _number: JobId) -> ActiveJob | None:
        raise AssertionError("a forecaster asks for all of them")


class Forecasting:
    """A forecaster, its lead, and who is woken."""

    def __init__(self) -> None:
        self.lead = OneLead()
        self.now = T0
        self._woken = threading.Event()
        self.forecaster = Forecaster(self.lead, self._woken.set, lambda: self.now)

    def begin(self, **daemon: str) -> None:
        found = {"forecast": "50ms", **daemon}
        self.forecaster.start(settings(daemon=found))
        self.forecaster.observe(Records(), world(view()), NOTHING)

    def pass_by_hand(self, now: float, **reasons: Reason) -> Forecasts:
        """Make a pass under a rule that asks for a worth; `j2` is what of job 2."""
        jobs = {JobId(int(name[1:])): reason for name, reason in reasons.items()}
        views = [
            job(number, slots(4), duration=600.0, userid=1, name="app")
            for number in jobs
        ]
        decisions = {n: Decision(reason, {}) for n, reason in jobs.items()}
        decided = but(NOTHING, decisions=decisions)
        self.now = now
        self.forecaster.use(settings(plan={"worth": 0.05}))
        self.forecaster.observe(NOTHING.records, world(view(*views)), decided)
        self.forecaster.make_pass()
        return self.known()

    def known(self) -> Forecasts:
        found = self.forecaster.current()
        assert found is not None
        return found

    def until(self, holds: Callable[[Forecasts | None], bool]) -> Forecasts | None:
        """Return what is known once it holds for it; fail at the deadline."""
        ends = time.monotonic() + HANG_S
        while not holds(found := self.forecaster.current()):
            assert time.monotonic() < ends, f"not seen; last: {found}"
            self._woken.wait(0.05)
            self._woken.clear()
        return found

    def expected(self, job: int, at: float) -> None:
        """Wait until a job is expected to start then."""

        def holds(found: Forecasts | None) -> bool:
            start = found.starts.get(JobId(job)) if found else None
            return start is not None and start.expected == at

        self.until(holds)


@pytest.fixture
def it() -> Iterator[Forecasting]:
    forecasting = Forecasting()
    yield forecasting
    forecasting.forecaster.close()


@pytest.fixture
def begun(it: Forecasting) -> Forecasting:
    """One that has made its first pass."""
    it.begin()
    it.expected(2, T0 + 540.0)
    return it


def test_the_first_tick_has_it_estimated(it: Forecasting) -> None:
    assert it.forecaster.current() is None
    it.begin()
    it.expected(2, T0 + 540.0)
    found = it.known()
    assert found.starts[JobId(2)].after == 1
    assert [job.id for job in found.pending] == [2]
    assert found.run_times == {2: 600.0}


def test_what_rests_on_the_end_of_a_job_is_dropped_as_it_ends(
    begun: Forecasting,
) -> None:
    # The next pass hangs, so that nothing new takes its place.
    hang = threading.Event()
    begun.lead.before = lambda: assert_set(hang)
    begun.forecaster.ended(OVER)
    found = begun.known()
    assert found.starts == {}
    hang.set()


def test_what_ends_while_it_is_estimated_is_dropped_as_well(it: Forecasting) -> None:
    def end() -> None:
        it.lead.before = lambda: None
        it.forecaster.ended(OVER)
        it.now = T0 + 1.0

    it.lead.before = end
    it.begin()
    # The first pass still showed it as running; the next one does so, too, and by now
    # it is known that such jobs run for a minute.
    it.expected(2, T0 + 62.0)
    assert it.lead.pictures == 2


def test_the_end_of_a_job_that_waited_drops_its_estimate(begun: Forecasting) -> None:
    begun.lead.jobs.pop()
    begun.forecaster.ended(active(2))
    begun.until(lambda found: found is not None and not found.starts)


def test_nothing_is_known_while_the_jobs_are_read_again(begun: Forecasting) -> None:
    begun.lead.before = unreadable
    begun.forecaster.lost()
    assert begun.forecaster.current() is None
    begun.lead.before = lambda: None
    begun.forecaster.changed()
    begun.expected(2, T0 + 540.0)


def test_nothing_is_known_of_a_lead_that_cannot_be_read(begun: Forecasting) -> None:
    begun.forecaster.observe(Records(), world(None), NOTHING)
    assert begun.forecaster.current() is None
    begun.forecaster.observe(Records(), world(view()), NOTHING)
    begun.expected(2, T0 + 540.0)


def test_a_node_that_goes_away_has_it_estimated_anew(it: Forecasting) -> None:
    it.lead.jobs = [active(2, request=slots(3))]
    it.begin()
    it.expected(2, T0)
    it.forecaster.observe(Records(), world(view(online=(0,))), NOTHING)
    it.until(lambda found: found is not None and found.starts[JobId(2)].latest > 1e300)


def test_once_a_job_should_have_started_it_is_estimated_anew(it: Forecasting) -> None:
    def is_told() -> None:
        it.now = T0 + 541.0

    # The clock goes on once the first pass is over, before the next one is due.
    it.forecaster = Forecaster(it.lead, is_told, lambda: it.now)
    it.begin()
    it.expected(2, T0 + 541.0)
    assert it.lead.pictures == 2


def after(starts: Mapping[JobId, StartEstimate]) -> dict[JobId, float]:
    """Return in how many seconds each job is expected to start."""
    return {job: start.expected - T0 for job, start in starts.items()}


def test_jobs_behind_one_that_bursts_are_told_and_judged_without_it() -> None:
    """On four cores, of which one node is 1/2: a burst pays from 60 s of wait on."""
    it = Forecasting()
    it.lead.jobs = [RUNNING, active(2), active(3)]
    first = it.pass_by_hand(T0)
    assert after(first.starts) == {2: 540.0, 3: 1140.0}
    # No tick has decided on them.
    assert first.judged.starts == {}
    both = it.pass_by_hand(T0, j2=ASKED, j3=ASKED)
    assert after(both.judged.starts) == {2: 540.0, 3: 540.0}
    assert both.starts == both.judged.starts
    # The planner had no nodes for it. They are judged as they were until something
    # happens in the queue.
    turned_down = it.pass_by_hand(T0 + 60, j2=Reason.TURNED_DOWN, j3=Reason.NOT_WORTH)
    assert turned_down.judged == both.judged
    assert turned_down.starts[JobId(3)].expected == T0 + 1140
    it.lead.jobs.append(active(4))
    turned_down = it.pass_by_hand(T0 + 61, j2=Reason.TURNED_DOWN, j3=Reason.NOT_WORTH)
    assert turned_down.judged.starts[JobId(2)].expected == T0 + 540
    assert turned_down.judged.starts[JobId(3)].expected == T0 + 1140


def test_what_is_late_is_told_at_once_and_judged_after_an_hour() -> None:
    it = Forecasting()
    over = but(RUNNING, t_start=T0 - 90.0, t_finish=T0 - 30.0)
    it.forecaster.ended(over)
    longer = but(RUNNING, duration=36_000.0)
    it.lead.jobs = [longer, active(2)]
    # One like it took a tenth of its limit.
    first = it.pass_by_hand(T0, j2=ASKED)
    assert first.judged.starts[JobId(2)].expected == T0 + 3540
    assert it.forecaster.time_left() == 3541.0
    late = it.pass_by_hand(T0 + 3541, j2=Reason.NOT_WORTH)
    assert late.starts[JobId(2)].expected == T0 + 2 * 3541 + 60
    assert late.judged == first.judged
    assert it.forecaster.time_left() == 59.0
    again = it.pass_by_hand(T0 + 3600, j2=Reason.NOT_WORTH)
    assert again.judged.starts[JobId(2)].expected == T0 + 2 * 3600 + 60
    assert (again.judged.starts, again.judged.at) == (again.starts, T0 + 3600)
    assert it.pass_by_hand(T0 + 3601, j2=Reason.NOT_WORTH).judged.at == T0 + 3600
    # A job is submitted, and one has ended.
    it.lead.jobs.append(active(3))
    assert it.pass_by_hand(T0 + 3602, j2=Reason.NOT_WORTH).judged.at == T0 + 3602
    it.lead.jobs.pop()
    assert it.pass_by_hand(T0 + 3603, j2=Reason.NOT_WORTH).judged.at == T0 + 3603


def test_a_job_that_should_have_started_is_judged_again_after_an_hour() -> None:
    it = Forecasting()
    it.lead.jobs = [active(2)]
    first = it.pass_by_hand(T0, j2=ASKED)
    assert first.judged.starts[JobId(2)].expected == T0
    assert it.pass_by_hand(T0 + 3599, j2=Reason.NOT_WORTH).judged == first.judged
    assert it.pass_by_hand(T0 + 3600, j2=Reason.NOT_WORTH).judged.at == T0 + 3600


def test_a_forecast_is_owed_from_the_first_change_until_one_is_made() -> None:
    it = Forecasting()
    assert it.forecaster.owed_since() is None
    it.pass_by_hand(T0, j2=ASKED)
    assert it.forecaster.owed_since() is None
    it.forecaster.changed()
    it.now = T0 + 5
    it.forecaster.ended(active(3))
    assert it.forecaster.owed_since() == T0
    # Nothing comes of a pass while jobs are read again, or after which some ended.
    before, it.lead.before = it.lead.before, unreadable
    it.forecaster.make_pass()
    assert it.forecaster.owed_since() == T0
    it.lead.before = it.forecaster.changed
    it.forecaster.make_pass()
    assert it.forecaster.owed_since() == T0 + 5
    it.lead.before = before
    it.forecaster.make_pass()
    assert it.forecaster.owed_since() is None


def test_a_failure_is_logged_and_the_next_pass_is_made(
    it: Forecasting, caplog: pytest.LogCaptureFixture
) -> None:
    failed = threading.Event()

    def fail() -> None:
        it.lead.before = failed.set
        raise ZeroDivisionError

    it.lead.before = fail
    it.begin()
    it.forecaster.changed()
    while not failed.wait(0.05):
        it.forecaster.changed()
    it.expected(2, T0 + 540.0)
    assert "estimating when jobs start" in caplog.text


def test_it_can_be_switched_off_and_on_again(begun: Forecasting) -> None:
    begun.forecaster.close()
    assert begun.forecaster.current() is None
    begun.begin(forecast="off")
    begun.forecaster.changed()
    begun.expected(2, T0 + 540.0)


def test_a_start_on_own_nodes_grades_its_first_forecast(begun: Forecasting) -> None:
    begun.now = T0 + 500.0
    begun.lead.jobs = [active(2, state=JobState.RUN, taken=BUSY, t_start=T0 + 500.0)]
    begun.forecaster.ended(OVER)
    found = begun.until(lambda found: found is not None and bool(found.grades))
    assert found is not None
    assert found.grades["all"] == Grade(1, 1, 1)


def test_what_was_learned_is_stored_and_read_again(begun: Forecasting) -> None:
    begun.lead.jobs = [active(3)]
    begun.forecaster.ended(OVER)
    begun.expected(3, T0)
    texts = begun.forecaster.take_texts()
    assert texts.keys() == {HISTORY_KEY, GRADES_KEY}
    assert begun.forecaster.take_texts() == {}
    other = Forecasting()
    other.lead.jobs = [active(3)]
    other.forecaster.restore(texts)
    other.begin()
    other.expected(3, T0)
    found = other.known()
    other.forecaster.close()
    assert found.run_times == {3: 60.0}


OWN = (0, 1)


def test_records_are_written_the_less_often_the_larger_they_are() -> None:
    runs = RunLog()
    assert runs.texts_due(T0) == {}
    for number in range(5000):
        over = but(OVER, name=f"member-{number}-" + 40 * "x")
        runs.ended(over, OWN)
    texts = runs.texts_due(T0)
    size = len(texts[HISTORY_KEY])
    assert 0.9 * MOST_BYTES < size <= MOST_BYTES
    assert "member-4999-" in texts[HISTORY_KEY]
    assert "member-0-" not in texts[HISTORY_KEY]
    runs.ended(OVER, OWN)
    assert runs.texts_due(T0 + 500.0) == {}
    assert runs.texts_due(T0 + 600.0)
    assert runs.texts_due(T0 + 1600.0) == {}


def test_jobs_that_never_ran_or_ran_elsewhere_teach_no_start() -> None:
    runs = RunLog()
    starts = {JobId(2): runs_start(), JobId(3): runs_start()}
    picture = picture_of([active(2), active(3)])
    runs.forecast(picture, starts, OWN)
    runs.ended(active(2, t_finish=T0), OWN)
    lent = active(3, state=JobState.RUN, taken={2: Shape(4)}, t_start=T0)
    runs.forecast(picture_of([lent]), {}, OWN)
    assert not runs.grades.waiting
    assert runs.grades.grades() == {}


def runs_start() -> StartEstimate:
    return StartEstimate(expected=T0, earliest=T0, latest=T0)


def test_what_cannot_be_read_begins_anew(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO", "burst"):
        runs = RunLog({HISTORY_KEY: "{", GRADES_KEY: '{"groups": 5}'})
    assert runs.history.record().kinds == ()
    assert caplog.text.count("start afresh") == 2


def assert_set(event: threading.Event) -> None:
    assert event.wait(HANG_S)
