# SPDX-License-Identifier: MIT
"""What Flux drains on lent nodes: the burst goes, the drain with it, and it counts."""

import pytest

from burst.core import cooldowns
from burst.core.actions import UndrainRanks
from burst.core.notices import find_notices
from burst.core.plan.slots import find_slots
from burst.core.provider_health import (
    FailureRecord,
    Health,
    expiry_times,
    why_unavailable,
)
from burst.core.records import Records, Transaction
from burst.core.unusable_bursts import undrain_free_ranks
from burst.model.burst import Result, State
from burst.model.reason import Reason
from tests.builders import LENT, T0, but, identity, settings, view, whole, world
from tests.sim import Sim

TABLES = {
    "deadlines": {"idle": "20s", "drain": "60s", "rejoin": "20s", "reap": "60s"},
    "limits": {"cooldown": "100s"},
}
LIMITS = settings(**TABLES).limits


@pytest.fixture
def s() -> Sim:
    return Sim(**TABLES)


def begin(s: Sim, nodes: int = 3):
    """Return a job whose prolog runs on a burst that is made for it."""
    job = s.lead.submit(whole(nodes, constraint=LENT))
    count = len(s.bursts)
    s.until(lambda: len(s.bursts) > count and bool(s.lead.jobs[job].ranks))
    s.lead.change(job, t_start=0.0)
    return job


def fail_prolog(s: Sim, nodes: int = 3):
    """Return the burst on which a job's prolog failed, which is gone."""
    job = begin(s, nodes)
    s.lead.fail_prolog(job)
    s.tick()
    burst = s.bursts[-1]
    assert burst.state is State.DRAIN
    s.until(s.in_state(State.INACTIVE))
    s.tick(3)
    return s.bursts[-1]


def test_a_burst_whose_prolog_failed_goes_down_at_once_and_its_slot_is_whole(s):
    burst = fail_prolog(s)
    assert burst.result is Result.FAILED
    note = next(e for e in burst.events if e.name == "drain").context["note"]
    assert note.startswith("Flux drained ranks 2-4: prolog failed for job f1; see flux")
    assert "journalctl -u 'flux-prolog@*'" in note
    assert s.lead.drained == {}


def test_jobs_on_other_nodes_of_it_run_to_their_end(s):
    other = s.lead.submit(whole(2, constraint=LENT))
    s.until(lambda: bool(s.lead.jobs[other].t_start))
    rank = min(s.lead.jobs[other].ranks)
    s.lead.drained[rank] = "sdexec reports lost contact for job f9"
    s.tick(100)
    assert s.state() is State.DRAIN
    s.lead.finish(other)
    s.until(s.in_state(State.INACTIVE))
    s.tick(3)
    assert s.lead.drained == {}
    assert s.records.health == {}


def test_what_a_person_drained_meanwhile_stays(s):
    job = begin(s)
    s.lead.drained[3] = "prolog failed for job f1, look at the fan first"
    s.lead.fail_prolog(job)
    s.until(s.in_state(State.INACTIVE))
    s.tick(5)
    assert list(s.lead.drained) == [3]


def test_a_persons_drain_alone_does_not_end_a_burst(s):
    job = begin(s)
    s.lead.drained[3] = "broken fan"
    s.tick(30)
    assert s.state() is State.ONLINE
    s.lead.finish(job)


def test_no_third_burst_is_made_after_two_and_the_reason_names_the_prolog(s):
    fail_prolog(s)
    fail_prolog(s)
    job = s.lead.submit(whole(3, constraint=LENT))
    s.tick(20)
    assert len(s.bursts) == 2
    (refusal,) = s.decision(job).refusals
    assert refusal.reason is Reason.OFFER_UNUSABLE
    text = refusal.text()
    assert "its last 2 bursts could not run jobs: Flux drained ranks 2-4" in text
    assert "prolog failed for job f2; see flux dmesg on the lead" in text
    assert "prolog" not in refusal.guests_text()
    assert [each["why"] for each in s.explained(job)["refusals"]] == [text]
    (notice,) = find_notices(s.records, (), (), s.now).values()
    assert (notice.id, notice.severity) == ("unusable/local/nodes", "warning")
    assert not find_notices(s.records, (), (), notice.kept_until)
    s.until(lambda: len(s.bursts) > 2, ticks=120)


def test_after_a_job_that_began_it_counts_anew(s):
    fail_prolog(s)
    job = begin(s)
    s.lead.change(job, t_start=s.now)
    s.tick()
    assert s.records.health == {}
    s.lead.finish(job)


def test_a_job_that_began_on_an_earlier_burst_proves_nothing(s):
    old = begin(s)
    s.lead.change(old, t_start=s.now)
    fail_prolog(s)
    assert s.records.health["local"].rows["unusable/nodes"].failures == 1
    s.lead.finish(old)


def test_a_drain_that_comes_after_the_reap_is_undone_too(s):
    job = begin(s)
    s.lead.finish(job)
    s.until(s.in_state(State.INACTIVE))
    s.tick(3)
    s.lead.drained |= {2: "epilog timed out for job f1", 0: "epilog failed for job f1"}
    s.tick(3)
    assert list(s.lead.drained) == [0]  # of an own node


@pytest.mark.parametrize("unreadable", [{}, {"burst/burst-0-torn": "torn"}])
def test_a_drain_of_a_slot_that_is_declared_no_more_is_undone_too(unreadable):
    """But where it may be of a burst of which the record cannot be read."""
    drained = {2: "prolog failed for job f1", 1: "prolog failed for job f2"}
    seen = world(view(online={0, 1}, drained=drained))
    slots = find_slots(identity(), ["burst-1-[0-3]"])
    seen = but(seen, slots=slots)
    tx = Transaction(Records(unreadable=unreadable), seen, settings(), T0)
    undrain_free_ranks(tx)
    assert tx.actions == ([] if unreadable else [UndrainRanks(frozenset({2}))])


def test_the_pause_grows_and_is_forgotten_in_the_end():
    health = cooldowns.count_unusable(Health(), "o", "why", LIMITS, T0)
    assert health.rows["unusable/o"].until == 0.0
    assert why_unavailable("p", "o", health, T0) is None
    now = T0
    for failures, pause in ((2, 100.0), (3, 200.0), (4, 400.0)):
        # Others that were made before it was set aside do not count.
        for _ in range(2):
            health = cooldowns.count_unusable(health, "o", "why", LIMITS, now)
            known = health.rows["unusable/o"]
            assert (known.failures, known.until) == (failures, now + pause)
        now = known.until
    now -= 400.0
    found = why_unavailable("p", "o", health, now)
    assert found is not None
    assert found[0] is Reason.OFFER_UNUSABLE
    assert now + 400.0 in expiry_times(health)
    late = now + 400.0 + 16 * 100.0 + 1.0
    again = cooldowns.count_unusable(health, "o", "why", LIMITS, late)
    assert again.rows["unusable/o"].failures == 1


def test_until_when_an_offer_is_set_aside():
    drained = FailureRecord(failures=2, at=T0, until=T0 + 9, why="why")
    once = FailureRecord(failures=1, at=T0, until=0.0, why="why")
    offer = FailureRecord(failures=1, until=T0 + 5)
    assert Health().set_aside("o") == (0.0, "")
    assert Health(rows={"unusable/o": once}).set_aside("o") == (0.0, "")
    assert Health(rows={"offer/o": offer}).set_aside("o") == (T0 + 5, "")
    both = Health(rows={"offer/o": offer, "unusable/o": drained})
    assert both.set_aside("o") == (T0 + 9, "why")
