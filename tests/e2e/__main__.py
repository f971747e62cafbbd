# SPDX-License-Identifier: MIT
"""Tests that need more than Python: `python -m tests.e2e [STAGE ...] [OPTION ...]`.

A stage is a mark (tests/stages.py) and the world its tests run in. What is missing is
installed where it can be. What cannot be had is said and counted, and is
a failure where CI is set, but for Flux and Fluxion, which no package registry has.
"""

from __future__ import annotations

import itertools
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path
from xml.etree import ElementTree

import msgspec

from tests.e2e.programs import MONTH, MONTH_JOBS, OPERATOR
from tests.e2e.shellimage import write_images, write_next, write_view
from tests.e2e.tools import ROOT, Machine, say
from tests.kubelab import build
from tests.kubelab.kind import baseimage, lab
from tests.kubernetes.access import CRD, WANTED, shared_cluster
from tests.stages import files_of, of_stage, workers

# pytest's, for arguments that it cannot use and those that choose no test.
_WRONG_WORDS, _NO_TESTS = 4, 5


class Stage(msgspec.Struct, frozen=True):
    """The tests of one mark, and the world that they are run in."""

    mark: str
    run: Callable[[list[str]], int]
    """Run a command in it; return its exit status."""
    needs: tuple[str, ...] = ()
    """Programs without which none of them can run."""
    wants: tuple[str, ...] = ()
    """Programs without which some of them are skipped, as each says itself."""
    workers: int = 3
    """How many run at a time; those that wait for pods most of the time are more."""
    hosts: bool = False
    """Whether it starts hosts, each with a systemd, kubelet or containerd: of these
    stages one runs at a time where Linux lets a user have few inotify instances. They
    go before others: kubeadm waits four minutes for its control plane, not longer."""


class Outcome(msgspec.Struct, frozen=True):
    """How a stage went."""

    text: str
    failed: bool = False
    chosen: bool = True
    """Whether pytest's options chose any of its tests."""


def _run_here(environment: dict[str, str]) -> Callable[[list[str]], int]:
    def run(command: list[str]) -> int:
        given = {**environment, **os.environ}
        return subprocess.run(command, env=given, check=False).returncode

    return run


def _run_with_kubernetes(command: list[str]) -> int:
    with shared_cluster() as found:
        return _run_here({WANTED: "1", **found})(command)


def _run_on_nodes(command: list[str]) -> int:
    options = ["--crd", os.environ[CRD]] if CRD in os.environ else []
    with tempfile.TemporaryDirectory() as place:
        images = [write_next(Path(place)), *write_view(Path(place))]
        if OPERATOR in os.environ:
            images += write_images(Path(place))
        for image in images:
            options += ["--image", str(image)]
        # A process of its own: the lab handles signals, and dies with its main thread.
        build.ensure(nodes=True)
        lab_of_nodes = [sys.executable, "-m", "tests.kubelab.nodes", "run"]
        run = subprocess.run([*lab_of_nodes, *options, "--", *command], check=False)
        return run.returncode


def _run_with_docker(command: list[str]) -> int:
    # There is no network in the lab.
    os.environ[baseimage.WHEELS] = str(baseimage.fetch())
    return int(lab.run(command))


# Stages that run at the same time print whole lines.
_BY_LINES = ("bash", "-o", "pipefail", "-c", '"$@" 2>&1 | sed -u ""', "sh")
_NICE = ("nice", "-n", "10")
_MONTH = {MONTH: str(MONTH_JOBS)}
_LAB = ("go", "openssl", "setpriv")
_NODES = (ROOT, "apt-get", *_LAB, "cc", "ip", "nsenter", "unshare")
_SSH = (ROOT, "ip", "ssh", "sshd")
_PROGRAMS = (*_SSH, "chromium", "prometheus", "promtool")
_MPI = ("mpicc.openmpi", "lmp")
_DOCKER = ("docker", "dockerd", "iptables", "debootstrap", "tar")
_USERS = (ROOT, "flux", "munged", "nsenter", "setpriv", "unshare")
_SLURM = ("slurmctld", "slurmd", "munged", "sbatch")
_SITE = (*_USERS, "ip", "systemctl", "loginctl", "dbus-user-session", "pam_systemd")
# In the order in which they begin: the longest first.
STAGES = (
    Stage("site", _run_here({}), _SITE, ("fluxion",), hosts=True),
    Stage("flux", _run_here({}), ("flux",), _SSH, workers=4),
    Stage("kind", _run_with_docker, (*_NODES, *_DOCKER), ("flux",), hosts=True),
    Stage("slurm", _run_here({}), _SLURM, ("flux",), workers=2),
    Stage("nodes", _run_on_nodes, _NODES, ("flux", *_MPI), 4, hosts=True),
    Stage("kubernetes", _run_with_kubernetes, _LAB, workers=5),
    Stage("programs", _run_here({}), wants=_PROGRAMS),
    Stage("machine", _run_here({})),
    Stage("multiuser", _run_here({}), _USERS),
    Stage("month", _run_here(_MONTH), ("flux",)),
)
_AT_A_TIME = 2
"""Stages. They keep two processors busy; with more, each test takes longer, and nothing
is done sooner."""


