# SPDX-License-Identifier: MIT
"""What the service answers to `report`, and that a page is made of it."""

import pytest
from burst_report.page import render_report

from burst.model.burst import State
from burst.model.jobid import format_f58
from tests.builders import whole
from tests.runtime.asking import GUEST, Asking

LENT = whole(3, constraint='{"properties":["burst"]}')


class AskingLater(Asking):
    """A guest's job that has run on a burst that is gone, and one that waits."""

    def __init__(self):
        super().__init__(prices={"local.nodes": 3600.0}, deadlines={"idle": "1s"})
        self.job = self.sim.lead.submit(LENT, userid=GUEST, duration=60.0)
        self.sim.until(lambda: self.sim.lead.running() == [self.job])
        self.sim.tick(5)
        self.sim.lead.finish(self.job)
        self.sim.until(self.sim.in_state(State.INACTIVE))
        self.waits = self.sim.lead.submit(whole(9), userid=7)
        self.tick()


@pytest.fixture
def asking():
    return AskingLater()


def test_bursts_jobs_money_and_what_waits(asking):
    found = asking.ask("report")

    (burst,) = found["bursts"]
    assert burst["result"] == "completed"
    assert burst["states"][-1]["state"] == "inactive"
    assert burst["cost"] > burst["wasted"] > 0
    (job,) = found["jobs"]
    assert (job["id"], job["userid"]) == (format_f58(asking.job), GUEST)
    assert job["finished"] > job["started"] > job["submitted"]
    assert [row["id"] for row in found["waiting"]] == [format_f58(asking.waits)]
    (month,) = found["cost"]["months"]
    assert month["settled"] == pytest.approx(burst["cost"])
    page = render_report(found)
    assert burst["id"] in page
    assert format_f58(asking.job) in page


def test_a_guest_is_told_of_his_own(asking):
    asking.sim.lead.submit(LENT, userid=7)
    asking.sim.tick(3)
    his = asking.ask("report", guest=True)

    assert len(asking.ask("report")["bursts"]) == 2
    assert [row["id"] for row in his["jobs"]] == [format_f58(asking.job)]
    assert len(his["bursts"]) == 1
    assert his["waiting"] == []
    assert {row["group"] for row in his["forecasts"]} <= {"all"}
