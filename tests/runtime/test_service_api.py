# SPDX-License-Identifier: MIT
"""What the service answers, to the owner and to a guest."""

import time
from concurrent.futures import Future

import pytest

from burst.cli.status import lead_troubles
from burst.errors import (
    BurstError,
    Denied,
    Late,
    LeadError,
    NotFound,
    Refused,
    Transient,
    Unreadable,
)
from burst.lead import ServiceRequest
from burst.model.active_job import ActiveJob, picture_of
from burst.model.burst import BurstId, State, Tag
from burst.model.jobid import JobId, format_f58
from burst.model.lead import JobState
from burst.model.request import BurstPreferences
from burst.model.shape import Shape
from burst.runtime.service_answers import describe_process
from burst.runtime.service_api import ServiceApi
from burst.testing import FakeProvider
from tests.builders import burst_spec, but, whole
from tests.core.isolation import BOTH
from tests.fakes import FakeLead
from tests.runtime.asking import GUEST, Asking
from tests.sim import Sim


def test_a_status_shows_everything_at_a_glance():
    asking = Asking()
    job = asking.sim.lead.submit(whole(4))
    asking.tick()
    found = asking.ask("status")

    (burst,) = found["bursts"]
    assert burst["state"] == "provision"
    assert burst["nodes"] == 4
    assert burst["ranks"] == "2-5"
    assert burst["hosts"] == "burst-0-[0-3]"
    assert burst["jobs"] == [format_f58(job)]
    assert [s["state"] for s in found["slots"]] == ["leased", "free"]
    assert found["providers"][0]["offers"][0]["name"] == "nodes"
    assert found["held"] == [format_f58(job)]
    assert found["pending"] == 1
    assert found["daemon"]["pid"]
    assert asking.ask("ping") == found["daemon"]


def test_what_keeps_a_provider_from_being_read_is_told_to_the_owner():
    asking = Asking()
    assert "troubles" not in asking.ask("ping")
    asking.sim.provider.next_observe_error = Transient("no such host")
    asking.sim.until(lambda: "troubles" in asking.ask("ping"))
    assert asking.ask("ping")["troubles"] == {"local": "observe: no such host"}
    assert "troubles" not in asking.ask("ping", guest=True)


def test_a_store_that_refuses_the_records_is_told_to_the_owner():
    asking = Asking()
    assert lead_troubles(asking.ask("status")["lead"]) == []
    asking.sim.lead.submit(whole(4))
    asking.sim.lead.disk.full = True
    asking.tick()
    (text,) = lead_troubles(asking.ask("status")["lead"])
    assert text.startswith("writing to the store has failed since ")
    assert ": no space left; make room" in text
    ping = asking.ask("ping")
    assert ping["halt"] == text
    assert "see whether the disk" in ping["halt_advice"]
    assert "space" not in str(asking.ask("status", guest=True))
    assert "halt" not in asking.ask("ping", guest=True)
    asking.sim.lead.disk.full = False
    asking.tick()
    assert lead_troubles(asking.ask("status")["lead"]) == []


def test_a_quarantined_burst_shows_why():
    asking = Asking()
    asking.sim.lead.submit(whole(4))
    asking.tick()
    draft_state = asking.sim.burst
    record = asking.sim.lead.disk.records[f"burst/{draft_state.id}"]
    event = ',{"timestamp":1.0,"name":"reaped","context":{}}],"sums"'
    spoilt = record.replace('],"sums"', event)
    asking.sim.lead.disk.records[f"burst/{draft_state.id}"] = spoilt
    asking.sim.boot()
    asking.tick()

    (burst,) = asking.ask("status")["bursts"]
    assert burst["state"] == "quarantined"
    assert burst["note"] == "unexpected event reaped in state provision"


