# SPDX-License-Identifier: MIT
"""A burst for one guest is usable by that guest alone, in each intake mode."""

from __future__ import annotations

import json
import math
import subprocess
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import tomli_w

from burst.model.ranks import parse_idset
from tests.intake.modes import CONFINING
from tests.multiuser.apart import BY_USERS, serve
from tests.multiuser.lab import UIDS
from tests.multiuser.system_instance import SystemInstance
from tests.support.waiting import wait_until

pytestmark = pytest.mark.multiuser

# What only burst's daemon writes, as a guest may write it.
FORGED = {"and": [{"or": [{"properties": ["^burst"]}, {"ranks": ["2-9"]}]}]}


MODES = pytest.mark.parametrize(
    ("extra", "mode"), [(tables, mode) for mode, tables in CONFINING.items()]
)


class Guest:
    """What one guest types; it may be refused."""

    def __init__(self, system: SystemInstance, name: str) -> None:
        self.system, self.name = system, name
        self.jobs: list[str] = []
        self.refused: list[str] = []

    def type(self, *words: str, given: str = "") -> subprocess.CompletedProcess[str]:
        env = {"FLUX_URI": self.system.uri, **BY_USERS}
        return self.system.lab.try_run(self.name, "flux", *words, env=env, given=given)

    def submit(self, *words: str, by: str = "submit", given: str = "") -> str:
        """Submit a job; return its id, empty if it is refused."""
        done = self.type(*by.split(), *words, given=given)
        if done.returncode:
            self.refused.append(done.stderr)
            return ""
        job = done.stdout.split()[0]
        self.jobs.append(job)
        return job

    def alloc(self, *words: str) -> None:
        """Submit an instance of this guest's on other nodes."""
        spec = self.type("alloc", "--bg", "--dry-run", *words).stdout
        self.submit(by="job submit", given=spec)

    def forge(self, constraint: Any, *words: str) -> str:
        """Submit a jobspec with a constraint that no option makes."""
        spec = json.loads(self.type("submit", "--dry-run", *words, "true").stdout)
        spec["attributes"]["system"]["constraints"] = constraint
        return self.submit(by="job submit", given=json.dumps(spec))

    def ended(self) -> list[str]:
        """Return the jobs of this guest that have run to their end."""
        done = self.type("jobs", "-no{id.f58}", "--filter=completed")
        return done.stdout.split()

    @contextmanager
    def pour(self) -> Iterator[None]:
        """Submit jobs of one core all the while, such as fit on any free core."""
        words = ("-n1", "--setattr=burstable", "--requires=burst", "--dry-run", "true")
        spec = self.type("submit", *words).stdout
        env = {"FLUX_URI": self.system.uri}
        pour = ("flux", "python", "-c", POUR, spec)
        pouring = self.system.lab.start(self.name, *pour, env=env)
        try:
            yield
        finally:
            pouring.kill()
            pouring.wait()


def try_all(bob: Guest) -> None:
    """Try each way to the nodes of another's burst; each job has one core."""
    on_lent = ("--requires=burst", "--requires=host:burst-0-0", "--requires=rank:2-5")
    for burst in ((), ("--setattr=burstable",), ("--burst",)):
        for constraint in ((), *((each,) for each in on_lent)):
            bob.submit("-n1", *burst, *constraint, "true")
        bob.forge(FORGED, "-n1", *burst)
        bob.forge({"or": [{"ranks": ["2-9"]}, {"properties": ["burst"]}]}, *burst)
    bob.submit("-n1", "--burst", "--burst-tag=night", "true")
    bob.alloc("-n1", "--requires=burst")
    bob.alloc("-n1", "--burst")
    for queue in ("burst", "burst-ready"):
        bob.submit("-n1", f"--queue={queue}", "true")
        bob.submit("-n1", f"--queue={queue}", "--setattr=burstable", "true")
    held = bob.submit("-n1", "--setattr=burstable", "--urgency=hold", "true")
    for job in (held, *bob.jobs[:1], *bob.jobs[-2:]):
        bob.type("update", job, "queue=burst-ready")
        bob.type("update", job, "attributes.system.constraints={}")
        bob.type("job", "urgency", job, "16")
        bob.type("job", "urgency", job, "31")


POUR = """
import collections, sys, time, flux, flux.job
handle, waiting = flux.Flux(), collections.deque()
while True:
    waiting.append(flux.job.submit(handle, sys.argv[1]))
    if len(waiting) > 50:
        flux.job.cancel_async(handle, waiting.popleft()).wait_for(60)
    time.sleep(0.1)
"""


FROM_A_FOLLOWER = """
import signal, flux, flux.job
handle = flux.Flux()
on_lent = ({"properties": ["burst"]}, {"ranks": ["2-5"]})
for burst, constraint in ((0, {}), (1, {}), *((0, each) for each in on_lent)):
    for held in (False, True):
        spec = flux.job.JobspecV1.from_command(["true"])
        spec.setattr("job.name", "inner")
        if burst or held:
            spec.setattr("burstable", 1)
        if constraint:
            spec.setattr("constraints", constraint)
        try:
            flux.job.submit(handle, spec, urgency=0 if held else 16)
            print("taken", flush=True)
        except OSError as error:
            print("refused", error, flush=True)
signal.pause()
"""


# A request reaches the broker of any rank, also where its sender cannot log in.
BY_ANOTHER_BROKER = """
import sys, flux
from flux.security import SecurityContext
signed = SecurityContext().sign_wrap(sys.argv[2])
payload = {"J": signed.decode(), "urgency": 16, "flags": 0}
flux.Flux().rpc("job-ingest.submit", payload, nodeid=int(sys.argv[1])).get()
"""


