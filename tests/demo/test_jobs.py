# SPDX-License-Identifier: MIT
"""How each job and each burst of the demo has to end."""

import pytest

from burst.core.burst_story import STAGES
from burst.demo.jobs import HUGE, LARGE, LOCAL, PASSING, SMALL, demo_jobs
from burst.demo.story import burst_faults, read_instructions

LARGE_OUTPUT = "burst-0-1\nburst-0-0\nburst-0-3\nburst-0-2\n"


def row(state="completed", output=""):
    return {"id": "f1", "state": state, "output": output}


@pytest.mark.parametrize(
    ("job", "found", "fault"),
    [
        (LARGE, row(output=LARGE_OUTPUT), ""),
        (SMALL, row(output="burst-1-2 burst-1-0"), ""),
        (LOCAL, row(output="lead-1 lead-0"), ""),
        (HUGE, row("canceled"), ""),
        (LARGE, row("failed"), "is failed, not completed"),
        (HUGE, row(), "is completed, not canceled"),
        (LARGE, row(output="burst-0-0"), "ran on burst-0-0, not on 4 of burst-0-[0-3]"),
        (SMALL, row(output="burst-1-0 burst-1-0"), "not on 2 of burst-1-[0-3]"),
        (SMALL, row(output="burst-1-0 lead-0"), "not on 2 of burst-1-[0-3]"),
        (LOCAL, row(), "ran on no host, not on 2 of lead-[0-1]"),
        (HUGE, row("canceled", "lead-0"), "ran on lead-0, not on no host"),
    ],
)
def test_how_a_job_has_to_end(job, found, fault):
    told = job.fault(found)
    assert told.endswith(fault) if fault else told == ""


def test_in_mode_scheduler_there_are_jobs_that_pass():
    assert demo_jobs("hold") == (LOCAL, LARGE, SMALL, HUGE)
    assert demo_jobs("scheduler")[4:] == PASSING


def burst(nodes, result="completed", *without):
    reached = {stage: 1.0 for stage in STAGES if stage not in without}
    return {"id": "b", "nodes": nodes, "result": result, "timeline": reached}


def test_how_bursts_have_to_end():
    assert burst_faults([burst(4), burst(2)], "hold") == []
    held = burst(2, "completed", "hold", "released")
    assert burst_faults([burst(4), held], "scheduler") == []
    assert burst_faults([burst(4), held], "hold") == [
        "burst b was never hold, released"
    ]
    assert burst_faults([], "hold") == [
        "bursts of 4 and of 2 nodes were expected, not: none"
    ]
    assert burst_faults([burst(2), burst(4, "failed")], "hold") == [
        "burst b ended as failed"
    ]


INSTRUCTIONS = """\
Start the lead, and let clients find it:

    env FLUX_RC_EXTRA=/d/flux A=b flux broker -Shostname=lead-0  # on lead-0
    flux broker -Shostname=lead-1  # on lead-1
    export FLUX_URI=local:///d/run/local
"""

SCRIPTS = """\
case "${1:-lead-0}" in
lead-0)
    exec env FLUX_RC_EXTRA=/d/flux A=b flux broker -Shostname=lead-0
    ;;
esac
export FLUX_URI=local:///d/run/local
"""


def test_it_does_what_lead_init_tells_to_do():
    flux, uri = read_instructions(INSTRUCTIONS)
    assert flux[0] == ["env", "A=b", "flux", "broker", "-Shostname=lead-0"]
    assert (len(flux), uri) == (2, "local:///d/run/local")
    scripted, uri = read_instructions(SCRIPTS)
    assert (scripted[0], uri) == (flux[0], "local:///d/run/local")
