# SPDX-License-Identifier: MIT
"""Ensembles from their start to their end, on an engine that is run by hand."""

from __future__ import annotations

import re
import threading
import time
from pathlib import Path
from typing import Any, NoReturn

import msgspec
import pytest
from burst_ensemble.algorithm import MemberDecision, MemberView, Memory
from burst_ensemble.config.file import EnsembleFile
from burst_ensemble.config.spec import EnsembleSpec
from burst_ensemble.core import commands
from burst_ensemble.core.algorithms.workload_demand import DemandOptions, WorkloadDemand
from burst_ensemble.core.controller import end_all
from burst_ensemble.core.intents import JobRef
from burst_ensemble.core.member_job import job_name
from burst_ensemble.core.record import Ensemble, EnsembleStart
from burst_ensemble.runtime.algorithms import Algorithms
from burst_ensemble.runtime.client import TAGGED
from burst_ensemble.runtime.ensembles import Ensembles
from burst_ensemble.runtime.store import EnsembleStore

from burst.config.convert import convert
from burst.errors import BurstError, ConfigError, LeadError
from burst.model.active_job import JobOutcome
from burst.model.burst import State
from burst.model.lead import JobState
from burst.model.request import BurstPreferences
from burst.provider import Provider
from burst.testing import FakeProvider
from tests.builders import T0, identity, whole
from tests.fakes import FakeLead, MemoryStore
from tests.plugins.ensemble.runtime.ensemble_site import (
    MEMBER,
    USER,
    EnsembleSite,
    Scripted,
    host_of,
    nodes_of,
)
from tests.sim import Sim
from tests.support.waiting import HANG_S, wait_until

JOBS = {"jobs": [{"name": "md", "command": "run --fast", "count": 0, "nodes": 1}]}
ONE = {"members": [{**MEMBER, **JOBS}]}
TWO = {"members": [{**MEMBER, **JOBS}, {**MEMBER, "name": "b"}]}


def started() -> tuple[EnsembleSite, Scripted]:
    """A daemon with an ensemble of one member, and the algorithm of that."""
    site = EnsembleSite()
    return site, site.up(**ONE)["a"]


@pytest.mark.parametrize(("mode", "has_any"), [("hold", True), ("queue", False)])
def test_jobs_name_the_hosts_of_their_member_unless_flux_has_to_move_them(
    mode: str, *, has_any: bool
) -> None:
    site = EnsembleSite(intake={"mode": mode})
    says = site.up(**ONE)["a"]
    site.step(2)
    says.says = MemberDecision(submit=("md",))
    site.step()
    (job,) = site.sim.lead.jobs.values()
    assert job.request is not None
    assert bool(job.request.constraint) == has_any
    assert job.preferences.tag == "sweep/a"


def test_a_member_is_made_grows_shrinks_and_ends() -> None:
    site, says = started()
    site.step(2)
    assert site.live("a") == 1
    says.says = MemberDecision(nodes=3, why="more jobs wait")
    site.step(12)
    assert site.live("a") == 3
    assert site.member("a").nodes == 3
    says.says = MemberDecision(nodes=1, why="nodes are free")
    site.step(12)
    assert site.live("a") == 1
    says.says = MemberDecision(end=True, why="all is done")
    site.step(6)
    assert site.live("a") == 0
    assert site.records.live == []
    # It is final.
    says.says = MemberDecision(nodes=3)
    site.step(6)
    assert site.records.live == []
    assert site.member("a").why == "all is done"


def test_jobs_are_submitted_held_and_run_on_nodes_of_their_member() -> None:
    site = EnsembleSite()
    says = site.up(**TWO)["a"]
    site.once("md", "md")
    (first, second) = site.sim.lead.jobs.values()
    assert first.name.startswith("sweep/a/md/0-")
    assert first.preferences.tag == "sweep/a"
    site.step(4)
    ran = [job for job in site.sim.lead.jobs.values() if job.t_start]
    assert ran
    hosts = {
        host
        for burst in site.records.live
        if burst.lease.tag and burst.lease.tag.name == "sweep/a"
        for host in burst.lease.hosts
    }
    known = site.sim.lead.known.hosts
    assert {known[rank] for job in ran for rank in job.ranks} <= hosts
    site.end_job(first.id)
    site.step(2)
    site.end_job(second.id, "failed")
    site.step(2)
    tally = says.saw[-1].tally
    assert (tally.finished, tally.success, tally.failed) == (2, 1, 1)
    assert tally.events == {"submit": 2, "start": 2, "finish": 2, "exception": 1}
    assert says.saw[-1].queue.inactive == 2