def test_a_guest_sees_and_releases_their_own_only():
    asking = Asking()
    asking.sim.joins = False
    his = asking.sim.lead.submit(whole(4), userid=GUEST)
    other = asking.sim.lead.submit(whole(3), userid=7)
    asking.sim.tick(3)

    found = asking.ask("status", guest=True)
    assert [b["jobs"] for b in found["bursts"]] == [[format_f58(his)]]
    assert found["held"] == [format_f58(his)]
    assert asking.ask("explain", guest=True, id=format_f58(his))["userid"] == GUEST
    with pytest.raises(BurstError, match="that is not a job of yours that burst knows"):
        asking.ask("explain", guest=True, id=format_f58(other))
    theirs = [
        burst["id"]
        for burst in asking.ask("status")["bursts"]
        if format_f58(other) in burst["jobs"]
    ]
    assert theirs
    for name in (*theirs, "burst-0-0aaaaa", "x"):
        with pytest.raises(BurstError) as raised:
            asking.ask("explain", guest=True, id=name)
        assert "that is neither a burst of yours nor a job id;" in str(raised.value)
    with pytest.raises(Denied, match="none of these jobs is yours"):
        asking.ask("release", guest=True, ids=[format_f58(other)])
    assert asking.ask("release", guest=True, all=True) == {
        "released": [format_f58(his)]
    }
    assert asking.sim.lead.jobs[his].urgency == 16
    assert asking.sim.lead.jobs[other].urgency == 0


def test_jobs_that_wait_are_listed_where_that_is_asked_for():
    asking = Asking()
    asking.sim.joins = False
    his = asking.sim.lead.submit(whole(4), userid=GUEST)
    other = asking.sim.lead.submit(whole(9), userid=7)
    asking.sim.tick(3)

    assert "jobs" not in asking.ask("status")
    rows = asking.ask("status", jobs=9)["jobs"]
    assert [row["id"] for row in rows] == [format_f58(his), format_f58(other)]
    assert [row["verdict"] for row in rows] == ["coming", "no-room"]
    assert rows[0]["bursts"] == [asking.sim.burst.id]
    assert asking.ask("status", jobs=1)["jobs"] == rows[:1]
    assert asking.ask("status", jobs=9, guest=True)["jobs"] == rows[:1]
    with pytest.raises(BurstError, match="status: "):
        asking.ask("status", jobs=-1)


def test_a_story_tells_the_time_zone_of_its_sentences(monkeypatch):
    asking = Asking()
    job = asking.sim.lead.submit(whole(4))
    asking.tick()
    monkeypatch.setenv("TZ", "IST-5:30")
    time.tzset()
    told = [asking.ask("explain", id=i) for i in (format_f58(job), asking.sim.burst.id)]
    monkeypatch.undo()
    time.tzset()
    assert [story["utc_offset"] for story in told] == [19800, 19800]


def test_the_story_of_a_job():
    asking = Asking(deadlines={"idle": "1h"})
    job = asking.sim.lead.submit(whole(4))
    held = asking.sim.lead.submit(whole(9))
    asking.sim.joins = False
    asking.sim.tick(3)
    story = asking.ask("explain", id=format_f58(job))
    assert story["verdict"] == "coming"
    assert story["held"] == "held"
    assert story["urgency_before"] == 16
    names = [e["name"] for e in story["bursts"][0]["events"]]
    assert names == ["provision-start", "job-hold", "provision-finish"]
    story = asking.ask("explain", id=format_f58(held))
    assert story["verdict"] == "no-room"
    # What was free when that was decided is no reason for it.
    (refusal,) = story["refusals"]
    assert "at most 8 nodes for the job; 9 needed" in refusal["why"]
    asking.sim.joins = True
    asking.sim.until(lambda: asking.sim.lead.running() == [job])
    asking.tick()
    assert asking.ask("explain", id=format_f58(job))["why"].startswith("it runs on ")
    asking.sim.lead.finish(job)
    asking.tick()
    assert asking.ask("explain", id=format_f58(job))["why"] == "it ended: completed"
    del asking.sim.lead.jobs[job]
    asking.tick()
    gone = asking.ask("explain", id=format_f58(job))
    assert (gone["state"], gone["why"]) == ("gone", "")
    assert len(gone["bursts"]) == 1


