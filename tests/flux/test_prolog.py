# SPDX-License-Identifier: MIT
"""A site's prolog and housekeeping, as Flux runs them on lent nodes."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import Any

import pytest

from burst.model.jobid import JobId, format_f58
from burst.model.lead import JobState
from tests.cli.cli_harness import CliHarness, open_harness
from tests.contract.instance import rank_of
from tests.contract.watching import Watch
from tests.flux_instance import FluxInstance
from tests.flux_pool import FluxPool
from tests.support.waiting import wait_until

pytestmark = pytest.mark.flux

_ON_LENT = "test $(flux getattr rank) -lt 2 || {{ {}; }}"
LENT_ONLY = {"properties": ["burst"]}


def manager(**tables: Any) -> dict[str, Any]:
    """Return the lead's configuration, with the plugin that runs prologs."""
    return {"job-manager": {"plugins": [{"load": "perilog.so"}], **tables}}


def script(text: str) -> list[str]:
    """Return a command that does something on lent nodes only."""
    return ["sh", "-c", _ON_LENT.format(text)]


FAILS = {"per-rank": True, "command": script("echo no scratch >&2; exit 1")}
PASSES = {"per-rank": True, "command": ["true"]}
RANK = rank_of("burst-0-0")


@pytest.fixture
def tables() -> Mapping[str, Any]:
    return manager(prolog=FAILS)


@pytest.fixture
def instance(flux_pool: FluxPool, tables: Mapping[str, Any]) -> Iterator[FluxInstance]:
    with flux_pool.lend(manager()) as instance:
        instance.reload_config(tables)
        yield instance


@pytest.fixture
def cli(instance: FluxInstance) -> Iterator[CliHarness]:
    with open_harness(instance) as cli:
        yield cli


def submit(instance: FluxInstance, **fields: Any) -> JobId:
    """Return a job of two lent nodes."""
    return instance.submit(nodes=2, attributes={"constraints": LENT_ONLY}, **fields)


def ended(instance: FluxInstance, job: JobId) -> str:
    """Return how a job ended, once it has."""
    wait_until(
        lambda: instance.job_line("{state}", format_f58(job)) == "INACTIVE",
        lambda: f"{format_f58(job)} to end",
    )
    return instance.job_line("{result}", format_f58(job))


def states(cli: CliHarness) -> list[str]:
    return [row["state"] for row in cli.status()["bursts"]]


def no_drain_is_left(instance: FluxInstance) -> None:
    """Wait until Flux has no rank drained."""
    wait_until(
        lambda: not instance.rpc("resource.status", {})["drain"], "no drain to be left"
    )


def is_idle(cli: CliHarness, name: str) -> None:
    """Wait until a burst is idle."""
    wait_until(lambda: cli.row(name)["idle"] is not None, "it to be idle")


def takes_down(cli: CliHarness, name: str) -> None:
    """Take the one burst that lives down, which nothing holds up."""
    down = cli.run("down", name)
    assert down.status == 0, down.stderr
    assert "jobs still run" not in down.stdout + down.stderr
    wait_until(lambda: set(states(cli)) == {"inactive"}, "the burst to be gone")


def fail_prolog(instance: FluxInstance, cli: CliHarness, after: list[str]) -> None:
    """Have a job fail by the prolog; wait until the bursts are in these states."""
    job = submit(instance)
    assert instance.exception(job)[0] == "prolog"
    assert ended(instance, job) == "FAILED"
    wait_until(
        lambda: states(cli) == after,
        lambda: f"the burst to be gone: {cli.status()['bursts']}",
    )
    no_drain_is_left(instance)


