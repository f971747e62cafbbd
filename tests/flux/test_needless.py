# SPDX-License-Identifier: MIT
"""No burst is made for a job that starts at once on nodes that are up.

Each case submits short jobs one after the other, each as the only one that wants the
node that is free, and counts the bursts that were begun.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.cli.cli_harness import CliHarness, open_harness
from tests.flux_instance import FluxInstance, flux_bindings
from tests.flux_pool import FluxPool
from tests.intake.modes import TABLES
from tests.intake.user_cli import UserCli, use_scheduler
from tests.support.waiting import wait_until

pytestmark = pytest.mark.flux

JOBS = 12
LONGEST_PAUSE_S = 0.05
"""From the end of one job to the next: some come while the daemon is busy."""


@contextmanager
def site(
    pool: FluxPool, mode: str
) -> Iterator[tuple[FluxInstance, CliHarness, UserCli]]:
    """Yield an instance of one own node, with a daemon in that mode."""
    prepare = use_scheduler if mode == "scheduler" else None
    with pool.lend(prepare=prepare) as instance, open_harness(instance) as cli:
        instance.reload_config(TABLES[mode])
        user = UserCli(instance)
        cli.write(intake={"mode": mode})
        if mode == "queue":
            user.do("queue", "start", "-qbatch")
        with cli.daemon():
            yield instance, cli, user


def run_jobs(instance: FluxInstance, user: UserCli, *words: str) -> None:
    """Submit jobs as `flux submit WORDS` does, each once the one before has ended."""
    text = user.do("submit", "--dry-run", "-N1", *words, "sleep", "0.05")
    wish = json.loads(text)["attributes"]["system"].get("burst", {})
    urgency = 0 if wish.get("urgency") else 16
    job = flux_bindings().job
    handle = flux_bindings().Flux(instance.uri)
    draw = random.Random(1)
    for _ in range(JOBS):
        number = job.submit(handle, text, urgency=urgency)
        job.event_wait(handle, number, "clean")
        time.sleep(draw.uniform(0.0, LONGEST_PAUSE_S))


def begun(cli: CliHarness) -> list[Any]:
    """Return the bursts that were ever begun, and the jobs of each."""
    return [(row["id"], row["jobs"]) for row in cli.status()["bursts"]]


@pytest.mark.parametrize(
    ("mode", "how"),
    [
        # By --burst Flux gets it held; here the daemon holds it, which may come late.
        ("hold", "--setattr=burstable"),
        ("queue", "--burst"),
        ("scheduler", "--burst"),
    ],
)
def test_none_where_an_own_node_or_a_burst_of_the_right_size_is_idle(
    flux_pool: FluxPool, mode: str, how: str
) -> None:
    with site(flux_pool, mode) as (instance, cli, user):
        if mode != "queue":  # where burst jobs run on lent nodes alone
            run_jobs(instance, user, how)
            assert begun(cli) == []
        own = user.submit("-N1", "sleep", "inf")
        user.event(own, "start")
        cli.run("request", "-N1")
        wait_until(
            lambda: [row["state"] for row in cli.status()["bursts"]] == ["online"],
            "the burst to be online",
        )
        run_jobs(instance, user, how)
        assert len(begun(cli)) == 1
