# SPDX-License-Identifier: MIT
"""Reports of agents on an engine that is run by hand."""

from __future__ import annotations

from typing import Any

import pytest
from burst_ensemble.algorithm import JobTally, MemberDecision
from burst_ensemble.http.routes import RequestRefused
from burst_ensemble_agent.report import AgentNodes

from burst.model.jobid import JobId
from burst.model.lead import JobState
from tests.plugins.ensemble_agent.agent_site import OUTSIDE, Outside
from tests.plugins.ensemble_agent.agents import row


def test_jobs_go_to_the_agent_and_are_confirmed_by_it() -> None:
    outside = Outside()
    outside.send()
    outside.says.says = MemberDecision(submit=("step", "step"))
    outside.site.step()
    assert outside.site.lead.names == {}, "not at the lead"
    outside.says.says = MemberDecision()
    first, second = outside.send().submit
    submitted = {first: 1}
    outside.send(submitted=submitted, refused={second: "no"})
    outside.site.step()
    member = outside.site.member("m")
    assert [ref.number for ref in member.unconfirmed] == [1]
    assert outside.row()["member"]["waits_for"] == "no"
    assert list(outside.send(submitted={**submitted, second: 2}).submit) == [second]
    outside.site.step()
    assert outside.site.member("m").unconfirmed == ()
    assert outside.send(submitted=submitted).submit == {}
    assert outside.site.member("m").jobs.keys() == {1, 2}


def test_commands_for_it_run_beside_the_daemon(
    caplog: pytest.LogCaptureFixture,
) -> None:
    outside = Outside(custom={"tell": ["true"]})
    outside.send()
    outside.says.says = MemberDecision(custom=("tell",))
    outside.site.step()
    assert "command tell of m: the settings do not allow" in caplog.text


def test_a_job_that_the_instance_never_takes_has_failed() -> None:
    outside = Outside()
    outside.send()
    outside.says.says = MemberDecision(submit=("step",))
    outside.site.step()
    outside.says.says = MemberDecision()
    (job,) = outside.send().submit
    outside.send(never_taken={job: "it is too large"})
    outside.site.step()
    member = outside.site.member("m")
    assert (member.unconfirmed, member.total.failed) == ((), 1)
    assert outside.row()["member"]["never_taken"] == "it is too large"
    assert outside.send().submit == {}


def test_a_restart_of_the_daemon_gives_the_same_jobs_and_counts_none_twice() -> None:
    outside = Outside()
    outside.send()
    outside.says.says = MemberDecision(submit=("step",))
    outside.site.step()
    answer = outside.send()
    (job,), run = answer.submit, answer.run
    outside.says.says = MemberDecision()
    outside.site.restart()
    assert outside.reports.last == {}
    (again,) = outside.send(jobs=(row(1, run=run),), submitted={job: 1}).submit
    assert again == job
    outside.site.step()
    outside.site.restart()
    outside.send(jobs=(row(1, run=run, t_start=6.0),))
    outside.site.step()
    outside.site.restart()
    outside.send(jobs=(row(1, run=run, t_start=6.0),))
    outside.site.step()
    assert outside.says.saw[-1].tally.events == {"submit": 1, "start": 1}


def test_jobs_of_the_run_before_count_in_no_other() -> None:
    """A person ends the ensemble and starts it again before its agent knows that."""
    outside = Outside()
    outside.site.down()
    outside.site.step(6)
    outside.says = outside.site.up(members=[OUTSIDE])["m"]
    outside.says.says = MemberDecision(submit=("step",) * 2)
    outside.send()
    outside.site.step()
    first = outside.send()
    outside.says.says = MemberDecision()
    (old, _), began = first.submit, outside.site.sim.now
    outside.site.down()
    outside.site.sim.tick(2, seconds=3.0)
    outside.says = outside.site.up(members=[OUTSIDE])["m"]
    waits = row(1, JobState.SCHED, run=first.run, t_submit=began + 100)
    ended: dict[str, Any] = {
        "run": first.run,
        # The clock of the instance may be ahead.
        "t_submit": began + 100,
        "t_finish": began + 101,
        "result": "completed",
    }
    again = outside.send(
        jobs=(waits, row(2, JobState.INACTIVE, **ended)), submitted={old: JobId(1)}
    )
    assert (again.end, again.submit) == ("", {})
    assert old.endswith(first.run)
    assert not old.endswith(again.run)
    outside.site.step()
    outside.send(jobs=(row(1, JobState.INACTIVE, **ended),))
    outside.site.step()
    seen = outside.says.saw[-1]
    assert (seen.tally, seen.jobs[0].tally) == (JobTally(), JobTally())


