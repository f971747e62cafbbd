# SPDX-License-Identifier: MIT
"""A job that no node could ever hold is refused, in whichever words it asks for it."""

from __future__ import annotations

from functools import partial

import pytest

from tests.cli.cli_harness import CliHarness, open_harness
from tests.flux_instance import FLUX, MISSING, flux_instance
from tests.intake.modes import TABLES
from tests.intake.user_cli import UserCli
from tests.support.waiting import wait_until

pytestmark = [
    pytest.mark.flux,
    pytest.mark.skipif(not FLUX, reason=MISSING),
    pytest.mark.timeout(240),
]

WORDS = "no rank slot has a node that holds it (99 cores)"


def is_told(cli: CliHarness, job: str) -> bool:
    # At first it may not know the job yet.
    return WORDS in " ".join(cli.run("explain", job).stdout.split())


@pytest.mark.parametrize("mode", ["hold", "scheduler"])
def test_a_whole_node_and_the_slots_on_one_node_get_the_same_answer(mode: str) -> None:
    """An own node is idle, which Rv1Pool would give to the first by chance."""
    with flux_instance(TABLES[mode]) as instance, open_harness(instance) as cli:
        user = UserCli(instance)
        cli.write(intake={"mode": mode})
        if mode == "scheduler":
            user.use_scheduler()
        with cli.daemon():
            whole = user.submit("--burst", "-N1", "-c99", "sleep", "inf")
            slots = user.submit("--burst", "-N1", "-n99", "-c1", "sleep", "inf")
            for job in (whole, slots):
                wait_until(partial(is_told, cli, job), job)
            assert cli.status()["bursts"] == []
