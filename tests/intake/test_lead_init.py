# SPDX-License-Identifier: MIT
"""`burst lead init --mode`: a lead that is started as it says, and bursts at once."""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.cli_harness import burst
from tests.flux_instance import FLUX
from tests.support.fluxlead import broker_environment, short_directory
from tests.support.forked import run_program
from tests.support.marked import kill_all_with
from tests.support.ports import free_port
from tests.support.waiting import HANG_S, wait_until

pytestmark = pytest.mark.flux


class Started:
    """A lead that was started by typing what `burst lead init` printed."""

    def __init__(self, directory: Path, lines: list[str]) -> None:
        self.directory = directory
        typed = lines[lines.index("Start the lead; the daemon starts with it:") + 2]
        beside = str(Path(sys.executable).parent)
        plain = broker_environment()
        self._environment = {**plain, "PATH": f"{beside}:{plain['PATH']}"}
        (sourced,) = (line for line in lines if line.startswith("    . "))
        done = run_program(
            ["sh", "-c", f"{sourced}; env"], self._environment, directory
        )
        self._user = dict(line.split("=", 1) for line in done.stdout.splitlines())
        with (directory / "broker.log").open("wb") as log:
            self.broker = subprocess.Popen(
                shlex.split(typed),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=self._environment,
            )

    def flux(self, *words: str) -> subprocess.CompletedProcess[str]:
        environment = {**self._environment, **self._user}
        return run_program([FLUX, *words], environment, self.directory)

    def do(self, *words: str) -> str:
        done = self.flux(*words)
        assert done.returncode == 0, (words, done.stderr, self.logs())
        return done.stdout.strip()

    def logs(self) -> str:
        names = ("broker.log", "daemon.log")
        paths = [self.directory / name for name in names]
        return "\n".join(path.read_text() for path in paths if path.exists())

    def end(self) -> None:
        self.broker.terminate()
        try:
            self.broker.wait(HANG_S)
        finally:
            self.broker.kill()
            self.broker.wait()
            # The daemon looks for its lead for a while.
            kill_all_with(str(self.directory))


@pytest.fixture
def place() -> Iterator[Path]:
    with short_directory() as directory:
        yield directory / "lead"


# In mode hold a lead has none of what the others add; test_lead_batch.py starts one.
@pytest.mark.parametrize("mode", ["queue", "scheduler"])
def test_it_bursts_as_soon_as_it_is_up(place: Path, mode: str) -> None:
    own = ("--hosts", "lead-0", "--cores", "2", "--gpus", "0", "--mode", mode)
    slot = ("--slot", "burst-0-[0-1]:2", "--port", str(free_port()))
    said = burst("lead", "init", str(place), *own, *slot)
    files = {str(p) for p in place.rglob("*") if p.is_file()}
    assert {line.split()[1] for line in said.lines if line[:6] == "wrote "} == files
    lead = Started(place, said.lines)
    try:
        wait_until(
            lambda: (
                "\nSLOT " in (said := lead.flux("burst", "status").stdout)
                and "no daemon serves" not in said
            ),
            lambda: f"the daemon to serve: {lead.logs()}",
        )
        words = ("--burst", "--burst-provider=local", "--burst-wait=0", "-N2")
        job = lead.do("submit", *words, "flux", "getattr", "hostname")
        lead.do("run", "-n1", "true")
        lead.do("job", "wait-event", f"-t{HANG_S:.0f}", job, "clean")
        assert lead.do("jobs", "-ano{nodelist}", job) == "burst-0-[0-1]"
        assert job in lead.do("jobs", "-a", "-o", "burst")
        marked = lead.do("submit", "--setattr=burstable", "-N2", "true")
        lead.do("job", "wait-event", f"-t{HANG_S:.0f}", marked, "clean")
        result, nodes = lead.do("jobs", "-ano{result} {nodelist}", marked).split()
        assert (result, nodes if mode == "queue" else "") == (
            "COMPLETED",
            "burst-0-[0-1]" if mode == "queue" else "",
        )
        found = lead.flux("burst", "doctor", "-c", str(place / "burst.toml"))
        assert "\nwrong " not in found.stdout, found.stdout
        for part in ("sched-burst",) * (mode == "scheduler") + ("frob-burst.py",):
            assert part in found.stdout
        lead.do("burst", "down", lead.do("burst", "status", "-no", "{id}").split()[0])
        wait_until(
            lambda: lead.do("burst", "status", "-no", "{state}") in {"", "inactive"},
            "the burst to be gone",
        )
    finally:
        lead.end()


def test_an_instance_that_has_no_part_in_it_is_left_alone(place: Path) -> None:
    """What is installed for a lead changes no other instance that finds it."""
    burst("setup", "--dir", str(place), "--mode", "scheduler")
    rundir = place / "run"
    rundir.mkdir()
    names = {"FLUX_MODPROBE_PATH_APPEND": str(place / "modprobe")}
    done = subprocess.run(
        [FLUX, "start", "-s1", f"-Srundir={rundir}", "flux", "module", "list"],
        env={**broker_environment(), **names},
        capture_output=True,
        text=True,
        timeout=HANG_S,
        check=True,
    )
    assert "sched-simple" in done.stdout
    assert "sched-burst" not in done.stdout