def main(words: Sequence[str], machine: Machine, stages: Sequence[Stage]) -> int:
    """Run the stages that are named, or all; return 0 if nothing failed.

    Stages come first among the words; the rest are pytest's options.
    """
    # Where this is set, each of the thousands of processes would compile all anew.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    marks = {stage.mark for stage in stages}
    named = list(itertools.takewhile(marks.__contains__, words))
    options = words[len(named) :]
    several = len(named) != 1
    if wrong := _neither_option_nor_file(options):
        say(f"there is no stage {wrong}; there are {', '.join(sorted(marks))}")
        return _WRONG_WORDS
    chosen = [stage for stage in stages if stage.mark in (named or marks)]
    machine.install(name for stage in chosen for name in (*stage.needs, *stage.wants))

    many_hosts = sum(stage.hosts for stage in chosen) > 1
    one_at_a_time = many_hosts and not machine.allow_hosts()
    hosts = threading.Lock() if one_at_a_time else nullcontext()

    def timed(stage: Stage) -> Outcome:
        with hosts if stage.hosts else nullcontext():
            began = time.monotonic()
            before = (*_BY_LINES, *(() if stage.hosts else _NICE)) if several else ()
            outcome = _try(stage, machine, before, options)
            took = f"{time.monotonic() - began:.0f} s"
        line = f"{stage.mark:10}  {took:>6}  {outcome.text}"
        say(line)
        return msgspec.structs.replace(outcome, text=line)

    with ThreadPoolExecutor(_AT_A_TIME) as threads:
        outcomes = list(threads.map(timed, chosen))
    lines = (outcome.text for outcome in outcomes)
    sys.stdout.write("\n".join(["", *lines, ""]))
    if not any(outcome.chosen for outcome in outcomes):
        return _NO_TESTS
    return int(any(outcome.failed for outcome in outcomes))


def _neither_option_nor_file(options: Sequence[str]) -> str:
    """Return what comes after the stages if pytest could make nothing of it.

    With pytest-xdist it takes a file that is not there for one without tests.
    """
    first = next(iter(options), "-")
    there = first.startswith("-") or Path(first.split("::")[0]).exists()
    return "" if there else first


def _try(
    stage: Stage, machine: Machine, before: Sequence[str], options: Sequence[str]
) -> Outcome:
    lacking = machine.lacks(stage.needs)
    if lacking:
        fails = _in_ci() and bool(machine.lacks(_installable(stage.needs)))
        return _skipped(stage, "; ".join(lacking), options, fails)
    # Pods come and go in seconds, but a machine may have other work.
    command = [sys.executable, "-m", "pytest", "-q", "-rfEs"]
    command += ["-m", of_stage(stage.mark), *workers(stage.workers)]
    if not any(Path(word.split("::")[0]).exists() for word in options):
        command += files_of(stage.mark)
    with tempfile.TemporaryDirectory() as place:
        report = Path(place) / "report.xml"
        try:
            status = stage.run([*before, *command, f"--junitxml={report}", *options])
        except build.Unavailable as missing:
            return _skipped(stage, str(missing), options, _in_ci())
        except Exception as error:  # noqa: BLE001 - the other stages go on
            traceback.print_exc()
            why = traceback.format_exception_only(error)[0].splitlines()[0]
            return Outcome(f"FAILED: what it runs in could not be made: {why}", True)
        ran, skips = _counts(report)
    if not ran and skips and not status:
        return Outcome(f"SKIPPED, all {skips.total()} tests, as each says above")
    if status == _NO_TESTS and not options:
        return Outcome("FAILED: no test has this mark", True)
    lacking = machine.lacks(stage.wants)
    wants = [f"{count} for {why}" for why, count in skips.items() if _is_want(why)]
    fails = _in_ci() and bool(machine.lacks(_installable(stage.wants)))
    return _judge(status, [*lacking, *wants], fails)


def _counts(report: Path) -> tuple[int, Counter[str]]:
    """Return how many tests ran, and why others were skipped, by pytest's JUnit file.

    None of either where there is no whole such file, as where pytest was killed.
    """
    try:
        cases = [*ElementTree.parse(report).iter("testcase")]
    except (FileNotFoundError, ElementTree.ParseError):
        return 0, Counter()
    skips = [skip.get("message", "") for case in cases for skip in case.iter("skipped")]
    return len(cases) - len(skips), Counter(skips)


def _is_want(why: str) -> bool:
    """Whether a test was skipped for what the machine lacks, as it says of it."""
    return why.startswith("want of")


def _installable(programs: Sequence[str]) -> list[str]:
    return [name for name in programs if name not in {"flux", "fluxion"}]


def _judge(status: int, wanting: Sequence[str], fails: bool) -> Outcome:
    if status == _NO_TESTS:
        return Outcome("no test of this mark was chosen", chosen=False)
    if status:
        return Outcome(f"FAILED with status {status}", True)
    if wanting:
        some = f"passed, but some were SKIPPED: {'; '.join(wanting)}"
        return Outcome(some, fails)
    return Outcome("passed")


def _skipped(stage: Stage, why: str, options: Sequence[str], fails: bool) -> Outcome:
    collect = [sys.executable, "-m", "pytest", "--collect-only", "-q"]
    collect += ["-m", of_stage(stage.mark), *options]
    said = subprocess.run(collect, capture_output=True, text=True, check=False).stdout
    found = re.search(r"^(\d+)(/\d+)? tests? collected", said, re.MULTILINE)
    count = f"{found[1]} tests" if found else "no test"
    return Outcome(f"SKIPPED, {count}: {why}", fails)


def _in_ci() -> bool:
    """Where CI is set, what could have been installed and is not there is a failure."""
    return bool(os.environ.get("CI"))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], Machine(), STAGES))
