# SPDX-License-Identifier: MIT
"""Bursts on a lead that Fluxion schedules: what its policies change and deny.

What the fakes of tests/flux/test_scheduler.py and test_scheduler_status.py answer as
Fluxion is held to the real one here.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import uuid
from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import Any

import pytest

from burst.config import IntakeSettings
from burst.errors import ConfigError
from burst.model.resource_count import fluxion_reads
from burst.model.scheduler import FLUXION, Order, Scheduler
from tests.cli.cli_harness import burst, open_harness
from tests.flux.fluxion import needs_fluxion, scheduled, use_fluxion
from tests.flux.site import Site, open_site
from tests.flux_instance import FLUX, FluxInstance, flux_instance
from tests.flux_pool import FluxPool
from tests.intake.user_cli import FROBNICATOR, UserCli
from tests.support.fluxion import find_fluxion
from tests.support.fluxlead import broker_environment, short_directory
from tests.support.ports import free_port
from tests.support.waiting import HANG_S, wait_until

pytestmark = [pytest.mark.flux, needs_fluxion]

FROB = {"frobnicator": {"plugins": ["defaults", FROBNICATOR, "constraints"]}}
EASY = scheduled("easy", ingest=FROB)
FCFS = scheduled("fcfs", ingest=FROB)
LONODEX = scheduled("easy", "lonodex", ingest=FROB)


@pytest.fixture
def instance(flux_pool: FluxPool, extra: Mapping[str, Any]) -> Iterator[FluxInstance]:
    with flux_pool.lend(extra, followers=["lead-1"], prepare=use_fluxion) as instance:
        yield instance


@pytest.fixture
def site(
    flux_pool: FluxPool, extra: Mapping[str, Any], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Site]:
    with open_site(extra, flux_pool, use_fluxion) as site:
        site.offer_provider(monkeypatch)
        yield site


@pytest.fixture
def user(instance: FluxInstance) -> UserCli:
    return UserCli(instance)


# What the fakes of other tests answer.


_QUEUES = {"a": {}, "b": {"requires": ["local"]}}


@pytest.mark.parametrize(
    "extra", [scheduled("hybrid", "policy=low node_exclusive=true", queues=_QUEUES)]
)
def test_an_idle_fluxion_is_read(instance: FluxInstance) -> None:
    assert instance.rpc("sched.resource-status", {})["allocated"] is None
    with closing(instance.lead()) as lead:
        lead.listen(lambda: None)
        view = lead.observe()
    assert view.scheduler == Scheduler(
        name=FLUXION,
        order=Order.CONSERVATIVE,
        policies={"a": "hybrid", "b": "hybrid"},
        whole_nodes=True,
    )
    assert view.online == {0, 1}
    assert not view.allocated
    assert not view.unscheduled


_OURS = {name: {"requires": ["burst"]} for name in ("burst", "burst-ready")}


@pytest.mark.parametrize("extra", [scheduled("easy", queues={"a": {}})])
def test_queues_that_come_by_a_reload_are_denied_and_found(user: UserCli) -> None:
    instance = user.instance
    instance.reload_config({"queues": {"a": {}, **_OURS}})
    instance.flux("queue", "start", "--queue=burst-ready")
    job = user.submit("--queue=burst-ready", "-N1", "true")
    assert "queue (burst-ready) doesn't exist" in user.event(job, "exception")
    with closing(instance.lead()) as lead, pytest.raises(ConfigError, match="existed"):
        lead.check_scheduler(IntakeSettings(mode="queue"))


# The whole way.


@pytest.mark.parametrize("extra", [LONODEX])
def test_jobs_get_as_many_nodes_as_fluxion_gives_them(site: Site) -> None:
    """Four jobs of one core run at once, each on a node of its own.

    One that Flux gives a node before it is held displaces another, which gets a node
    of its own instead.
    """
    site.write(deadlines={"idle": "60s"})
    words = ("--requires=burst", "sleep", "inf")
    with site.cli.daemon():
        jobs = [site.submit("-n1", *words) for _ in range(4)]
        for job in jobs:
            site.wait_for_job(job, "RUN")

        def up() -> int:
            rows = site.bursts()
            return sum(row["nodes"] for row in rows if row["state"] == "online")

        # A job may run before the tick that sees its burst online.
        wait_until(lambda: up() == 4, lambda: f"four nodes: {site.bursts()}")
        ranks = {site.jobs("{ranks}", job) for job in jobs}
        assert len(ranks) == 4
        site.flux("cancel", *jobs)


STEPS = {"min": 1, "max": 8, "operator": "*", "operand": 2}
COUNTS = (1, "1", "1-2", "1+", "[1]", "1,2", {"min": 1}, {"min": 1, "max": 2}, STEPS)
VALIDATOR = {"args": ["--require-version=any"]}


@pytest.mark.parametrize("extra", [scheduled("easy", ingest={"validator": VALIDATOR})])
def test_fluxion_refuses_jobs_with_counts_that_it_cannot_read(user: UserCli) -> None:
    spec = user.spec("-N1", "true")
    (node,) = spec["resources"]
    for count in COUNTS:
        counted = {**spec, "version": 2, "resources": [{**node, "count": count}]}
        job = user.type("job", "submit", stdin=json.dumps(counted))
        assert job.status == 0, job.error
        user.ended(job)
        result = user.do("jobs", "-ano{result}", job)
        assert result == ("COMPLETED" if fluxion_reads(count) else "FAILED"), count


# Policies that deny.


@pytest.mark.parametrize("extra", [EASY, FCFS])
def test_a_busy_cluster_denies_no_ordinary_job(
    user: UserCli, extra: Mapping[str, Any]
) -> None:
    """Without a limit of their duration, those that run would never leave the nodes."""
    busy = user.submit("-N2", "-x", "sleep", "inf")
    user.event(busy, "start")
    waits = user.submit("-N1", "true")
    expected = {"properties": ["^burst"]} if extra is EASY else None
    assert user.constraint(waits) == expected
    behind = user.submit("-n1", "true")
    user.do("cancel", busy)
    for job in (waits, behind):
        user.ended(job)
        assert user.do("jobs", "-ano{result}", job) == "COMPLETED"


@pytest.mark.parametrize("extra", [FCFS])
def test_a_constraint_would_have_it_denied_by_fcfs(user: UserCli) -> None:
    """If Fluxion denies it no more, fcfs need not be refused."""
    busy = user.submit("-N2", "-x", "sleep", "inf")
    user.event(busy, "start")
    denied = user.submit("-N1", "--requires=local", "true")
    assert "unsatisfiable" in user.event(denied, "exception")


# How often it is asked.


class Trace:
    """What comes to a module of the lead, as `flux module trace` tells it."""

    def __init__(self, instance: FluxInstance, module: str) -> None:
        self._path = instance.directory / "trace"
        with self._path.open("wb") as output:
            self._process = subprocess.Popen(
                [FLUX, "module", "trace", "--type=request", module],
                env={**os.environ, "FLUX_URI": instance.uri},
                stdout=output,
            )
        self._instance = instance
        self.count()

    def count(self) -> int:
        """Return how many requests for allocations have come."""
        name = f"mark-{uuid.uuid4().hex}"
        lines: list[str] = []

        def told() -> bool:
            with contextlib.suppress(OSError):  # there is no such method
                self._instance.rpc(f"{FLUXION}.{name}", {})
            lines[:] = self._path.read_text().splitlines()
            return any(name in line for line in lines)

        wait_until(told, "the trace to tell of a request")
        return sum("resource-status" in line for line in lines)

    def close(self) -> None:
        self._process.terminate()
        self._process.wait()


@pytest.mark.parametrize("extra", [EASY])
def test_fluxion_is_not_asked_while_nothing_happens(instance: FluxInstance) -> None:
    with closing(instance.lead()) as lead, closing(Trace(instance, FLUXION)) as trace:
        lead.listen(lambda: None)
        for _ in range(50):
            lead.observe()
        assert trace.count() == 1
        lead.drain(frozenset({1}), "burst: a test")

        def drained_and_free() -> bool:
            view = lead.observe()
            return 1 in view.drained and 1 not in view.allocated

        wait_until(drained_and_free, "Fluxion to have heard of the drain")
        asked = trace.count()
        for _ in range(50):
            lead.observe()
        assert trace.count() == asked


# A graph in R.


def test_a_graph_in_r_without_the_lent_ranks_is_refused() -> None:
    """Fluxion goes by JGF in R, so that ranks added to R are none that it has."""
    with flux_instance(EASY) as instance:
        path = instance.directory / "R"
        whole = json.loads(path.read_text())
        own = [{"rank": "0-1", "children": {"core": "0-1"}}]
        lead = {"R_lite": own, "nodelist": ["lead-[0-1]"], "starttime": 0}
        text = json.dumps({"version": 1, "execution": {**lead, "expiration": 0}})
        path.write_text(json.dumps({**whole, "scheduling": graph_of(text)}))
        instance.stop()
        instance.start()
        use_fluxion(instance)
        with open_harness(instance) as cli:
            cli.write()
            with closing(instance.lead()) as known:
                with pytest.raises(ConfigError, match="does not know the ranks"):
                    known.check_scheduler(IntakeSettings(mode="hold"))
                known.listen(lambda: None)
                assert known.observe().unscheduled == frozenset(range(2, 10))
            said = cli.run("doctor").stdout
            assert (
                "ranks 2-5 of rank slot burst-0 are not leased: Fluxion (easy) does"
                in said
            )
            assert "the key `scheduling`" in said


def graph_of(resources: str) -> Any:
    """Return what `flux ion-R encode` adds to R."""
    fluxion = find_fluxion()
    assert fluxion is not None
    done = subprocess.run(
        [FLUX, "python", str(fluxion.encoder), "encode"],
        input=resources,
        env={**os.environ, "PYTHONPATH": str(fluxion.python)},
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)["scheduling"]


# Installed beside sched-burst.


def test_where_sched_burst_is_wanted_fluxion_is_kept_out() -> None:
    fluxion = find_fluxion()
    assert fluxion is not None
    with short_directory() as place:
        lead = place / "lead"
        own = ("--hosts", "lead-0", "--cores", "2", "--gpus", "0")
        slot = ("--slot", "burst-0-[0-1]:2", "--port", str(free_port()))
        made = burst("lead", "init", str(lead), *own, *slot, "--mode", "scheduler")
        assert made.status == 0, made
        rundir = place / "run"
        rundir.mkdir()
        paths = f"{lead / 'flux' / 'modprobe'}:{fluxion.modprobe}"
        done = subprocess.run(
            [
                *(FLUX, "broker", f"--config-path={lead / 'broker.toml'}"),
                *("-Shostname=lead-0", f"-Srundir={rundir}", "-Sbroker.quorum=1"),
                *(FLUX, "module", "list"),
            ],
            env={
                **broker_environment(),
                **fluxion.environment,
                "FLUX_MODPROBE_PATH_APPEND": paths,
            },
            capture_output=True,
            text=True,
            timeout=HANG_S,
            check=False,
        )
        assert not done.returncode, done.stderr
        assert "sched-burst" in done.stdout
        assert "fluxion" not in done.stdout
