# SPDX-License-Identifier: MIT
from __future__ import annotations

import errno
import threading
import time
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
import pytest

from burst.errors import LeadGone, Unreadable
from burst.flux.base_lead import BaseLead
from burst.flux.handle import ResponseMessage
from burst.flux.journal import SOON_S, Journal
from burst.flux.loop import Loop
from burst.flux.shown_ends import ENDED_KEPT_S
from burst.model.jobid import JobId
from burst.model.lead import JobState, JobView, LeadView
from tests.flux.fake_handle import FakeHandle, Fault
from tests.flux.told_of_queue import Told
from tests.support.waiting import HANG_S, wait_until

TOPIC = "job-manager.events-journal"
PING = "job-manager.ping"
GETATTR = "job-manager.getattr"
SENTINEL = {"id": -1, "events": []}


def submitted(job: int, *, burstable: bool = True, command: str = "") -> dict[str, Any]:
    """Return what the journal sends of a job that waits."""
    slot = {"type": "slot", "count": 1, "with": [{"type": "core", "count": 1}]}
    system = {"duration": 0.0, **({"burstable": True} if burstable else {})}
    names = ("submit", "validate", "depend", "priority")
    context = {"userid": 1, "urgency": 16, "flags": 0, "priority": 16}
    return {
        "id": job,
        "events": [event(name, **context) for name in names],
        "jobspec": {
            "resources": [slot],
            "tasks": [{"command": [command]}],
            "attributes": {"system": system},
        },
    }


def event(name: str, **context: Any) -> dict[str, Any]:
    return {"timestamp": 1.0, "name": name, "context": context}


class Woken:
    """Counts wake-ups and lets one wait for the next."""

    def __init__(self) -> None:
        self._event = threading.Event()

    def __call__(self) -> None:
        self._event.set()

    def wait(self) -> None:
        assert self._event.wait(HANG_S)
        self._event.clear()


class OneJournal(BaseLead):
    """A lead with that journal, whose ranks cannot be read at times."""

    def __init__(self, handle: FakeHandle, journal: Journal) -> None:
        super().__init__(handle.as_handle)
        self._journal = journal
        self.trouble: Unreadable | None = None

    def read_ranks(self, _journal: Journal, jobs: Mapping[JobId, JobView]) -> LeadView:
        if self.trouble:
            raise self.trouble
        return LeadView(
            read_at=0.0,
            jobs=jobs,
            online=frozenset(),
            drained={},
            allocated=frozenset(),
            free={},
        )

    def forget_ranks(self, ranks: frozenset[int]) -> None:
        raise AssertionError(ranks)


@pytest.fixture
def woken() -> Woken:
    return Woken()


@pytest.fixture
def fake() -> FakeHandle:
    return FakeHandle({TOPIC: lambda _: SENTINEL, PING: lambda _: {}})


@pytest.fixture
def loop(fake: FakeHandle) -> Iterator[Loop]:
    loop = Loop(fake.as_handle(), "test")
    yield loop
    loop.close()
    assert fake.closed


@pytest.fixture
def journal(loop: Loop, woken: Woken) -> Journal:
    loop.on_lost = woken
    return Journal(loop, woken)


@pytest.fixture
def synced(journal: Journal, woken: Woken) -> Journal:
    journal.start()
    woken.wait()
    return journal


@pytest.fixture
def told(journal: Journal, woken: Woken) -> Told:
    """What is told of all jobs, once the journal is read."""
    told = Told()
    journal.follow_queue(told, None)
    journal.start()
    woken.wait()
    return told