def ranks_of(system: SystemInstance, job: str) -> str:
    """Return on which ranks a job ran or runs; empty if it never did."""
    (line,) = system.jobs("{ranks}", job)
    return line


def strays(system: SystemInstance) -> list[str]:
    """Return bob's jobs that began on nodes of the first burst, which is ann's."""
    row = system.bursts()[0]
    states = {each["state"]: each["at"] for each in row["states"]}
    over = states.get("inactive", math.inf)
    its = parse_idset(row["ranks"])
    found = []
    lines = system.jobs("{userid} {t_run} {id.f58} {ranks}")
    bobs = [line for line in lines if line.startswith(f"{UIDS['bob']} ")]
    assert bobs, lines
    for line in bobs:
        _, began, _, *ranks = line.split()
        on = parse_idset(ranks[0].strip("[]")) if ranks else frozenset()
        if on & its and float(began) < over:
            found.append(line)
    return found


@MODES
def test_a_guest_gets_no_nodes_of_another_guests_burst(
    system: SystemInstance, mode: str
) -> None:
    ann, bob = Guest(system, "ann"), Guest(system, "bob")
    one = {"max_bursts": 1}
    with serve(system, mode, limits=one, deadlines={"idle": "4s"}) as daemon:
        job = ann.submit("-N3", "-n3", "--burst", "sleep", "inf")
        assert job, ann.refused

        def told() -> str:
            found = ranks_of(system, job), strays(system)
            events = ann.type("job", "eventlog", job).stdout[-900:]
            return f"{found} {events} {daemon.log()[-1500:]}"

        wait_until(system.bursts, told)
        # From before its followers join until they have gone.
        with bob.pour():
            wait_until(lambda: ranks_of(system, job) == "[2-4]", told)
            try_all(bob)
            assert any("--burst-tag: only the owner" in each for each in bob.refused)
            plain = bob.submit("-n1", "--urgency=16", "true")
            wait_until(lambda: plain in bob.ended(), told)
            assert not strays(system), told()
            assert ranks_of(system, job) == "[2-4]"
            assert ann.type("cancel", job).returncode == 0
            wait_until(lambda: system.bursts()[0]["state"] == "inactive", told)
            assert not strays(system), told()
        bob.type("cancel", "--all")
        own = ("-N3", "-n3", "--burst", "--requires=burst")
        his = bob.submit(*own, "flux", "getattr", "hostname")
        assert his, bob.refused[-1]
        done = system.wait_for_end("bob", his)
        assert done.returncode == 0, (done.stderr, daemon.log())
        assert len(done.stdout.split()) == 3
        assert all(host.startswith("burst-") for host in done.stdout.split())


@pytest.mark.parametrize("extra", [CONFINING["hold"]])
def test_nor_by_what_a_job_of_his_submits_from_his_own_burst(
    system: SystemInstance,
) -> None:
    """There a broker of its own takes the jobs; for mode scheduler see below."""
    ann, bob = Guest(system, "ann"), Guest(system, "bob")
    with serve(system, "hold") as daemon:
        hers = ann.submit("-N3", "-n3", "--burst", "sleep", "inf")
        wait_until(lambda: ranks_of(system, hers) == "[2-4]", daemon.log)
        from_there = ("flux", "python", "-c", FROM_A_FOLLOWER)
        his = bob.submit("-N3", "-n3", "--burst", *from_there)
        wait_until(lambda: ranks_of(system, his) == "[6-8]", daemon.log)

        def inner() -> list[str]:
            lines = system.jobs("{name} {state} {id.f58} {ranks}")
            return [line for line in lines if line.startswith("inner")]

        def taken() -> int:
            said = bob.type("job", "eventlog", "-pguest.output", his).stdout
            return said.count("taken") + said.count("refused")

        wait_until(lambda: taken() >= 3 * 8, lambda: f"{inner()} {daemon.log()}")
        # All that the scheduler can start of them has started by then.
        plain = bob.submit("-n1", "--urgency=16", "true")
        wait_until(lambda: plain in bob.ended(), daemon.log)
        assert inner()
        assert not strays(system), inner()


@pytest.mark.parametrize("extra", [CONFINING["scheduler"]])
def test_nor_by_an_own_node_that_lacks_the_frobnicator(system: SystemInstance) -> None:
    """Its broker takes jobs by its own file; in mode scheduler that does not matter."""
    ann, bob = Guest(system, "ann"), Guest(system, "bob")
    config = tomllib.loads((system.directory / "broker.toml").read_text())
    del config["ingest"]
    rundir = system.make_directory("own", 0o755)
    (system.directory / "own.toml").write_text(tomli_w.dumps(config))
    system.start_broker("lead-1", rundir, config="own.toml")
    listed = ("resource", "list", "-s", "free", "-no{nnodes}")
    wait_until(lambda: system.flux("bob", *listed) == "2", lambda: system.log("lead-1"))
    with serve(system, "scheduler") as daemon:
        hers = ann.submit("-N3", "-n3", "--burst", "sleep", "inf")
        wait_until(lambda: ranks_of(system, hers) == "[2-4]", daemon.log)
        words = ("submit", "--dry-run", "--job-name=around", "-n1", "--requires=burst")
        spec = bob.type(*words, "true").stdout
        done = bob.type("python", "-c", BY_ANOTHER_BROKER, "1", spec)
        assert done.returncode == 0, done.stderr
        plain = bob.submit("-n1", "true")
        wait_until(lambda: plain in bob.ended(), daemon.log)
        jobs = system.jobs("{name} {result} on{ranks}")
        assert "around FAILED on" in jobs, jobs
