# SPDX-License-Identifier: MIT
"""A job of real Flux runs on machines that examples/command/burst-ssh takes by ssh."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.cli_harness import open_harness
from tests.examples.machines import LEAD, MISSING, Machines, machines
from tests.flux_instance import FLUX, flux_instance
from tests.flux_instance import MISSING as FLUX_MISSING
from tests.support.waiting import wait_until

pytestmark = [
    pytest.mark.flux,
    pytest.mark.skipif(not FLUX, reason=FLUX_MISSING),
    pytest.mark.skipif(bool(MISSING), reason=f"there is no {', '.join(MISSING)}"),
]
PROGRAM = Path(__file__).resolve().parents[2] / "examples" / "command" / "burst-ssh"


@pytest.fixture
def two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Machines]:
    with machines(tmp_path, 2) as made:
        monkeypatch.setenv("PATH", f"{made.place}/bin", prepend=os.pathsep)
        yield made


def test_a_job_runs_on_machines_by_ssh_and_they_are_free_again_after_it(
    two: Machines, tmp_path: Path
) -> None:
    """And a machine that does not answer is left out."""
    taken = tmp_path / "taken"
    table = {
        "type": "command",
        "program": [sys.executable, str(PROGRAM)],
        "dir": str(tmp_path / "shared"),
        "flux": FLUX,
        "cores": 4,
        "gpus": 1,
        "max_nodes": 2,
        "arguments": {"machines": ["off", *two.names], "taken": str(taken)},
    }
    with flux_instance(address=LEAD) as lead, open_harness(lead) as cli:
        cli.write(providers={"ssh": table}, deadlines={"idle": "1s"})
        checked = cli.run("provider", "check", "ssh")
        assert checked.status == 0, checked.stdout
        with cli.daemon():
            where = ("readlink", "/proc/self/ns/net")
            job = lead.flux("submit", "--setattr=burstable", "-N2", "-n2", *where)
            wait_until(
                lambda: lead.job_line("{status}", job) == "COMPLETED",
                lambda: cli.run("explain", job).stdout,
            )
            networks = lead.flux("job", "attach", "--read-only", job).split()
            assert len(set(networks)) == 2, "each task ran on a machine of its own"
            [row] = cli.status()["bursts"]
            cli.wait_for_state(row["id"], "inactive")
            row = cli.row(row["id"])
            assert (row["result"], row["note"]) == ("completed", "idle for 1s")
        assert list(taken.iterdir()) == []
        assert list((tmp_path / "shared").glob("*.ssh")) == []
        assert list(Path("/tmp").glob(f"{row['id']}-*")) == []
