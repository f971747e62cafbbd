# SPDX-License-Identifier: MIT
from typing import Any

from burst.core.actions import EndJob, FailJob, HoldJobs, ProvisionBurst, ReapBurst
from burst.errors import JobspecError, Unreadable
from burst.model.jobid import JobId
from burst.runtime.action_runner import ActionRunner
from tests.builders import identity, whole
from tests.core.ticks import recorded
from tests.fakes import FakeLead
from tests.lifecycles import LEASE, run

RECORDS = recorded(run("provision-start"))


class SilentLead(FakeLead):
    def hold(self, jobs):
        self.log.append(("hold", jobs[0], ""))
        raise Unreadable("no answer for 10 s")

    def fail_job(self, job, reason):
        self.log.append(("fail", job, reason))


class Asked:
    """A tracker that notes what a provider is asked for."""

    def __init__(self):
        self.calls = []

    def call(self, burst, verb, spec=None):
        self.calls.append(verb.value)


def test_a_lead_that_does_not_answer_is_not_asked_again_in_the_tick():
    """Providers are."""
    lead = SilentLead(identity())
    tracker: Any = Asked()
    hold, fail = HoldJobs((JobId(1),)), FailJob(JobId(2), "too large")
    asked: list[Any] = [ProvisionBurst(LEASE.id), hold, fail, ReapBurst(LEASE.id)]
    asked += [ProvisionBurst(LEASE.id)]

    runner = ActionRunner(lead, identity(), tracker, lambda *_: None)
    unanswered = runner.perform(asked, RECORDS)

    assert unanswered == [hold, fail]
    assert lead.log == [("hold", 1, "")]
    assert tracker.calls == ["provision", "reap", "provision"]


def test_a_job_that_cannot_be_read_keeps_no_other_action_back():
    class Spoilt(FakeLead):
        def finish_job(self, job, exit_status, output):
            raise JobspecError("its eventlog cannot be read")

    lead = Spoilt(identity())
    spoilt, other = lead.submit(whole(1)), lead.submit(whole(1))
    asked: list[Any] = [EndJob(spoilt, {}, "over", 0, ""), FailJob(other, "why")]
    tracker: Any = Asked()
    runner = ActionRunner(lead, identity(), tracker, lambda *_: None)
    assert runner.perform(asked, RECORDS) == []
    assert lead.jobs[other].result == "failed"
