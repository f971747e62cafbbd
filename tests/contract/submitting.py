# SPDX-License-Identifier: MIT
"""Contract of `burst.lead.JobSubmitter`."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from burst.errors import BurstError, JobRefused, LeadError
from burst.lead import JobSubmitter, Lead, NewJob
from burst.model.jobid import JobId
from burst.model.lead import JobState
from tests.contract.base import WithInstance
from tests.contract.instance import Instance
from tests.contract.watching import Watch
from tests.support.waiting import wait_until


def jobspec(name: str, *command: str, nodes: int = 4, **system: Any) -> dict[str, Any]:
    """A jobspec of whole nodes, as the daemon makes it."""
    slot = {"type": "slot", "label": "task", "count": 1}
    core = {"type": "core", "count": 1}
    node = {"type": "node", "count": nodes, "exclusive": True}
    return {
        "version": 1,
        "resources": [{**node, "with": [{**slot, "with": [core]}]}],
        "tasks": [{"command": command, "slot": "task", "count": {"per_slot": 1}}],
        "attributes": {
            "system": {
                "duration": 0,
                "cwd": "/",
                "environment": {"PATH": os.environ["PATH"]},
                "job": {"name": name},
                "burstable": True,
                **system,
            }
        },
    }


def submitter(lead: Lead) -> JobSubmitter:
    assert isinstance(lead, JobSubmitter)
    return lead


def ids(answers: Sequence[JobId | BurstError]) -> list[JobId]:
    assert not [each for each in answers if isinstance(each, BurstError)]
    return [each for each in answers if not isinstance(each, BurstError)]


class SubmitContract(WithInstance):
    def test_jobs_are_submitted_as_the_caller(self, lead: Lead, watch: Watch) -> None:
        preferences = {"tag": "sweep/a", "urgency": 16}
        wanted = [
            NewJob(jobspec("sweep-1", "true", burst=preferences), urgency=0),
            NewJob(jobspec("sweep-2", "true", nodes=3), urgency=20),
        ]
        one, two = ids(submitter(lead).submit_jobs(wanted))
        view = watch.state(one, JobState.SCHED)
        assert (view.name, view.urgency, view.held_at_submit) == ("sweep-1", 0, True)
        assert view.preferences.tag == "sweep/a"
        assert view.userid == os.getuid()
        assert view.request
        assert view.request.nodes == 4
        assert watch.state(two, JobState.SCHED).urgency == 20

    def test_a_job_that_is_submitted_runs_as_it_says(
        self, instance: Instance, lead: Lead
    ) -> None:
        spec = jobspec("told", "sh", "-c", "pwd; echo $COLOR", nodes=1)
        spec["attributes"]["system"]["environment"]["COLOR"] = "grün"
        (job,) = ids(submitter(lead).submit_jobs([NewJob(spec)]))
        assert instance.output(job).split() == ["/", "grün"]

    def test_a_job_is_submitted_again_as_its_user_did(
        self, instance: Instance, lead: Lead, watch: Watch
    ) -> None:
        """Without what confines it to nodes, also when it has ended."""
        spec = jobspec("first", "true", constraints={"properties": ["burst"]})
        (job,) = ids(submitter(lead).submit_jobs([NewJob(spec, urgency=0)]))
        asked = watch.state(job, JobState.SCHED).request
        assert not lead.confine({job: frozenset({2})})
        instance.cancel(job)
        watch.state(job, JobState.INACTIVE)
        found = lead.submitted_jobspec(job)
        system = found["attributes"]["system"]
        assert system["environment"] == {"PATH": os.environ["PATH"]}
        (again,) = ids(submitter(lead).submit_jobs([NewJob(found, urgency=0)]))
        view = watch.state(again, JobState.SCHED)
        assert (view.request, view.confined_to) == (asked, None)
        with pytest.raises(LeadError):
            lead.submitted_jobspec(JobId(1))

    def test_one_that_is_refused_keeps_no_other_back(self, lead: Lead) -> None:
        bad: Mapping[str, Any] = {**jobspec("bad"), "resources": []}
        good = jobspec("good", "true")
        refused, taken = submitter(lead).submit_jobs([NewJob(bad), NewJob(good)])
        assert isinstance(refused, JobRefused)
        assert str(refused)
        assert not isinstance(taken, BurstError)
        assert submitter(lead).find_jobs(["bad", "good"]) == {"good": taken}

    def test_jobs_are_found_by_their_names_also_when_they_have_ended(
        self, instance: Instance, lead: Lead
    ) -> None:
        whole = {"nodes": 1}
        first, ended, waits = ids(
            submitter(lead).submit_jobs(
                [
                    NewJob(jobspec("twice", "true", **whole)),
                    NewJob(jobspec("twice", "true", **whole)),
                    NewJob(jobspec("waits", "true"), urgency=0),
                ]
            )
        )
        instance.output(first)
        instance.output(ended)
        found = submitter(lead).find_jobs(["twice", "waits", "never"])
        assert found == {"twice": ended, "waits": waits}
        assert submitter(lead).find_jobs([]) == {}

    def test_a_canceled_job_is_canceled_also_if_its_task_then_succeeds(
        self, instance: Instance, lead: Lead, watch: Watch, tmp_path: Path
    ) -> None:
        ready = tmp_path / "ready"
        script = f'trap "exit 0" TERM; touch {ready}; sleep 600 & wait'
        spec = jobspec("stubborn", "sh", "-c", script, nodes=1)
        (job,) = ids(submitter(lead).submit_jobs([NewJob(spec)]))
        wait_until(ready.exists, "the trap")
        instance.cancel(job)
        assert watch.state(job, JobState.INACTIVE).result == "canceled"
        assert submitter(lead).outcomes([job])[job].result == "canceled"

    def test_how_jobs_ended(self, instance: Instance, lead: Lead, watch: Watch) -> None:
        commands = [("true",), ("false",), ("sleep", "600"), ("true",)]
        specs = [NewJob(jobspec("told", *words, nodes=1)) for words in commands]
        held = NewJob(jobspec("held", "true"), urgency=0)
        good, bad, runs, late, waits, gone = ids(
            submitter(lead).submit_jobs([*specs, held, held])
        )
        for job in (good, bad):
            watch.state(job, JobState.INACTIVE)
        view = watch.state(runs, JobState.RUN)
        instance.cancel(runs)
        watch.state(runs, JobState.INACTIVE)
        instance.cancel(gone)
        watch.state(gone, JobState.INACTIVE)
        watch.state(late, JobState.INACTIVE)
        told = submitter(lead).outcomes([good, bad, runs, waits, gone, JobId(1)])
        results = {job: outcome.result for job, outcome in told.items()}
        assert results == {
            good: "completed",
            bad: "failed",
            runs: "canceled",
            gone: "canceled",
        }
        assert 0 < told[good].t_start <= told[good].t_finish
        assert told[runs].t_start >= view.t_submit
        assert told[gone].t_start == 0.0
        assert submitter(lead).outcomes([]) == {}

    def test_jobs_are_submitted_from_another_thread(self, lead: Lead) -> None:
        found: list[JobId | BurstError] = []

        def submit() -> None:
            many = [NewJob(jobspec(f"n{i}", "true"), 0) for i in range(300)]
            found.extend(submitter(lead).submit_jobs(many))

        thread = threading.Thread(target=submit)
        thread.start()
        while thread.is_alive():
            lead.drain(frozenset({1}), "called meanwhile")
            lead.undrain(frozenset({1}))
        assert len(set(ids(found))) == 300
