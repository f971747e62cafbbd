# SPDX-License-Identifier: MIT
"""`examples/mpi`: its commands as they are, in pods on real nodes, by Flux's PMI."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.e2e.tools import PACKAGES
from tests.kubelab.cluster import Cluster
from tests.nodes.isolated_site import IsolatedSite
from tests.nodes.mpilead import EXAMPLE, mpi_lead
from tests.nodes.waiting import wait_until
from tests.support.fluxlead import needs_flux
from tests.support.waiting import HANG_S

_PROGRAMS = ("mpicc.openmpi", "lmp")
pytestmark = [
    pytest.mark.nodes,
    needs_flux,
    *(
        pytest.mark.skipif(
            shutil.which(name) is None,
            reason=f"no {name} on PATH: apt-get install {' '.join(PACKAGES[name])}",
        )
        for name in _PROGRAMS
    ),
]
_LINE = re.compile(r"rank (\d) of (\d) on (\S+): sum (\d+), 0 of (\d+) wrong, ")
_NUMBERS = 4_000_000
"""32 MB of them: far more than Open MPI sends with the message itself."""


def commands() -> str:
    """Return the first block of commands in the README."""
    text = (EXAMPLE / "README.md").read_text()
    block = text.partition("\n    ")[2].partition("\n\n")[0]
    return block.replace("\n    ", "\n")


def shell(site: IsolatedSite, script: str, workdir: Path) -> str:
    """Return what a script prints that is run as a user of the lead runs it."""
    done = subprocess.run(
        ["/bin/sh", "-ec", script],
        cwd=workdir,
        env=site.lead.environment(),
        capture_output=True,
        text=True,
        timeout=2 * HANG_S,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout}{done.stderr}{site.look()}"
    assert "Read -1" not in done.stderr, done.stderr
    return done.stdout


def ranks_in(output: str) -> dict[int, str]:
    """Return the host of each rank that found nothing wrong."""
    found = [match.groups() for match in _LINE.finditer(output)]
    size = len(found)
    assert [each[1] for each in found] == [str(size)] * size
    assert {each[3] for each in found} == {str(size * (size + 1) // 2)}
    return {int(each[0]): each[2] for each in found}


def test_the_commands_of_the_readme_run_across_pods_and_in_one_and_much_goes_across(
    cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    # The example's files, where a user compiles; no pod sees it.
    workdir = Path(shutil.copytree(EXAMPLE, tmp_path / "mpi"))
    with mpi_lead(cluster, namespace, tmp_path) as site:
        check_readme(shell(site, commands(), workdir))
        check_more(site, workdir)
        wait_until(lambda: not site.objects("jobs"), site.look)


def check_readme(output: str) -> None:
    """Two ranks are in a pod each."""
    hosts = ranks_in(output)
    assert sorted(hosts) == [0, 1], output
    # A rank asked its own pod, whose name is not that of the host in Flux.
    assert {re.sub("-[0-9a-f]{6}-", "-", host) for host in hosts.values()} == {
        "burst-0-0",
        "burst-0-1",
    }
    assert re.search(r"Loop time of \S+ on 2 procs for 100 steps with 4000", output)


def check_more(site: IsolatedSite, workdir: Path) -> None:
    """Messages are large, and two of four ranks share a pod and its memory."""
    _, sums, melt = commands().replace("\\\n", "").split("\n")
    much = sums.replace("100000", str(_NUMBERS))
    without_cma = "--env=OMPI_MCA_btl_vader_single_copy_mechanism=none"
    assert without_cma in (EXAMPLE / "README.md").read_text()
    # Four ranks that poll share this machine's cores with all else: a few steps do.
    shared = melt.replace("-n2", f"-n4 {without_cma}") + " -v t 10"
    options = "-N2 --setattr=burstable --requires=burst --cwd=/tmp"
    size = f"flux run {options} df -m /dev/shm"
    output = shell(site, "\n".join([much, shared, size]), workdir)
    assert len(set(ranks_in(output).values())) == 2, output
    assert f"0 of {_NUMBERS} wrong" in output
    assert re.search(r"Loop time of \S+ on 4 procs for 10 steps", output), output
    assert len(re.findall(r"^tmpfs +1024 ", output, re.MULTILINE)) == 2, output
