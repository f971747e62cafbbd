# SPDX-License-Identifier: MIT
"""A lead that does not answer in time: nothing ends, nothing is done twice or lost."""

from collections.abc import Callable

import pytest

from burst.core.commands import held_jobs, release_jobs
from burst.errors import Denied, LeadGone, Unreadable
from burst.flux.rpc import RequestFailed
from burst.model.burst import State
from burst.model.hold import HoldState
from burst.model.lead import JobState
from burst.runtime.read_records import read_records
from tests.builders import whole
from tests.fakes import FakeLead, MemoryStore
from tests.sim import Sim

ASKED = ("observe", "hold", "release", "tell", "drain", "undrain")


class SilentStore(MemoryStore):
    """Does not answer while it is silent; `late` keeps what was written then."""

    silent = False
    late = False

    def write(self, changes):
        if self.silent:
            if self.late:
                super().write(changes)
            raise Unreadable("kvs.commit: no answer within 30s")
        super().write(changes)


class SilentLead(FakeLead):
    """Does not answer some of what it is asked; `late` does it all the same."""

    silent: tuple[str, ...] = ()
    late = False
    left = 0
    """So many times it is silent."""
    error: Exception = Unreadable("job-manager.urgency: no answer within 30s")

    def _maybe(self, method: str, run: Callable[[], object]):
        if method not in self.silent or not self.left:
            return run()
        self.left -= 1
        if self.late:
            run()
        raise self.error

    def observe(self):
        return self._maybe("observe", super().observe)

    def hold(self, jobs):
        return self._maybe("hold", lambda: super(SilentLead, self).hold(jobs))

    def release(self, urgencies):
        up = super().release
        return self._maybe("release", lambda: up(urgencies))

    def write_memos(self, memos):
        up = super().write_memos
        return self._maybe("tell", lambda: up(memos))

    def drain(self, ranks, reason):
        up = super().drain
        return self._maybe("drain", lambda: up(ranks, reason))

    def undrain(self, ranks):
        up = super().undrain
        return self._maybe("undrain", lambda: up(ranks))

    def send_leases(self, leases):
        up = super().send_leases
        return self._maybe("lend", lambda: up(leases))

    def prepare_queues(self, intake):
        up = super().prepare_queues
        return self._maybe("prepare", lambda: up(intake))


def lives_through(sim: Sim) -> None:
    """Have a job run on a burst, and the burst taken down."""
    job = sim.lead.submit(whole(4))
    sim.until(lambda: sim.lead.running() == [job], ticks=120)
    assert len(sim.bursts) == 1
    sim.lead.finish(job)
    sim.until(sim.in_state(State.INACTIVE), ticks=120)
    sim.tick(5)
    assert not sim.lead.drained
    assert not sim.cloud.followers()
    assert not held_jobs(sim.records)
    # What the store has is what the daemon goes by.
    records = read_records(sim.lead.disk.records, sim.now)
    assert records.bursts == sim.records.bursts
    assert records.holds == sim.records.holds


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize(
    ("method", "mode"),
    [
        *((method, "hold") for method in ASKED),
        # What only these modes ask for.
        ("lend", "scheduler"),
        ("prepare", "queue"),
    ],
)
def test_what_is_not_answered_is_asked_again(method, mode, late) -> None:
    lead = silent(method)
    lead.late = late
    lives_through(Sim(lead, deadlines={"idle": "5s"}, intake={"mode": mode}))


@pytest.mark.parametrize(
    "error",
    [
        RequestFailed("resource.status", 71, "Protocol error"),
        Denied("job-manager.urgency: only the instance owner may do that"),
    ],
)
@pytest.mark.parametrize("method", ["hold", "release", "tell", "drain"])
def test_a_request_that_fails_is_asked_again(method, error) -> None:
    lives_through(Sim(silent(method, error=error), deadlines={"idle": "5s"}))


def silent(*methods: str, left: int = 3, error: Exception | None = None) -> SilentLead:
    """Return a lead that answers these so many times not, or with this error."""
    lead = SilentLead()
    lead.silent, lead.left = methods, left
    lead.error = error or lead.error
    return lead


def test_a_lead_that_is_gone_is_gone() -> None:
    sim = Sim.at_rest(silent("hold", left=1, error=LeadGone("connection lost")))
    sim.lead.submit(whole(4))
    with pytest.raises(LeadGone):
        sim.tick(3)


def test_a_silent_lead_is_asked_once_in_a_tick() -> None:
    lead = silent("hold", "tell", "drain", "lend", left=1000)
    sim = Sim.at_rest(lead)
    for _ in range(5):
        lead.submit(whole(9))
    before = lead.left
    sim.tick()
    assert before - lead.left == 1


@pytest.mark.parametrize("late", [False, True])
def test_a_store_that_does_not_answer_has_what_is_known_afterwards(late) -> None:
    """A plan that may have been kept is not left there beside the next one."""
    store = SilentStore()
    sim = Sim.at_rest(FakeLead(disk=store), deadlines={"idle": "5s"})
    store.silent, store.late = True, late
    job = sim.lead.submit(whole(4))
    for _ in range(3):
        sim.tick()
    assert not sim.cloud.followers()
    assert not sim.lead.memos.get(job)
    store.silent = False
    sim.lead.jobs.clear()
    lives_through(sim)
    assert len([key for key in store.records if key.startswith("burst/")]) == 1


def test_who_was_let_go_is_released_though_the_lead_was_silent() -> None:
    lead = SilentLead()
    sim = Sim(lead)
    sim.joins = False
    sim.tick(2)
    job = lead.submit(whole(9))
    sim.until(lambda: held_jobs(sim.records) == [job])
    sim.tick(3)
    lead.silent, lead.left = ("release",), 3
    sim.engine.post(lambda tx: release_jobs(tx, [job]))
    sim.tick(6)
    assert lead.jobs[job].urgency == 16
    assert sim.records.holds[job].state is HoldState.TAKEN_BACK
    assert lead.jobs[job].state is JobState.SCHED