def test_each_report_is_good_for_one_step() -> None:
    outside = Outside()
    outside.send()
    outside.site.step(3)
    assert len(outside.says.saw) == 1
    outside.send()
    outside.site.step()
    assert len(outside.says.saw) == 2


def test_nothing_is_decided_while_the_agent_is_silent(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO", "burst")
    outside = Outside()
    outside.send()
    outside.site.step()
    shown = outside.row()
    assert (shown["member"]["nodes"], shown["member"]["silent"]) == (2, False)
    assert shown["member"]["instance"] == "flux-1"
    outside.site.step(6)
    assert caplog.text.count("the agent of m has been silent since") == 1
    shown = outside.row()
    assert shown["member"]["silent"]
    assert "its agent has been silent since" in shown["member"]["waits_for"]
    assert "nodes" not in shown, "it is not told what may not hold any more"
    assert len(outside.says.saw) == 1
    outside.send()
    outside.site.step()
    assert "the agent of m reports again" in caplog.text
    assert len(outside.says.saw) == 2


def test_an_agent_that_never_came_is_told_of(caplog: pytest.LogCaptureFixture) -> None:
    outside = Outside()
    assert "has not reported" in outside.row()["member"]["waits_for"]
    outside.site.step(7)
    assert "the agent of m has been silent since" in caplog.text


def test_the_end_is_told_to_the_agent() -> None:
    outside = Outside()
    outside.send()
    outside.site.step()
    outside.site.down()
    assert outside.send(jobs=(row(1, JobState.SCHED),)).end == "by hand"
    outside.site.step(3)
    assert outside.send().end == "by hand"
    assert outside.row()["member"]["nodes"] == 0, "as of any member that has ended"


def test_an_ensemble_that_is_started_again_begins_anew() -> None:
    outside = Outside()
    outside.send()
    outside.site.step()
    outside.site.down()
    outside.site.step(6)
    outside.site.sim.tick(1, seconds=5.0)
    outside.says = outside.site.up(members=[OUTSIDE])["m"]
    assert outside.row()["member"]["agent"] is None
    outside.site.step()
    assert outside.says.saw == []
    outside.number = 0
    assert outside.send(instance="flux-2", began=1.0).end == ""
    outside.site.step()
    assert len(outside.says.saw) == 1


def test_reports_of_ensembles_that_are_forgotten_are_dropped() -> None:
    outside = Outside()
    outside.send()
    outside.site.up(name="other", members=[OUTSIDE])
    outside.site.store.change(lambda known: {"other": known["other"]})
    outside.send("other.m")
    assert set(outside.reports.last) == {"other/m"}


def test_an_agent_of_another_version_is_told_of_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    outside = Outside()
    for _ in range(2):
        with pytest.raises(RequestRefused):
            outside.send(version=3)
    told = "ensemble sweep: a report about m is refused: the report has version 3"
    assert caplog.text.count(told) == 1
    assert "install the daemon's version of burst beside the agent" in caplog.text


@pytest.mark.parametrize("was_read", [False, True])
def test_a_silent_agent_whose_reports_are_refused_is_shown_so(*, was_read) -> None:
    outside = Outside()
    if was_read:
        outside.send()
        outside.site.step(6)
    with pytest.raises(RequestRefused):
        outside.send(version=3)
    shown = outside.row()["member"]
    told = "the last report of its agent is refused: the report has version 3"
    assert shown["silent"]
    assert shown["waits_for"].startswith(told)
    outside.send()
    outside.site.step(7)
    told = "its agent has been silent since"
    assert outside.row()["member"]["waits_for"].startswith(told)


NO_NODES = AgentNodes(up=0, free=0, cores_up=0, cores_free=0)
REFUSED = [
    ("other.m", {}, 404, "no ensemble other"),
    ("sweep.x", {}, 404, "has no member x"),
    ("sweep.joined", {}, 409, "made by the daemon"),
    ("sweep", {}, 404, "has no member"),
    ("sweep.m", {"number": 5, "nodes": NO_NODES}, 409, "stale"),
]


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case[3])
def test_reports_that_are_refused_change_nothing(
    case: tuple[str, dict[str, Any], int, str],
) -> None:
    about, changes, status, what = case
    outside = Outside()
    outside.send(number=5)
    with pytest.raises(RequestRefused) as caught:
        outside.send(about, **changes)
    assert what in caught.value.what
    assert caught.value.status == status
    assert outside.row(is_read=False)["member"]["nodes"] == 2, (
        "also while the lead cannot be read"
    )
