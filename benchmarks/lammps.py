# SPDX-License-Identifier: MIT
"""LAMMPS across two pods of a burst, against the same two pods made by hand.

Ours: a job is submitted to a lead outside the cluster; the daemon makes a burst of two
pods for it by the settings of `examples/mpi`, and takes it down again.
By hand: a Flux instance in two such pods, with all files ready, made for one job by
four objects, as the Flux Operator does; nothing is outside the cluster.

Both have the same programs, mounts, shared memory and nodes, and a rank in each pod.
Rounds take turns in one run, each with new pods. The wall time is that of the job in
Flux, from its event `start` to `finish`: PMI, MPI_Init, LAMMPS, its output. The loop
time is what LAMMPS itself reports for its steps. The time before `start`, which
includes making pods and brokers, is measured separately.

The input is a Lennard-Jones melt of 32,000 atoms (`examples/mpi/in.melt`), because
Debian's LAMMPS has no ReaxFF. Ranks poll: other work on the machine's cores makes all
times longer and more varied. Two nodes on one machine say nothing about a real network.

It uses real Flux and a Kubernetes of two kubelets, which is made for the run: it needs
root, Debian, Go, `flux` and `lmp`.

    python benchmarks/lammps.py [--json] [--rounds 10] [--steps 200]
"""

from __future__ import annotations

import re
import shlex
import shutil
import statistics
import subprocess
import tempfile
import time
import tomllib
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path

import msgspec

from benchmarks.handpods import HandPods
from benchmarks.real_nodes import given_cluster, main_on_nodes
from benchmarks.table import Goal, Measure, Skipped
from burst.kits.kube import Cluster, Kubeconfig
from tests.e2e.tools import PACKAGES
from tests.kubernetes.access import new_namespace
from tests.nodes.isolated_site import IsolatedSite
from tests.nodes.mpilead import CORES, EXAMPLE, PODS, mpi_lead

_DEADLINE_S = 300.0
_TIMES = "{t_run:f} {t_cleanup:f}"


class Round(msgspec.Struct, frozen=True):
    """Seconds of one job."""

    start: float
    """From the request until the job started its tasks."""
    wall: float
    loop: float


def measure(rounds: int, steps: int) -> Sequence[Measure]:
    """Run rounds of both in turns, after one of each as a warm-up."""
    if not shutil.which("lmp"):
        install = f"apt-get install {' '.join(PACKAGES['lmp'])}"
        raise Skipped(f"no lmp on PATH: {install}")
    options = _options(steps)
    with (
        given_cluster() as given,
        tempfile.TemporaryDirectory() as place,
        new_namespace(given, "burst") as near,
        new_namespace(given, "hand") as far,
        closing(Cluster(Kubeconfig(str(given.kubeconfig), ""))) as cluster,
        mpi_lead(given, near, Path(place)) as lead,
    ):
        hand = HandPods(cluster, given, far, _shm())
        taken = [
            (_burst(lead, options), _by_hand(hand, options)) for _ in range(1 + rounds)
        ]
    bursts, hands = zip(*taken[1:], strict=True)
    return _measures({"burst": bursts, "by hand": hands})


def _shm() -> str:
    settings = tomllib.loads((EXAMPLE / "burst.toml").read_text())
    (volume,) = settings["providers"]["far"]["pod"]["spec"]["volumes"]
    return str(volume["emptyDir"]["sizeLimit"])


def _options(steps: int) -> list[str]:
    """Return the options of `flux run`, and the command.

    A rank has all cores of its pod: both pods have the same cores here, so with one
    core each, both ranks would be bound to the first core.
    """
    where = [f"-N{PODS}", f"-n{PODS}", f"-c{CORES}", "--cwd=/tmp"]
    file = f"--add-file=in.melt={EXAMPLE / 'in.melt'}"
    lammps = ["lmp", "-in", "{{tmpdir}}/in.melt", "-log", "none", "-v", "t", str(steps)]
    return [*where, file, *lammps]


def _burst(site: IsolatedSite, options: Sequence[str]) -> Round:
    """Run the job on a burst, and wait until nothing of the burst is left."""
    began = time.time()
    wanted = ("--setattr=burstable", "--requires=burst")
    job = _flux(site, "submit", *wanted, *options).strip()
    output = _flux(site, "job", "attach", "--read-only", job)
    times = _flux(site, "jobs", "-no", _TIMES, job)
    ends = time.monotonic() + _DEADLINE_S
    while site.objects("jobs") or len(site.lead.online()) > 1:
        if time.monotonic() > ends:
            raise TimeoutError(f"the burst is still there: {site.look()}")
        time.sleep(0.1)
    return _round(began, times, output)


def _flux(site: IsolatedSite, *words: str) -> str:
    done = subprocess.run(
        ["flux", *words],
        env=site.lead.environment(),
        capture_output=True,
        text=True,
        timeout=_DEADLINE_S,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"flux {words}: {done.stderr}{site.look()}")
    return done.stdout


def _by_hand(hand: HandPods, options: Sequence[str]) -> Round:
    command = shlex.join(["flux", "run", *options])
    times = shlex.join(["flux", "jobs", "-a", "-no", _TIMES])
    began, output = hand.round(f"{command} && {times}")
    return _round(began, output.splitlines()[-1], output)


def _round(began: float, times: str, output: str) -> Round:
    started, finished = map(float, times.split())
    found = re.search(rf"^Loop time of (\S+) on {PODS} procs", output, re.MULTILINE)
    if not found:
        raise RuntimeError(f"LAMMPS told no loop time: {output}")
    return Round(started - began, finished - started, float(found[1]))


def _measures(rows: Mapping[str, Sequence[Round]]) -> list[Measure]:
    found = [
        Measure(f"wall time, {who}, round {number}", each.wall, "s")
        for who, row in rows.items()
        for number, each in enumerate(row, 1)
    ]
    whats = {"wall": "wall time", "loop": "loop time", "start": "request to start"}
    for field, what in whats.items():
        means = []
        for who, row in rows.items():
            values = [getattr(each, field) for each in row]
            means.append(statistics.mean(values))
            found += [
                Measure(f"{what}, {who}, mean", means[-1], "s"),
                Measure(f"{what}, {who}, sd", statistics.stdev(values), "s"),
            ]
        # The goals for the start of a burst are in `minicluster` and `path`.
        goal = None if field == "start" else Goal("<=", 1.1)
        ratio = means[0] / means[1]
        found.append(Measure(f"{what}, burst against by hand", ratio, "x", goal))
    return found


if __name__ == "__main__":
    main_on_nodes(
        "benchmarks.lammps",
        __doc__,
        measure,
        ["flux", "lmp"],
        rounds=(10, "of each"),
        steps=(200, "of LAMMPS in each"),
    )