@pytest.mark.parametrize("known", ["seen", "told", "found by its name"])
def test_a_job_that_ends_while_no_daemon_runs_counts_once(known: str) -> None:
    """Also where the answer to its submission was lost, or nobody saw it run."""
    site, says = started()
    site.lead.lost = known == "found by its name"
    site.once("md")
    site.lead.lost = False
    if known == "seen":
        site.step(3)
    # The daemon is killed, and the job is forgotten by the lead.
    (number,) = site.lead.names.values()
    began = site.sim.lead.jobs[number].t_start or T0 + 1
    site.lead.ended[number] = JobOutcome("completed", began, began + 5)
    del site.sim.lead.jobs[number]
    site.restart()
    site.step(3)
    assert len(site.lead.names) == 1, "it is not submitted again"
    tally = says.saw[-1].tally
    assert (tally.events["submit"], tally.events["start"], tally.success) == (1, 1, 1)
    assert tally.duration.mean == 5.0
    assert says.saw[-1].queue.inactive == 1


def test_what_the_lead_does_not_take_is_tried_again_and_told(
    caplog: pytest.LogCaptureFixture,
) -> None:
    site, says = started()
    says.says = MemberDecision(submit=("md",))
    site.lead.refuses = "the queue is disabled"
    site.step(3)
    assert site.sim.lead.jobs == {}
    assert caplog.text.count("the queue is disabled") == 1
    says.says = MemberDecision()
    site.lead.refuses = ""
    site.step()
    assert len(site.sim.lead.jobs) == 1


def test_a_job_that_the_lead_never_takes_has_failed_and_others_come_after_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    site, says = started()
    why = "the lead does not accept the job: requested nnodes exceeds policy limit"
    site.lead.never_takes = why
    site.once("md", "md")
    site.lead.never_takes = ""
    site.restart()
    assert site.member("a").unconfirmed == ()
    site.step()
    tally = says.saw[-1].tally
    assert (tally.finished, tally.failed, tally.events) == (2, 2, {"exception": 2})
    assert says.saw[-1].jobs[0].tally == tally
    assert site.shown()["member"]["never_taken"] == why
    assert caplog.text.count(why) == 1
    site.once("md")
    assert [name.split("-")[0] for name in site.lead.names] == ["sweep/a/md/2"]


def test_a_member_all_of_whose_jobs_are_never_taken_ends() -> None:
    site = EnsembleSite()
    jobs = [{**JOBS["jobs"][0], "count": 300}]
    site.up(members=[{**MEMBER, "jobs": jobs}])
    site.algorithms["a"] = WorkloadDemand(DemandOptions())
    site.lead.never_takes = "the lead does not accept the job: it is too large"
    site.step(14)
    assert "idle" in site.member("a").why
    assert site.member("a").total.failed == 300


def test_an_algorithm_that_raises_leaves_its_member_as_it_is_and_that_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    site = EnsembleSite()
    both = site.up(**TWO)
    both["a"].error = ZeroDivisionError("oh")
    both["a"].says = both["b"].says = MemberDecision(nodes=2)
    site.step(7)
    assert (site.live("a"), site.live("b")) == (0, 2)
    fault = site.member("a").fault
    assert "ZeroDivisionError" in fault
    assert f"ensemble sweep: a stays as it is: {fault}" in caplog.messages


def test_a_decision_that_cannot_be_stored_leaves_the_others() -> None:
    site = EnsembleSite()
    both = site.up(**TWO)
    endless: dict[str, Any] = {}
    endless["x"] = endless
    both["a"].says = MemberDecision(nodes=2, memory=endless)
    both["b"].says = MemberDecision(nodes=2, why="more\udc80" + "s" * 9000)
    site.step(7)
    assert (site.live("a"), site.live("b")) == (0, 2)
    assert "its decision cannot be used" in site.shown("a")["member"]["trouble"]
    assert site.member("b").why.startswith("more?ss")