def test_of_no_job_it_is_said_that_it_has_ended_while_the_lead_cannot_be_read():
    asking = Asking()
    jobs = [asking.sim.lead.submit(whole(nodes)) for nodes in (4, 9)]
    asking.sim.until(lambda: asking.sim.bursts)
    asking.sim.lead.unreadable = True
    asking.tick()
    has_burst, waits = (format_f58(job) for job in jobs)
    why = "the lead cannot be read: job manager is reloading"
    story = asking.ask("explain", id=has_burst)
    assert (story["state"], story["why"]) == ("unknown", why)
    with pytest.raises(Unreadable, match=why):
        asking.ask("explain", id=waits)
    with pytest.raises(Unreadable, match="be read: the owner of the inst") as raised:
        asking.ask("explain", guest=True, id=waits)
    assert "reloading" not in str(raised.value)


def test_a_plan_is_what_the_next_tick_would_do():
    asking = Asking()
    job = asking.sim.lead.submit(whole(4))
    asking.sim.engine.tick(asking.sim.now)
    assert asking.ask("plan")["bursts"] == []
    snapshot = asking.sim.engine.snapshot
    assert [row["id"] for row in asking.ask("plan")["jobs"]] == [format_f58(job)]
    assert snapshot.records.bursts


def test_nodes_are_had_on_request_and_taken_down():
    asking = Asking()
    made = asking.ask("request", nodes=3)
    (burst,) = made["bursts"]
    assert made["text"] == f"3 nodes of local/nodes as {burst}"
    with pytest.raises(LeadError, match="rank slots it can have at most 8"):
        asking.ask("request", nodes=9)
    with pytest.raises(BurstError, match="no provider gke; the settings have local"):
        asking.ask("request", nodes=2, provider="gke")
    assert asking.ask("down", burst=burst, note="enough") == {"burst": burst}
    assert asking.sim.burst.state is State.DRAIN
    with pytest.raises(BurstError, match="there is no burst x"):
        asking.ask("down", burst="x")


def test_nodes_with_a_tag_are_told_to_be_so():
    asking = Asking()
    (burst,) = asking.ask("request", nodes=2, tag="night")["bursts"]
    assert asking.sim.burst.lease.tag == Tag("night", 0)
    assert asking.ask("status")["bursts"][0]["tag"] == "night"
    asking.sim.until(asking.sim.in_state(State.ONLINE))
    assert asking.ask("resize", burst=burst, nodes=1)["tag"] == "night"
    assert asking.ask("down", burst=burst) == {"burst": burst, "tag": "night"}
    for tag in ("a b", "a\nb", "ä", "x" * 300):
        with pytest.raises(BurstError, match=r"request: .*\$\.tag"):
            asking.ask("request", nodes=2, tag=tag)
    with pytest.raises(BurstError, match="an isolated burst has no tag"):
        asking.ask("request", nodes=2, tag="x", isolated={"kind": "interactive"})


def test_nodes_are_had_of_an_offer_and_with_an_image_that_are_named():
    asking = Asking()
    with pytest.raises(LeadError, match="offer x is requested"):
        asking.ask("request", nodes=1, offer="x")
    asking.ask("request", nodes=1, offer="nodes")
    assert asking.sim.burst.lease.offer == "nodes"
    mine = {"nodes": 1, "tag": "night", "provider": "local", "image": "app:2"}
    with pytest.raises(BurstError, match="bursts of provider local have no images"):
        asking.ask("request", **mine)
    for lacks in ("tag", "provider"):
        with pytest.raises(BurstError, match="--image needs --tag and --provider"):
            asking.ask("request", **{**mine, lacks: ""})
    asking = Asking()
    asking.sim.fake_settings = but(asking.sim.fake_settings, own_images=True)
    asking.sim.boot()
    asking.sim.tick(2)
    asking.ask("request", **mine)
    assert asking.sim.burst.lease.image == "app:2"