def test_jobs_that_ended_before_are_shown_if_they_are_known(
    fake: FakeHandle, journal: Journal, woken: Woken
) -> None:
    told = Told()
    journal.follow_queue(told, None)
    journal.start(lambda: [JobId(n) for n in (1, 2, 3, 5)])
    woken.wait()
    fake.push(TOPIC, submitted(1, burstable=False))
    woken.wait()
    ended, cut, other, first = (submitted(n, burstable=False) for n in (2, 3, 4, 1))
    for entry in (ended, other, first):
        entry["events"] += [event("clean")]
    deep = b'{"eventlog":[{"context":{"a":%b}}]}' % (b"[" * 1500 + b"]" * 1500)
    entries = {
        JobId(each["id"]): msgspec.json.encode({**each, "eventlog": each["events"]})
        for each in (ended, cut, other, first)
    }
    assert journal.missing == {1, 2, 3, 5}
    journal.take_ended(journal.missing, {**entries, JobId(5): deep})
    assert not journal.missing
    views = journal.job_views()
    assert {job: view.state for job, view in views.items()} == {
        1: JobState.SCHED,  # of which the journal has told already
        2: JobState.INACTIVE,
    }
    assert told.over == [], "it is none of the queue's"


def test_a_job_that_only_speaks_of_the_attribute_is_not_burstable(
    fake: FakeHandle, synced: Journal
) -> None:
    fake.push(TOPIC, submitted(5, burstable=False, command="burstable"))
    assert not synced.job_views()


def test_what_changed_since_the_picture_is_told_until_the_next(
    fake: FakeHandle, synced: Journal, woken: Woken
) -> None:
    fake.push(TOPIC, submitted(5))
    fake.push(TOPIC, submitted(6))
    woken.wait()
    synced.job_views()
    assert synced.changed() == set()
    fake.push(TOPIC, {"id": 5, "events": [event("urgency", urgency=0, userid=1)]})
    assert synced.changed() == {5}
    assert synced.changed() == {5}
    synced.job_views()
    assert synced.changed() == set()


def test_what_a_scheduler_annotates_is_passed_over_unless_it_drops_memos(
    fake: FakeHandle, synced: Journal, woken: Woken
) -> None:
    fake.push(TOPIC, submitted(5))
    woken.wait()
    before = synced.job_views()[JobId(5)]
    estimate = {"sched": {"t_estimate": 1.0}}
    fake.push(TOPIC, {"id": 5, "events": [event("annotations", annotations=estimate)]})
    assert synced.job_views()[JobId(5)] is before
    fake.push(TOPIC, {"id": 5, "events": [event("annotations", annotations=None)]})
    woken.wait()
    assert synced.job_views()[JobId(5)].memos_dropped == 1


def test_what_nests_too_deeply_to_be_read_spoils_its_job_and_no_other(
    fake: FakeHandle, synced: Journal, woken: Woken
) -> None:
    for job in (5, 6):
        fake.push(TOPIC, submitted(job))
        woken.wait()
    deep = b"[" * 1500 + b"]" * 1500
    for job in (5, 7):
        text = b'{"id":%d,"events":[{"context":%b}]}' % (job, deep)
        fake.arrive(ResponseMessage(fake.streams[TOPIC], 0, text))
    woken.wait()
    jobs = synced.job_views()
    assert set(jobs) == {5, 6}
    assert jobs[JobId(5)].request is None
    assert "nests too deeply" in jobs[JobId(5)].unreadable
    assert not jobs[JobId(6)].unreadable


def test_a_job_that_is_not_ready_is_told_too_a_little_later(
    fake: FakeHandle, synced: Journal, woken: Woken
) -> None:
    entry = submitted(5)
    begun = {**entry, "events": entry["events"][:1]}
    first = time.monotonic()
    fake.push(TOPIC, begun)
    fake.push(TOPIC, {"id": 5, "events": entry["events"][1:2]})
    woken.wait()
    assert time.monotonic() - first >= SOON_S
    assert synced.job_views()[JobId(5)].state is JobState.DEPEND


def test_events_of_other_jobs_are_passed_over(
    fake: FakeHandle, synced: Journal
) -> None:
    fake.push(TOPIC, {"id": 6, "events": [event("urgency", urgency=0)]})
    fake.push(TOPIC, {"id": 6, "events": [event("exception", note='"burstable"')]})
    assert not synced.job_views()


