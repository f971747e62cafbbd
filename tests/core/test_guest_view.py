# SPDX-License-Identifier: MIT
"""What of an answer is a guest's own."""

import json

from hypothesis import example, given
from hypothesis import strategies as st

from burst.core import guest_view, lifecycle
from burst.core.guest_view import GuestView
from burst.core.money.ledger import Payer, Share
from burst.core.records import Records
from burst.model.event import Event
from burst.model.jobid import EXAMPLE, JobId, format_f58, without_jobs
from tests.builders import T0, but, job, view, whole, world
from tests.core.money.budgets import entry
from tests.core.ticks import recorded
from tests.lifecycles import LEASE

GUEST, OTHER = 1234, 1235
HIS, OTHERS, DROPPED = JobId(7), JobId(2**45), JobId(9)
WORLD = world(
    view(job(HIS, whole(1), userid=GUEST), job(OTHERS, whole(1), userid=OTHER))
)


def burst_of(userid, name="burst-0-aaaaaa"):
    lease = but(LEASE, id=name, userids=(userid,))
    return lifecycle.begin(lease, {}, T0)


def test_ids_of_others_are_taken_out_of_all_texts():
    records = recorded(burst_of(OTHER), burst_of(GUEST, "burst-1-bbbbbb"))
    seen = GuestView(GUEST, records, WORLD)
    his, others = format_f58(HIS), format_f58(OTHERS)
    told = {
        "why": f"slots are kept for job {others}, not for {his}",
        "deep": [{"note": "burst burst-0-aaaaaa and burst-1-bbbbbb"}, 7, None],
        "jobs": {his: 1.0, others: 2.0},
        "name": others,
    }
    assert seen.hide(told) == {
        "why": f"slots are kept for another job, not for {his}",
        "deep": [{"note": "another burst and burst-1-bbbbbb"}, 7, None],
        "jobs": {his: 1.0},
        "name": others,
    }
    # A row of his own, whose job the archive alone may know.
    row = {"id": format_f58(DROPPED), "userid": GUEST, "note": format_f58(DROPPED)}
    assert seen.hide(row) == {**row, "note": "another job"}
    assert seen.hide({**row, "userid": OTHER})["id"] == "another job"


def test_a_job_that_the_accounts_know_as_his_is_his():
    shares = (Share(Payer(GUEST), DROPPED), Share(Payer(OTHER), OTHERS))
    live = but(entry(1), shares=shares)
    records = recorded(entries={live.burst: live})
    seen = GuestView(GUEST, records, world(None))
    assert seen.jobs == frozenset()
    assert seen.hide_in(format_f58(DROPPED)) == format_f58(DROPPED)
    assert seen.hide_in(format_f58(OTHERS)) == "another job"


def test_a_burst_is_his_that_has_or_had_a_job_of_his():
    his, others = format_f58(HIS), format_f58(OTHERS)
    shared = burst_of(OTHER)
    events = [Event(T0, "assign", {"jobs": {his: T0, others: T0}})]
    for event in events:
        shared = lifecycle.apply(shared, event)
    seen = GuestView(GUEST, recorded(shared), WORLD)
    assert seen.is_theirs(shared)
    over = lifecycle.apply(shared, Event(T0, "job-finish", {"id": his}))
    assert HIS not in over.jobs
    assert seen.is_theirs(over)
    assert not seen.is_theirs(burst_of(OTHER))
    own_events = [
        {"name": "job-hold", "text": f"job {his} is held"},
        {"name": "submit", "text": "it was planned"},
    ]
    others_event = {"name": "job-hold", "text": f"job {others} is held"}
    row = {"events": [*own_events, others_event], "jobs": [his, others]}
    assert guest_view.story_for(seen, row) == {"events": own_events, "jobs": [his]}


JOBS = st.integers(0, 2**63 - 1).map(JobId)
TEXTS = st.lists(JOBS.map(format_f58) | st.text(max_size=9), max_size=4).map(" ".join)


@given(
    st.recursive(
        TEXTS,
        lambda inner: (
            st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3)
        ),
        max_leaves=5,
    )
)
@example(f"ƒ1 {EXAMPLE}")
def test_no_text_has_the_id_of_a_job_that_is_not_his(row):
    seen = GuestView(GUEST, Records(), WORLD)
    text = json.dumps(seen.hide(row), ensure_ascii=False)
    assert without_jobs(text, {HIS}) == text