def test_a_burst_with_the_tag_grows_in_place_of_another():
    asking = Asking(limits={"max_nodes": 6})
    mine = {"tag": "night", "provider": "local", "slot": "burst-0-[0-3]", "grow": True}
    (burst,) = asking.ask("request", **mine, nodes=1)["bursts"]
    asking.sim.until(asking.sim.in_state(State.ONLINE))
    made = asking.ask("request", **mine, nodes=2, note="the queue is long")
    assert made["bursts"] == [burst]
    assert (made["text"], made["why"]) == (f"{burst} grows from 1 to 3 nodes", "")
    asking.sim.until(lambda: asking.sim.burst.resize is None)
    made = asking.ask("request", **mine, nodes=2, least=1)
    assert made["text"] == f"{burst} grows from 3 to 4 nodes"
    assert made["why"]
    with pytest.raises(BurstError, match="the tag of the burst"):
        asking.ask("request", nodes=1, grow=True)
    asking.sim.until(lambda: asking.sim.burst.resize is None)
    # Its slot is full, and other tags' bursts do not grow for this one.
    with pytest.raises(LeadError):
        asking.ask("request", **mine, nodes=1)
    made = asking.ask("request", tag="day", grow=True, nodes=9, least=1)
    assert burst not in made["bursts"]
    assert made["text"].startswith("2 nodes of local/nodes as ")
    assert "the limit limits.max_nodes is 6" in made["why"]


def test_fewer_nodes_are_tried_down_to_the_least():
    asking = Asking(limits={"max_nodes": 3})
    made = asking.ask("request", tag="day", nodes=8, least=3)
    assert made["text"].startswith("3 nodes of local/nodes as ")
    with pytest.raises(LeadError):
        asking.ask("request", tag="day", nodes=8, least=1)


def tagged(asking, *sizes):
    """Jobs with a tag, held until somebody has nodes made for it."""
    preferences = BurstPreferences(tag="night", urgency=16)
    jobs = [
        asking.sim.lead.submit(
            whole(nodes),
            userid=0,
            urgency=0,
            held_at_submit=True,
            preferences=preferences,
        )
        for nodes in sizes
    ]
    asking.sim.tick(2)
    return jobs


def test_jobs_with_a_tag_run_in_isolated_bursts_of_their_own():
    asking = Asking(modes=BOTH)
    jobs = tagged(asking, 1, 3, 2, 1)
    night = {"tag": "night", "provider": "local"}
    made = asking.ask("isolate", **night, nodes=2)
    # The second is larger than all may be, for the third there is no room.
    assert (len(made["bursts"]), made["why"]) == (1, "")
    lease = asking.sim.burst.lease
    assert (lease.isolated_job, lease.tag) == (jobs[0], Tag("night", 0))
    assert asking.ask("isolate", **night, nodes=2)["bursts"] == []
    assert len(asking.ask("isolate", **night, nodes=9)["bursts"]) == 3
    assert asking.ask("isolate", **night, nodes=99) == {"bursts": [], "why": ""}
    assert asking.ask("isolate", **{**night, "tag": "other"}, nodes=9)["bursts"] == []


def test_why_a_job_with_a_tag_has_no_isolated_burst_is_told():
    asking = Asking(modes=BOTH, limits={"max_nodes": 2})
    tagged(asking, 3)
    night = {"tag": "night", "provider": "local", "nodes": 9}
    assert "limit of 2 nodes" in asking.ask("isolate", **night)["why"]
    assert "offer x is requested" in asking.ask("isolate", **night, offer="x")["why"]
    with pytest.raises(BurstError, match="bursts of provider local have no images"):
        asking.ask("isolate", **night, image="app:2")
    with pytest.raises(BurstError, match="no provider gke; the settings have local"):
        asking.ask("isolate", **{**night, "provider": "gke"})
    with pytest.raises(Denied, match="only the instance owner may do that"):
        asking.ask("isolate", guest=True, **night)
    asking.sim.lead.unreadable = True
    asking.tick()
    with pytest.raises(Unreadable, match="the lead cannot be read"):
        asking.ask("isolate", **night)
    found = asking.ask("status")
    assert found["lead"]["trouble"] == "job manager is reloading"
    assert [slot["state"] for slot in found["slots"]] == ["unknown"] * 2