def test_an_ended_job_is_kept_and_then_forgotten(
    fake: FakeHandle, loop: Loop, woken: Woken
) -> None:
    now = [100.0]
    journal = Journal(loop, woken, clock=lambda: now[0])
    journal.start()
    for job in (5, 6):
        fake.push(TOPIC, submitted(job))
        canceled = event("exception", type="cancel", severity=0, note="")
        fake.push(TOPIC, {"id": job, "events": [canceled]})
        fake.push(TOPIC, {"id": job, "events": [event("clean")]})
        assert journal.job_views()[JobId(job)].result == "canceled"
        journal.observed()
        assert job in journal.job_views()
        now[0] += 40.0
    assert set(journal.job_views()) == {6}
    now[0] += 40.0
    assert not journal.job_views()


def test_an_end_is_shown_until_an_observation_that_succeeds_has_shown_it(
    fake: FakeHandle, loop: Loop, woken: Woken
) -> None:
    now = [100.0]
    journal = Journal(loop, woken, clock=lambda: now[0])
    lead = OneJournal(fake, journal)
    journal.start()
    fake.push(TOPIC, submitted(5))
    fake.push(TOPIC, {"id": 5, "events": [event("clean")]})
    lead.trouble = Unreadable("the resource module is reloading")
    for _ in range(3):
        with pytest.raises(Unreadable, match="reloading"):
            lead.observe()
        now[0] += ENDED_KEPT_S + 1
    lead.trouble = None

    assert lead.observe().jobs[JobId(5)].state is JobState.INACTIVE
    now[0] += ENDED_KEPT_S - 1
    assert set(lead.observe().jobs) == {5}
    now[0] += 1
    assert not lead.observe().jobs


def test_a_journal_that_ends_is_read_anew(
    fake: FakeHandle, synced: Journal, woken: Woken
) -> None:
    fake.push(TOPIC, submitted(5))
    fake.push(TOPIC, submitted(6))
    fake.push(TOPIC, {"id": 6, "events": [event("clean")]})
    assert set(synced.job_views()) == {5, 6}
    again = threading.Event()

    def half_a_backlog(_: Any) -> dict[str, Any]:
        again.set()
        return submitted(7)

    fake.services[TOPIC] = half_a_backlog
    fake.push(TOPIC, "job manager unloaded", errno.ENODATA)
    assert again.wait(HANG_S)
    with pytest.raises(Unreadable, match="read again"):
        synced.job_views()
    fake.push(TOPIC, SENTINEL)
    # 5 ended while nobody listened; 6 was seen to end and is still shown.
    assert set(synced.job_views()) == {6, 7}


def test_a_job_on_record_that_ended_while_nobody_listened_is_shown(
    fake: FakeHandle, journal: Journal
) -> None:
    manager = FakeHandle({GETATTR: lambda _: Fault(errno.ENOSYS)})
    lead = OneJournal(manager, journal)
    on_record: list[JobId] = []
    journal.start(lambda: on_record)
    fake.push(TOPIC, submitted(5))
    assert lead.observe().jobs.keys() == {5}
    on_record.append(JobId(5))
    before = fake.streams[TOPIC]
    fake.push(TOPIC, "job manager unloaded", errno.ENODATA)
    wait_until(lambda: fake.streams[TOPIC] != before, "the jobs to be read again")
    for _ in range(2):
        with pytest.raises(Unreadable, match=GETATTR):
            lead.observe()
    over = submitted(5)
    over |= {"eventlog": [*over["events"], event("clean")], "R": None}
    manager.services[GETATTR] = lambda asked: {key: over[key] for key in asked["attrs"]}
    assert lead.observe().jobs[JobId(5)].state is JobState.INACTIVE
    manager.services[GETATTR] = lambda _: Fault(errno.ENOSYS)
    assert lead.observe().jobs.keys() == {5}, "it is read once"
    lead.close()


def test_a_job_manager_that_is_away_is_unreadable(
    fake: FakeHandle, synced: Journal
) -> None:
    fake.services[PING] = lambda _: Fault(errno.ENOSYS, "no such service")
    with pytest.raises(Unreadable):
        synced.job_views()


def test_a_job_manager_that_does_not_answer_is_unreadable(
    fake: FakeHandle, loop: Loop, woken: Woken
) -> None:
    journal = Journal(loop, woken, picture_deadline_s=0.05)
    journal.start()
    fake.services[PING] = lambda _: None
    with pytest.raises(Unreadable, match="within"):
        journal.job_views()


