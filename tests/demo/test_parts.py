# SPDX-License-Identifier: MIT
import pytest

from burst.demo.parts import HUGE, LARGE, LOCAL, PARTS, SLOTS, SMALL
from burst.model.ranks import parse_hostlist


@pytest.mark.parametrize(
    ("part", "options"),
    [
        (LOCAL, ("-N2",)),
        (LARGE, ("-N4", "--setattr=burstable")),
        (SMALL, ("-N2", "--setattr=burstable", "--requires=burst-1")),
        (HUGE, ("-N9", "--setattr=burstable")),
    ],
)
def test_a_job_is_submitted_with_the_options_that_both_leads_know(part, options):
    assert part.options == options


def test_one_job_asks_for_more_nodes_than_there_are_to_lend():
    lent = sum(len(parse_hostlist(hosts)) for hosts in SLOTS)
    most = max(part.nodes for part in PARTS)

    assert HUGE.nodes == most == lent + 1


@pytest.mark.parametrize(
    ("part", "state", "output"),
    [
        (LOCAL, "completed", "lead-1\nlead-0\n"),
        (LARGE, "completed", "burst-0-0\nburst-0-1\nburst-0-3\nburst-0-2\n"),
        (SMALL, "completed", "burst-1-2\nburst-1-0\n"),
        (HUGE, "canceled", ""),
    ],
)
def test_a_job_that_came_to_what_it_was_to_come_to_has_no_fault(part, state, output):
    assert part.fault(state, output) == ""


@pytest.mark.parametrize(
    ("part", "state", "output", "fault"),
    [
        (LARGE, "failed", "", "is failed, not completed"),
        (HUGE, "held", "", "is held, not canceled"),
        (HUGE, "canceled", "lead-0\n", "ran on lead-0, and was to run nowhere"),
        (SMALL, "completed", "", "ran on 0 nodes, not on 2"),
        (SMALL, "completed", "burst-1-0\n", "ran on 1 nodes, not on 2"),
        (
            SMALL,
            "completed",
            "burst-1-0\nburst-1-0\n",
            "ran on burst-1-0 burst-1-0, not on 2 of burst-1-[0-3]",
        ),
        (
            SMALL,
            "completed",
            "burst-1-0\nlead-1\n",
            "ran on burst-1-0 lead-1, not on 2 of burst-1-[0-3]",
        ),
    ],
)
def test_a_job_that_ended_otherwise_or_ran_elsewhere_is_a_fault(
    part, state, output, fault
):
    assert part.fault(state, output) == fault