def test_all_with_a_tag_is_taken_down_and_its_jobs_that_wait_end():
    asking = Asking(modes=BOTH)
    asking.sim.provider.ends_with = None
    runs, begins, waits = tagged(asking, 1, 1, 3)
    (other,) = asking.ask("request", nodes=1, tag="other")["bursts"]
    night = {"tag": "night", "provider": "local"}
    (first,) = asking.ask("isolate", **night, nodes=1)["bursts"]
    asking.sim.until(lambda: asking.sim.records.bursts[first].state is State.ONLINE)
    asking.sim.provider.starts_only = 0
    (second,) = asking.ask("isolate", **night, nodes=2)["bursts"]
    (joined,) = asking.ask("request", nodes=1, tag="night")["bursts"]
    assert asking.ask("down", tag="night", note="enough") == {"tag": "night"}
    records = asking.sim.records
    states = {each.id: each.state for each in records.bursts.values()}
    assert states[first] is State.ONLINE, "its job goes on to its end"
    assert records.bursts[second].exception == "canceled"
    assert records.bursts[joined].exception == "canceled"
    assert states[other] is not State.REAP
    asking.tick()
    told = {job: (what, note) for what, job, note in asking.sim.lead.log}
    assert runs not in told
    why = told[begins][1]
    assert "it may have begun there" in why, "it ends with its burst"
    assert told[waits] == ("cancel", "night has ended: enough")
    with pytest.raises(Denied, match="only the instance owner may do that"):
        asking.ask("down", guest=True, tag="night")
    asking.sim.lead.unreadable = True
    asking.tick()
    with pytest.raises(Unreadable, match="the lead cannot be read"):
        asking.ask("down", tag="night")


def test_orphans_are_listed_and_deleted_only_on_yes():
    asking = Asking()
    asking.sim.lead.submit(whole(4))
    asking.sim.until(asking.sim.in_state(State.ONLINE))
    burst = asking.sim.burst.id
    del asking.sim.lead.disk.records[f"burst/{burst}"]
    asking.sim.boot()
    asking.sim.tick(2)

    listed = asking.ask("gc")
    assert [row["id"] for row in listed["orphans"]] == [burst]
    assert listed["deleting"] is False
    assert asking.ask("gc", yes=True)["deleting"] is True
    asking.sim.tick(3)
    with pytest.raises(NotFound):
        asking.sim.provider.reap(burst)


def test_a_provider_that_cannot_be_asked_may_have_orphans():
    asking = Asking()
    assert asking.ask("gc")["looked_at"] == ["local"]
    assert asking.ask("gc")["failed"] == {}
    asking.sim.provider.next_observe_error = Transient("the cloud is away")
    asking.sim.until(lambda: not asking.ask("gc")["looked_at"])
    found = asking.ask("gc")
    assert found["failed"] == {"provider local": "observe: the cloud is away"}


def test_a_provider_is_enabled_and_settings_are_reloaded():
    asking = Asking()
    with pytest.raises(BurstError, match="no failures to forget"):
        asking.ask("enable", provider="local")
    asking.sim.provider.next_provision_error = Refused("bad credentials")
    asking.sim.lead.submit(whole(4))
    asking.sim.tick(2)
    assert asking.ask("enable", provider="local") == {"enabled": "local"}
    assert asking.ask("reload") == {"changed": [], "late": []}
    assert asking.reloads == 1


@pytest.mark.parametrize("text", ["nonsense!", None, "7"])
def test_a_job_that_is_none_has_no_story(text):
    with pytest.raises(BurstError):
        Asking().ask("explain", id=text)
    with pytest.raises(BurstError, match=r"knows no method nosuch; it is version"):
        Asking().ask("nosuch")


def test_a_daemon_that_stops_or_does_not_tick_answers_what_was_asked_of_it():
    asking = Asking()
    parts = asking.reload, describe_process(0.0)
    request = ServiceRequest("request", {"nodes": 1}, 0, True)
    stuck = ServiceApi(lambda: asking.sim.engine, lambda: None, *parts, deadline=0.01)
    with pytest.raises(Late, match=r"finished no tick for 0.01 s; nothing was done"):
        stuck.answer(request)
    asking.sim.tick(2)
    assert asking.sim.engine.snapshot.records.live == [], "it is not done later"
    # It stops while the request waits; and it has stopped already.
    for wake in (asking.sim.engine.close, lambda: None):
        stopping = ServiceApi(lambda: asking.sim.engine, wake, *parts)
        with pytest.raises(BurstError, match="the daemon is stopping"):
            stopping.answer(request)