def test_a_prolog_that_fails_costs_two_bursts_and_no_slot(
    instance: FluxInstance, cli: CliHarness
) -> None:
    with cli.daemon():
        fail_prolog(instance, cli, ["inactive"])
        fail_prolog(instance, cli, ["inactive"] * 2)
        last = cli.status()["bursts"][-1]
        assert last["result"] == "failed"
        assert "Flux drained ranks 2-3: prolog failed for job" in last["note"]
        assert "no scratch" in instance.flux("dmesg")
        third = submit(instance)
        why = ""

        def refused() -> bool:
            nonlocal why
            why = cli.run("explain", format_f58(third)).stdout
            return "could not run jobs" in why

        wait_until(refused, lambda: f"a third burst to be refused: {why}")
        assert "see flux dmesg on the lead" in why
        assert states(cli) == ["inactive"] * 2
        instance.reload_config(manager(prolog=PASSES))
        cli.run("enable", "local")
        assert ended(instance, third) == "COMPLETED"
        cli.run("down", cli.status()["bursts"][-1]["id"])
        no_drain_is_left(instance)


@pytest.mark.parametrize(
    "tables", [manager(housekeeping={"command": script("sleep inf")})]
)
def test_what_never_ends_after_a_job_is_named_and_housekeeping_is_ended(
    instance: FluxInstance, cli: CliHarness
) -> None:
    cli.write(deadlines={"housekeeping": "1h", "idle": "1h"})
    with cli.daemon():
        assert ended(instance, submit(instance)) == "COMPLETED"
        (row,) = cli.status()["bursts"]
        name = row["id"]
        wait_until(
            lambda: (
                "housekeeping has been running on ranks 2-3" in cli.row(name)["note"]
            ),
            lambda: f"housekeeping to be named: {cli.row(name)}",
        )
        cli.write(deadlines={"housekeeping": "5s", "idle": "1h"})
        assert cli.run("reload").status == 0
        is_idle(cli, name)
        takes_down(cli, name)
        told = cli.run("explain", name).stdout
        assert "longer than 5s; it is sent SIGTERM" in told
        # The slot is whole again: the next burst works, and is ended by force.
        assert ended(instance, submit(instance)) == "COMPLETED"
        name = cli.status()["bursts"][-1]["id"]
        is_idle(cli, name)
        assert cli.run("down", name, "--force").status == 0
        assert states(cli) == ["inactive"] * 2
        # An epilog is waited for until the same deadline.
        never = {"per-rank": True, "command": script("sleep inf")}
        instance.reload_config(manager(epilog=never))
        job = submit(instance)
        wait_until(lambda: "online" in states(cli), "a burst to be online")
        name = cli.status()["bursts"][-1]["id"]
        wait_until(
            lambda: "an epilog has been running on ranks 2-3" in cli.row(name)["note"],
            lambda: f"the epilog to be named: {cli.row(name)}",
        )
        is_idle(cli, name)
        told = cli.run("explain", format_f58(job)).stdout
        assert "job-manager.epilog" in told
        takes_down(cli, name)
        # Its epilog ended with its nodes, and its slot is free again.
        ended(instance, job)
        no_drain_is_left(instance)


STUBBORN = (
    "trap '' TERM; touch $(flux getattr rundir)/trapped; while :; do sleep 1; done"
)


@pytest.mark.parametrize(
    "tables", [manager(housekeeping={"command": script(STUBBORN)})]
)
def test_what_the_lead_shows_of_housekeeping_and_how_it_ends(
    instance: FluxInstance,
) -> None:
    instance.start_follower("burst-0-0")
    with closing(instance.lead()) as lead:
        watch = Watch(lead)
        watch.online(RANK)
        job = instance.submit(nodes=1, attributes={"constraints": LENT_ONLY})
        watch.state(job, JobState.INACTIVE)
        view = watch.until(lambda view: view.housekeeping.keys() == {RANK}, "there")
        assert view.allocated == {RANK}
        assert not view.in_use
        trapped = instance.directory / "burst-0-0" / "trapped"
        wait_until(trapped.exists, "it to be deaf to SIGTERM")
        lead.end_housekeeping(frozenset({RANK}), int(signal.SIGTERM))
        watch.settle()
        assert watch.lead.observe().housekeeping
        lead.end_housekeeping(frozenset(), int(signal.SIGKILL))
        lead.end_housekeeping(frozenset({RANK}), int(signal.SIGKILL))
        view = watch.until(lambda view: not view.housekeeping, "ended")
        assert not view.allocated