def test_a_failure_of_ours_ends_the_connection_and_is_logged(
    fake: FakeHandle, synced: Journal, woken: Woken, caplog: pytest.LogCaptureFixture
) -> None:
    fake.push(TOPIC, {"no": "id"})
    woken.wait()
    with pytest.raises(LeadGone, match="internal error"):
        synced.job_views()
    assert "thread test failed" in caplog.text


def test_a_journal_that_is_followed_otherwise_is_canceled_and_read_anew(
    fake: FakeHandle, synced: Journal, woken: Woken
) -> None:
    canceled: list[Any] = []
    fake.services[f"{TOPIC}-cancel"] = canceled.append
    before = fake.streams[TOPIC]
    told = Told()
    synced.restart(told, lambda userid, _: userid == 1)
    assert canceled == [{"matchtag": before}]
    assert told.losses == 0
    # What still comes of the stream before is passed over.
    stray = msgspec.json.encode(submitted(9))
    fake.arrive(ResponseMessage(before, 0, stray))
    fake.push(TOPIC, submitted(2, burstable=False))
    woken.wait()
    views = synced.job_views()
    assert set(views) == {2}
    assert not views[JobId(2)].burstable


def test_a_job_on_record_is_shown_though_no_rule_marks_it_any_more(
    fake: FakeHandle, journal: Journal, woken: Woken
) -> None:
    on_record: list[JobId] = []
    journal.follow_queue(Told(), lambda *_: True)
    journal.start(lambda: on_record)
    woken.wait()
    for job in (1, 2):
        fake.push(TOPIC, submitted(job, burstable=False))
    assert set(journal.job_views()) == {1, 2}
    on_record.append(JobId(1))

    backlog = [submitted(1, burstable=False), submitted(2, burstable=False)]
    fake.services[TOPIC] = lambda _: None

    def restart() -> None:
        journal.restart(Told(), None)

    other = threading.Thread(target=restart)
    before = fake.streams[TOPIC]
    other.start()
    wait_until(lambda: fake.streams[TOPIC] != before, "the jobs to be read again")
    for entry in (*backlog, SENTINEL):
        fake.push(TOPIC, entry)
    other.join(HANG_S)
    views = journal.job_views()
    assert set(views) == {1}
    assert not views[JobId(1)].burstable


def test_a_job_on_record_that_lost_its_attribute_outlasts_the_stream(
    fake: FakeHandle, journal: Journal, woken: Woken
) -> None:
    on_record: list[JobId] = []
    journal.start(lambda: on_record)
    woken.wait()
    fake.push(TOPIC, submitted(1))
    assert set(journal.job_views()) == {1}
    on_record.append(JobId(1))
    before = fake.streams[TOPIC]
    fake.services[TOPIC] = lambda _: None
    fake.push(TOPIC, "job manager unloaded", errno.ENODATA)
    wait_until(lambda: fake.streams[TOPIC] != before, "the jobs to be read again")
    for entry in (submitted(1, burstable=False), SENTINEL):
        fake.push(TOPIC, entry)
    assert set(journal.job_views()) == {1}


def test_a_jobspec_of_which_it_cannot_be_told_whether_it_may_burst(
    fake: FakeHandle, journal: Journal, woken: Woken
) -> None:
    journal.follow_queue(Told(), lambda _, jobspec: bool(jobspec["no such key"]))
    journal.start()
    woken.wait()
    fake.push(TOPIC, submitted(2, burstable=False))
    fake.push(TOPIC, submitted(3))
    woken.wait()
    assert set(journal.job_views()) == {3}


def test_who_follows_all_jobs_is_told_that_they_are_read_again(
    fake: FakeHandle, journal: Journal, woken: Woken, told: Told
) -> None:
    fake.push(TOPIC, submitted(1))
    woken.wait()
    fake.services[TOPIC] = lambda _: None
    fake.push(TOPIC, "job manager unloaded", errno.ENODATA)
    woken.wait()
    assert told.losses == 1
    with pytest.raises(Unreadable):
        journal.active_jobs()