def test_a_name_that_cannot_be_stored_is_shown() -> None:
    site, says = started()
    says.says = MemberDecision(submit=("md\udc80",))
    site.step()
    assert "asks for a job md?, which" in site.shown()["member"]["trouble"]


def test_a_step_that_fails_is_shown_until_one_does_not() -> None:
    site, says = started()
    client = site.client()

    def call(method: str, payload: dict[str, Any]) -> dict[str, Any]:
        if method != TAGGED:
            raise ZeroDivisionError("oh")
        return client.call(method, payload)

    def made(_: EnsembleFile) -> Algorithms:
        return {"a": {"scripted": says}}

    site.ensembles = Ensembles(client._replace(call=call), made, None, site.store)
    site.step()
    trouble = site.shown()["member"]["trouble"]
    assert trouble.startswith("its step failed: ZeroDivisionError")
    site.ensembles = Ensembles(client, made, None, site.store)
    site.step()
    assert site.shown()["member"]["trouble"] == ""


def test_down_cancels_what_waits_and_lets_what_runs_end() -> None:
    site, _ = started()
    site.once("md", "md", "md")
    site.step(4)
    running = site.sim.lead.running()
    assert len(running) == 1
    site.down()
    site.step(3)
    assert site.sim.lead.running() == running
    waiting = [j for j in site.sim.lead.jobs.values() if j.id not in running]
    assert {job.state for job in waiting} == {JobState.INACTIVE}
    assert site.live("a") == 0
    site.end_job(running[0])
    site.step(3)
    assert site.records.live == []


def test_what_a_person_asks_for_does_not_wait_for_the_next_check() -> None:
    site = EnsembleSite()
    site.up(**ONE, checkSeconds=3600)
    site.once("md", "md")
    site.step(2)
    site.ask("resize", member="a", nodes=2)
    site.step(4)
    assert (site.live("a"), len(site.sim.lead.running())) == (2, 2)
    site.ask("submit", member="a", jobs="md")
    site.step()
    (waits,) = set(site.sim.lead.jobs) - set(site.sim.lead.running())
    site.down()
    site.step()
    assert site.sim.lead.jobs[waits].state is JobState.INACTIVE
    assert site.live("a") == 0
    assert len(site.sim.lead.running()) == 2


def test_the_outcome_of_its_last_jobs_stays_on_record() -> None:
    """The lead forgets the jobs, which ended between two checks."""
    site = EnsembleSite()
    site.up(**ONE, checkSeconds=3600)
    site.once("md")
    site.step(2)
    (job,) = site.sim.lead.running()
    site.down()
    site.step()
    site.end_job(job)
    site.step(4)
    (before,) = site.rows()
    assert before["state"] == "ended"
    assert before["members"]["a"]["jobs"]["md"]["tally"]["success"] == 1
    del site.sim.lead.jobs[job]
    site.sim.tick()
    assert site.rows() == [before]


def test_a_job_that_is_submitted_after_its_end_is_canceled() -> None:
    site, _ = started()
    site.step(2)
    site.down()
    site.step(6)
    assert site.rows()[0]["state"] == "ended"
    late = site.sim.lead.submit(
        whole(1),
        userid=USER,
        urgency=0,
        preferences=BurstPreferences(tag="sweep/a", urgency=16),
    )
    site.step(4)
    assert site.sim.lead.jobs[late].state is JobState.INACTIVE
    assert site.rows()[0]["state"] == "ended"


@pytest.mark.parametrize("spoilt", ["ensemble-start/sweep", "ensemble-member/sweep/a"])
def test_bursts_of_an_ensemble_that_cannot_be_read_are_taken_down(spoilt: str) -> None:
    site, _ = started()
    site.step(3)
    assert site.live("a") == 1
    del site.sim.lead.disk.records[spoilt]
    site.restart()
    site.step(3)
    assert site.records.live == []
    site.up(**ONE)
    site.step(3)
    assert site.live("a") == 1


def test_bursts_of_other_programs_are_left_alone() -> None:
    """Their tags may look like those of members."""
    site, _ = started()
    asked = {"nodes": 2, "tag": "mytool/run-1", "provider": "local"}
    made = host_of(site.sim).call("request", asked)
    site.step(4)
    (burst,) = made["bursts"]
    assert site.records.bursts[burst].state is State.ONLINE


