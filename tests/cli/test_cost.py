# SPDX-License-Identifier: MIT
"""`burst cost`, with a daemon and without."""

from __future__ import annotations

import re
from contextlib import closing

from burst.model.jobid import JobId, format_f58
from burst.model.lead import JobState
from tests.cli.cli_harness import CliHarness
from tests.contract.instance import SLEEP
from tests.embedded_instance import EmbeddedInstance
from tests.support.waiting import wait_until


def test_nothing_was_bought_yet(cli: CliHarness) -> None:
    assert cli.run("cost").lines == ["nothing is settled or reserved"]
    assert cli.run("cost", "--since", "2020-01-01").lines == [
        "nothing is settled or reserved since 2020-01-01"
    ]


def test_what_a_burst_costs_is_shown_with_a_daemon_and_without(
    cli: CliHarness,
) -> None:
    cli.write(
        prices={"local.local": 3.6},
        budget=[{"limit": 1000, "warn": 0.000001}],
    )
    with cli.daemon():
        asked = cli.run("request", "-N2").lines[0]
        (name,) = re.findall("burst-[0-9]-[0-9a-f]{6}", asked)
        cli.wait_for_state(name, "online")
        found = cli.run("cost", "--by", "provider", "--json").json
        (budget,) = found["budgets"]
        (row,) = found["rows"]
        assert row["name"] == "local"
        assert row["reserved"] == budget["reserved"] > 0
        lines = cli.run("cost", "--by", "provider").lines
        titles = [line.split()[0] for line in lines if line]
        assert titles[::2] == ["MONTH", "PROVIDER", "OFFER", "BUDGET"]
        assert "local/local  3.60   [prices]  0 of 0     0 of 0" in lines
        said = cli.run("status").lines
        assert any(line.startswith("budget everything, per month: ") for line in said)
        assert any(
            line.startswith("offer local/local: 9 of 10 bursts within ")
            and line.endswith(", 3.60 for a node and hour by [prices]")
            for line in said
        )
        cli.run("down", name)
        cli.wait_for_state(name, "inactive")
    offline = cli.run("cost", "--by", "user", "--json").json
    (row,) = offline["rows"]
    assert row["name"] == "-"
    assert row["settled"] > 0
    assert row["reserved"] == 0


def test_a_job_that_would_pass_a_budget_is_failed_where_its_rule_says_so(
    cli: CliHarness, instance: EmbeddedInstance
) -> None:
    """One that own nodes could run waits for them, by the same rule."""
    cli.write(
        prices={"local.local": 3.6},
        budget=[{"limit": 2}],
        policy=[{"name": "strict", "over_budget": "fail"}],
    )
    with cli.daemon():
        running = instance.submit(nodes=1, slots=2, command=SLEEP)
        wait_until(
            lambda: state_of(instance, running) is JobState.RUN, "the job to run"
        )
        small = instance.submit(nodes=1, slots=2)
        large = instance.submit(nodes=3)
        wait_until(
            lambda: state_of(instance, large) is JobState.INACTIVE, "the job to fail"
        )
        with closing(instance.lead()) as lead:
            events = lead.events(large)
        (note,) = (e.context["note"] for e in events if e.name == "exception")
        assert note.startswith(
            "rule strict fails jobs that would pass a budget: local/local: budget"
            " everything, per month: 2.00 of 2.00 is left, and "
        )
        told = cli.run("explain", format_f58(small)).stdout
        assert "budget everything, per month: 2.00 of 2.00 is left" in told
        assert state_of(instance, small) is JobState.SCHED
        instance.cancel(running)
        wait_until(
            lambda: state_of(instance, small) is JobState.INACTIVE, "it to run here"
        )
        assert instance.info(small).result == "completed"
    assert cli.run("cost").lines[0] == "nothing is settled or reserved"


def state_of(instance: EmbeddedInstance, job: JobId) -> JobState:
    return instance.info(job).state