def test_before_the_first_tick_nothing_is_told_of_the_lead():
    sim = Sim()
    served_by = describe_process(0.0)
    api = ServiceApi(lambda: sim.engine, sim.tick, Future, served_by, deadline=0.0)

    def ask(method, **payload):
        return api.answer(ServiceRequest(method, payload, 0, True))

    job = format_f58(sim.submit_lent(1))
    assert ask("ping")
    assert ask("intake")
    for method, payload in (("explain", {"id": job}), ("plan", {}), ("status", {})):
        with pytest.raises(BurstError, match="the daemon is starting"):
            ask(method, **payload)
    sim.tick()
    assert ask("explain", id=job)["id"] == job


def test_anybody_may_ask_how_jobs_come_in():
    asking = Asking(intake={"mode": "queue", "queue": "lent"})

    assert asking.ask("intake", guest=True) == {
        "mode": "queue",
        "property": "burst",
        "queue": "lent",
        "requires": False,
        "providers": ["local"],
        "directories": {},
    }


def test_gc_lists_records_that_cannot_be_read_and_takes_their_bursts_down():
    asking = Asking()
    asking.sim.tick(2)
    asking.sim.lead.disk.records["burst/burst-0-ffffff"] = "{"
    asking.sim.boot()
    asking.tick()

    found = asking.ask("status")
    assert "burst/burst-0-ffffff" in found["unreadable"]
    assert [slot["state"] for slot in found["slots"]] == ["quarantined", "free"]
    (listed,) = asking.ask("gc")["orphans"]
    assert (listed["id"], listed["why"]) == (
        "burst-0-ffffff",
        "its record cannot be read",
    )
    assert not asking.sim.bursts
    asking.ask("gc", yes=True)

    assert asking.sim.burst.id == "burst-0-ffffff"
    asking.sim.until(asking.sim.in_state(State.INACTIVE))
    assert asking.ask("gc")["orphans"] == []


def test_gc_goes_on_with_others_where_it_is_not_known_who_made_a_burst():
    asking = Asking()
    sim = asking.sim
    sim.lead.disk.records |= {"burst/burst-0-ffffff": "{", "burst/burst-1-eeeeee": "{"}
    sim.boot()
    providers = {
        name: FakeProvider(name, sim.fake_settings, sim.provider.owner, sim.cloud)
        for name in ("a", "b")
    }
    sim.change(providers=providers)
    providers["b"].provision(burst_spec(BurstId("burst-1-eeeeee"), "burst-1-0"))
    sim.tick(3)

    failed = asking.ask("gc", yes=True)["failed"]
    assert list(failed) == ["burst-0-ffffff"]
    assert "burst down --provider NAME burst-0-ffffff" in failed["burst-0-ffffff"]
    assert sim.burst.id == "burst-1-eeeeee"
    sim.until(sim.in_state(State.INACTIVE))


class Follows(FakeLead):
    """A fake lead that tells of one job that is not burstable."""

    runs = ActiveJob(
        id=JobId(7), userid=GUEST, name="", state=JobState.RUN, taken={0: Shape(1)}
    )
    lost = False

    def follow_queue(self, *_):
        """All jobs are told anyhow."""

    def queue_picture(self):
        return picture_of([self.runs])

    def active_job(self, number):
        if self.lost:
            raise Unreadable("they are read again")
        return self.runs if number == self.runs.id else None


def test_a_guest_is_told_of_his_job_that_is_not_burstable_and_of_no_other():
    lead = Follows()
    asking = Asking(lead=lead)

    told = asking.ask("explain", guest=True, id="7")
    assert (told["id"], told["verdict"]) == (format_f58(JobId(7)), "running")
    assert told["why"] == "it runs on lead-0"
    with pytest.raises(BurstError, match="that is not a job of yours"):
        asking.ask("explain", guest=True, id="8")
    with pytest.raises(BurstError, match="burst knows no job ƒ9: it has ended, is"):
        asking.ask("explain", id="8")
    lead.runs = but(Follows.runs, userid=GUEST + 1)
    with pytest.raises(BurstError, match="that is not a job of yours"):
        asking.ask("explain", guest=True, id="7")
    assert asking.ask("explain", id="7")["verdict"] == "running"
    lead.lost = True
    with pytest.raises(BurstError, match="burst knows no job ƒ8: it has ended, is"):
        asking.ask("explain", id="7")