def test_without_an_algorithm_that_is_gone_it_stays_and_can_be_ended(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Such as after an upgrade: its nodes were paid to the end of their lease."""
    site, _ = started()
    site.once("md")
    site.step(3)

    def gone(_: EnsembleFile) -> NoReturn:
        raise ConfigError("there is no algorithm cost")

    site.ensembles = Ensembles(site.client(), gone, None, site.store)
    site.step(3)
    assert (site.live("a"), len(site.sim.lead.running())) == (1, 1)
    assert caplog.text.count("stays as it is: algorithms: there is no algo") == 1
    site.end_job(site.sim.lead.running()[0])
    site.down()
    site.step(4)
    assert site.records.live == []
    site.up(**ONE)
    site.step(4)
    assert site.records.live == [], "one that had not begun"
    assert site.shown()["member"]["trouble"] == "algorithms: there is no algorithm cost"


def test_jobs_of_an_earlier_run_do_not_count_in_the_next() -> None:
    """The lead shows them for a while after their end; their bursts stay on record."""
    site = EnsembleSite(prices={"local.nodes": 3600.0})
    says = site.up(**ONE)["a"]
    site.once("md")
    site.step(4)
    (job,) = site.sim.lead.running()
    site.end_job(job)
    site.step(2)
    assert says.saw[-1].tally.success == 1
    first = says.saw[-1].spent
    assert first > 30
    with pytest.raises(BurstError, match="an ensemble sweep is there already"):
        site.up(**ONE)
    site.down()
    site.step(4)
    again = site.up(**ONE)["a"]
    site.step(3)
    assert site.live("a") == 1
    assert site.sim.lead.jobs[job].state is JobState.INACTIVE
    assert again.saw[-1].tally.events.get("submit", 0) == 0
    assert again.saw[0].spent == 0
    assert 0 < again.saw[-1].spent < first


def test_a_member_without_nodes_has_the_price_of_its_offer() -> None:
    """As it seemed to cost nothing, `cost` gave it jobs that cost less elsewhere."""
    site = EnsembleSite(prices={"local.nodes": 4.0})
    says = site.up(members=[{**MEMBER, "min": 0}])["a"]
    site.step()
    assert (says.saw[-1].nodes_paid, says.saw[-1].price) == (0, 4.0)
    dear = EnsembleSite(prices={"local.nodes": 4.0})
    none = dear.up(members=[{**MEMBER, "min": 0, "offer": "other"}])["a"]
    dear.step()
    assert none.saw[-1].price == 0.0


def test_runs_that_begin_in_one_second_have_jobs_of_other_names() -> None:
    now = 1_000_000.5
    nodes = nodes_of(EnsembleSite().sim)
    spec = convert(EnsembleSpec, {"name": "sweep", **ONE}, "test")
    new = EnsembleStart(spec=spec, userid=USER)
    first = commands.begin_ensemble({}, nodes, new, now)["sweep"]
    over = Ensemble(first.start, end_all(first.record, "by hand", now))
    later = commands.begin_ensemble({"sweep": over}, nodes, new, now + 0.3)
    again = later["sweep"]
    began = [found.record.started for found in (first, again)]
    names = {job_name(spec, "a", JobRef("md", 0), each) for each in began}
    assert len(names) == 2


@pytest.mark.parametrize("member", ["xx", "far"])
def test_a_job_for_a_member_that_it_does_not_have_keeps_no_ensemble(
    member: str,
) -> None:
    site = EnsembleSite()
    far = {"name": "far", "provider": "", "mode": "external"}
    site.sim.lead.submit(
        whole(3),
        userid=USER,
        urgency=0,
        preferences=BurstPreferences(tag=f"sweep/{member}", urgency=16),
    )
    site.up(members=[{**MEMBER, **JOBS}, far])
    site.step(2)
    site.down()
    site.step(4)
    (row,) = site.rows()
    assert row["state"] == "ended"
    site.up(**ONE)


def test_custom_commands_are_run_once(tmp_path: Path) -> None:
    site = EnsembleSite(ensemble={"custom": True})
    command = ["sh", "-c", "echo $BURST_MEMBER >> told"]
    site.up(**ONE, directory=str(tmp_path), custom={"tell": command})
    site.once(custom=("tell",), why="it is time")
    site.step(4)
    told = tmp_path / "told"
    wait_until(lambda: told.exists() and told.read_text(), "the command")
    assert told.read_text().splitlines() == ["a"]


def test_custom_commands_on_record_are_not_run_unless_the_settings_allow_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    site = EnsembleSite()
    command = ["sh", "-c", "echo $BURST_MEMBER >> told"]
    site.up(**ONE, directory=str(tmp_path), custom={"tell": command})
    site.once(custom=("tell",), why="it is time")
    site.step(4)
    said = "command tell of a: the settings do not allow [custom] commands"
    assert caplog.text.count(said) == 1
    assert list(tmp_path.iterdir()) == []
    tables = {"name": "x", **ONE, "custom": {"t": ["a"]}}
    with pytest.raises(ConfigError, match=r"ensemble x has commands, and .* not allow"):
        site.service.answer("ensemble-up", {"tables": tables})


def test_a_member_that_cannot_grow_says_why() -> None:
    site = EnsembleSite(limits={"max_nodes": 2})
    site.up(**ONE)["a"].says = MemberDecision(nodes=3)
    site.step(8)
    assert site.live("a") == 2, "as many as there can be"
    why = "limit of 2 nodes in all: 2 in use"
    assert why in site.shown()["member"]["waits_for"]
    site.sim.tables["limits"] = {"max_nodes": 8}
    site.restart()
    site.step(6)
    assert site.live("a") == 3
    assert site.shown()["member"]["waits_for"] == ""


def test_nothing_is_done_while_the_lead_cannot_be_read() -> None:
    site, says = started()
    site.sim.lead.unreadable = True
    site.step(3)
    assert says.saw == []
    site.sim.lead.unreadable = False
    site.step()
    assert says.saw


def test_a_step_that_finds_the_lead_gone_is_taken_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    site, says = started()

    def blind(view: MemberView, memory: Memory, now: float) -> MemberDecision:
        site.sim.lead.unreadable = True
        return MemberDecision(nodes=2)

    says.decide = blind  # type: ignore[method-assign]
    site.step(3)
    assert site.live("a") == 0
    assert caplog.text.count("ensemble sweep: the lead cannot be read") == 1


def test_a_slot_that_is_kept_for_another_provider_is_none_for_a_member() -> None:
    lead = identity()
    ours = frozenset(range(2, 10))
    kept = msgspec.structs.replace(
        lead,
        properties={**lead.properties, "local": ours, "far": frozenset((2, 3, 4, 5))},
    )
    site = EnsembleSite(
        lead=FakeLead(known=kept),
        providers={"local": {"type": "fake"}, "far": {"type": "fake"}},
    )
    site.up(**ONE)
    (hosts,) = site.store.read()["sweep"].start.slots.values()
    assert hosts


def test_a_member_whose_slot_is_gone_gets_no_jobs(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The other members do: each intent is done by itself."""
    site = EnsembleSite()
    site.sim.lead.known = identity(hosts="lead-[0-1],burst-0-[0-3],burst-1-[0-3]")
    site.restart()
    both = site.up(members=[{**MEMBER, **JOBS}, {**MEMBER, **JOBS, "name": "b"}])
    slots = site.store.read()["sweep"].start.slots
    assert (slots["a"][0], slots["b"][0]) == ("burst-0-0", "burst-1-0")
    site.step(4)
    both["a"].says = both["b"].says = MemberDecision(submit=("md",))
    site.sim.lead.known = identity(hosts="lead-[0-1],burst-7-[0-3],burst-1-[0-3]")
    site.restart()
    site.step(2)
    why = "no rank slot that begins with burst-0-0 any more"
    assert caplog.text.count(why) == 1
    assert "no rank slot" in site.shown("a")["member"]["waits_for"]
    tags = {job.preferences.tag for job in site.sim.lead.jobs.values()}
    assert tags == {"sweep/b"}
    assert site.shown("b")["member"]["waits_for"] == ""


def test_a_step_that_is_under_way_does_not_take_back_what_a_person_does() -> None:
    site, says = started()
    site.step(3)
    assert site.live("a") == 1

    def meanwhile(view: MemberView, memory: Memory, now: float) -> MemberDecision:
        site.down()
        return MemberDecision(nodes=3)

    says.decide = meanwhile  # type: ignore[method-assign]
    site.step()
    assert site.member("a").ended is not None
    site.step(3)
    assert site.records.live == []


@pytest.mark.parametrize(
    ("member", "refused"),
    [
        ({"provider": "x"}, "there is no provider x.*the daemon has local"),
        ({"offer": "x"}, "provider local has no offer x.*it has nodes"),
        ({"max": 99}, "no rank slot of 99 nodes.*add-slot, or set max to 4 or less"),
        ({"count": 1}, ""),
    ],
)
def test_what_no_daemon_could_make_is_refused(
    member: dict[str, Any], refused: str
) -> None:
    site = EnsembleSite()
    site.algorithms["a"] = Scripted()
    tables = {"name": "sweep", "members": [{**MEMBER, **member}]}
    if refused:
        with pytest.raises(BurstError) as error:
            site.ask("up", tables=tables)
        assert re.search(refused, f"{error.value.what}; {error.value.advice}")
    else:
        site.ask("up", tables=tables)
        site.step()
        assert site.member("a").nodes == 1


def test_without_a_rank_slot_that_is_left_no_smaller_member_is_advised() -> None:
    site = EnsembleSite()
    members = [
        {**MEMBER, "name": f"m{n}"} for n in range(len(nodes_of(site.sim).slots))
    ]
    with pytest.raises(BurstError) as error:
        site.up(members=[*members, {**MEMBER, "max": 1}])
    assert error.value.advice == "add one with burst lead add-slot"


def test_a_person_submits_jobs_of_the_file() -> None:
    site = EnsembleSite()
    site.up(
        members=[
            {**MEMBER, "jobs": [{"name": "md", "command": "run", "count": 3}]},
            {**MEMBER, "name": "b"},
        ],
        jobs=[{"name": "all", "command": "run", "count": 0}],
    )

    def submit(member: str, group: str, count: int) -> None:
        site.ask("submit", member=member, jobs=group, count=count)

    submit("a", "md", 2)
    with pytest.raises(BurstError, match="sweep/a gets no jobs now: earlier jobs are"):
        submit("a", "md", 1)
    site.step()
    assert len(site.lead.names) == 2
    with pytest.raises(BurstError, match="of jobs md the file has 1 left, not 2"):
        submit("a", "md", 2)
    submit("b", "all", 5)
    site.step()
    assert len(site.lead.names) == 7
    for wrong, says in (
        (("b", "md", 1), "sweep/b has no jobs md; it has all"),
        (("a", "md", 0), "0 jobs cannot be submitted; 1 to 200"),
        (("c", "md", 1), "there is no sweep/c; known ones: sweep/a, sweep/b"),
    ):
        with pytest.raises(BurstError, match=re.escape(says)):
            submit(*wrong)
    site.down()
    with pytest.raises(BurstError, match="sweep/a has ended: by hand"):
        submit("a", "md", 1)


def test_a_person_resizes_a_member() -> None:
    site, _ = started()
    site.step(3)

    def resize(nodes: int) -> None:
        site.ask("resize", member="a", nodes=nodes)

    resize(2)
    site.step(6)
    assert site.live("a") == 2
    assert site.member("a").why == "resized by hand"
    with pytest.raises(BurstError, match="the file allows 1 to 3"):
        resize(4)
    with pytest.raises(BurstError, match="there is no sweep/b; known ones: sweep/a"):
        site.ask("resize", member="b", nodes=1)
    with pytest.raises(BurstError, match="no ensemble other; known ones: sweep"):
        site.ask("resize", name="other", member="a", nodes=1)


def test_a_member_is_made_of_the_offer_that_its_file_names() -> None:
    site = EnsembleSite()
    site.up(
        members=[{**MEMBER, "offer": "nodes"}, {**MEMBER, "name": "b", "offer": "x"}]
    )
    site.step(4)
    assert (site.live("a"), site.live("b")) == (1, 0)
    assert "offer x is requested" in site.member("b").refused


def test_it_waits_for_nodes_that_leave_before_it_grows_past_its_most() -> None:
    site, says = started()
    site.once("md", "md", "md", nodes=3)
    site.step(6)
    assert len(site.sim.lead.running()) == 3
    says.says = MemberDecision(nodes=1)
    site.step(8)
    says.says = MemberDecision(nodes=3)
    site.step(10)
    member = site.shown()
    assert member["member"]["waits_for"] == "nodes that it gives back are not gone yet"
    assert member["nodes"]["node_up_count"] == 1, "two are drained"
    assert member["member"]["nodes_paid"] == 3
    for job in site.sim.lead.running():
        site.end_job(job)
    site.step(10)
    assert site.live("a") == 3


def test_while_no_tick_ends_its_nodes_are_not_bought_again_and_again() -> None:
    """Each check asks for the nodes that it lacks, and does not know of the last."""
    site = EnsembleSite()
    site.up(**ONE)["a"].says = MemberDecision(nodes=3)
    stalled = host_of(site.sim, deadline=0.01, wake=lambda: None)
    site.ensembles = Ensembles(
        site.client()._replace(call=stalled.call),
        lambda _: {"a": {"scripted": site.algorithms["a"]}},
        None,
        site.store,
    )
    for _ in range(4):
        site.sim.now += 12.0
        site.ensembles.look()
    site.sim.tick(3)
    assert site.records.live == []
    site.boot()
    site.step(3)
    assert sum(burst.lease.nodes for burst in site.records.live) == 3


def test_what_is_shown_of_ensembles() -> None:
    site = EnsembleSite()
    assert site.rows() == []
    with pytest.raises(BurstError, match="no ensemble sweep; known ones: none"):
        site.rows("sweep")
    site.up(**TWO)
    site.step(3)

    def state() -> Any:
        return site.rows("sweep")[0]["state"]

    assert state() == "running"
    shown = site.shown()
    assert shown["member"]["provider"] == "local"
    assert shown["member"]["slot"] == "burst-0-[0-3]"
    (burst,) = shown["member"]["bursts"]
    assert (burst["state"], burst["nodes"]) == ("online", 1)
    assert shown["queue"]["run"] == 0
    site.lead.refuses = "the queue is disabled"
    site.once("md")
    assert site.shown()["member"]["waits_for"] == "the queue is disabled"
    site.sim.lead.unreadable = True
    site.sim.tick()
    assert site.shown().keys() == {"member", "jobs"}
    site.sim.lead.unreadable = False
    site.down()
    site.sim.tick()
    assert state() == "ending"
    assert site.shown()["member"]["why"] == "by hand"
    assert site.shown()["member"]["waits_for"] == ""
    site.step(4)
    assert state() == "ended"


def test_what_the_nodes_of_a_member_wait_for_is_shown() -> None:
    """Such as for a cluster's autoscaler, in the words of the provider."""
    site = EnsembleSite()
    site.sim.provider.starts_after = 6
    says = site.up(**ONE)["a"]

    def shown() -> tuple[str, str]:
        member = site.shown()["member"]
        (burst,) = member["bursts"]
        return member["waits_for"], burst["note"]

    site.step(2)
    assert shown() == ("not up yet", "not up yet")
    site.sim.until(lambda: site.live("a") == 1)
    assert shown() == ("", "")
    says.says = MemberDecision(nodes=2, why="more jobs wait")
    while not site.sim.burst.coming:
        site.step()
    site.sim.tick(2)
    grows = "grows from 1 to 2 nodes: not up yet"
    assert shown() == (grows, grows)
    site.sim.until(lambda: not site.sim.burst.coming)
    assert shown()[0] == ""
    says.says = MemberDecision(end=True, why="all is done")
    site.sim.provider.ends_after = 100
    site.step(3)
    waits, note = shown()
    assert note
    assert waits == "", "it waits for no nodes"


def test_jobs_of_a_member_that_never_had_a_burst_do_not_wait_for_ever() -> None:
    site = EnsembleSite()
    says = site.up(members=[{**MEMBER, **JOBS, "min": 0, "size": 0}])["a"]
    says.says = MemberDecision(nodes=0, submit=("md", "md"))
    site.step(2)
    says.says = MemberDecision()
    assert site.states() == {JobState.SCHED}
    site.down()

    def state() -> str:
        (found,) = site.rows("sweep")
        return str(found["state"])

    assert state() == "ending", "its jobs are not canceled yet"
    site.step(3)
    assert JobState.SCHED not in site.states()
    assert state() == "ended"


class NotResizable(FakeProvider):
    """A provider whose bursts keep their size."""

    resize = Provider.resize


class SimOfFixedBursts(Sim):
    provider_type = NotResizable


def test_where_bursts_keep_their_size_a_member_has_several() -> None:
    site = EnsembleSite(SimOfFixedBursts)
    says = site.up(**ONE)["a"]
    site.step(3)
    site.once("md", "md", "md", nodes=3)
    site.step(10)
    assert sorted(burst.lease.nodes for burst in site.sim.bursts) == [1, 2]
    assert len(site.sim.lead.running()) == 3
    # It keeps what is in use, and gives back the burst on which nothing runs.
    says.says = MemberDecision(nodes=2)
    site.step(4)
    assert site.live("a") == 3
    says.says = MemberDecision(nodes=1)
    site.step(4)
    assert site.live("a") == 3
    for job in site.sim.lead.running():
        site.end_job(job)
    site.step(6)
    assert site.live("a") == 1


class DeafEngine:
    """An engine that cannot be asked, for reasons that are known or are not."""

    def __init__(self, *errors: BaseException) -> None:
        self.errors = errors
        self.asked = 0

    def call(self, method: str, payload: dict[str, Any]) -> NoReturn:
        self.asked += 1
        raise self.errors[self.asked % len(self.errors)]


def test_a_look_that_fails_is_not_the_last(caplog: pytest.LogCaptureFixture) -> None:
    away = LeadError("the daemon finished no tick for 30 s")
    engine = DeafEngine(away, SystemExit("oh"))
    site = EnsembleSite()
    daemon = site.client()._replace(call=engine.call)
    ensembles = Ensembles(daemon, lambda _: {}, None, site.store)
    ensembles.start()
    try:
        wait_until(lambda: engine.asked > 2, "a third look")
    finally:
        ensembles.close()
    assert "ensembles: the daemon finished no" in caplog.text
    assert "checking the ensembles failed" in caplog.text


def test_its_end_waits_for_a_step_and_not_for_the_daemon() -> None:
    """Before the first tick the daemon answers nothing, and that may never come."""
    site = EnsembleSite()
    asked, goes_on = threading.Event(), threading.Event()

    def call(*_: object) -> NoReturn:
        asked.set()
        goes_on.wait()
        raise BurstError("the daemon is starting")

    daemon = site.client()._replace(call=call)
    # On a busy machine this thread may have no turn in a second.
    for _ in range(5):
        asked.clear()
        waits = Ensembles(daemon, lambda _: {}, None, site.store)
        waits.start()
        assert asked.wait(HANG_S)
        began = time.monotonic()
        waits.close()
        if (took := time.monotonic() - began) < 1:
            break
    goes_on.set()
    assert took < 1


class LostStore(MemoryStore):
    """The store of a lead that cannot be asked any more."""

    def load(self) -> NoReturn:
        raise LeadError("the lead is gone")


def test_after_its_end_neither_the_lead_nor_the_daemon_is_asked() -> None:
    engine = DeafEngine(LeadError("the daemon is gone"))
    daemon = EnsembleSite().client()._replace(call=engine.call)
    over = Ensembles(daemon, lambda _: {}, None, EnsembleStore(LostStore()))
    with pytest.raises(LeadError, match="the lead is gone"):
        over.look()
    over.close()
    over.look()
    assert engine.asked == 0


def test_where_nobody_tells_of_external_members_nothing_is_decided_for_them() -> None:
    """Such as in a process of their own, of ensembles that the daemon has begun."""
    site = EnsembleSite()
    jobs = [{"name": "step", "command": "true", "count": 0}]
    far = {"name": "far", "mode": "external", "min": 0, "jobs": jobs}
    says = site.up(members=[far, MEMBER])
    site.step(2)
    assert says["far"].saw == says["a"].saw == []
    assert "leave in_daemon out of" in site.shown()["member"]["trouble"]
    assert "queue" not in site.shown("far")
    site.down()
    site.step(3)
    (row,) = site.rows()
    assert row["state"] == "ended"
