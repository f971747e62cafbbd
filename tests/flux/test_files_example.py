# SPDX-License-Identifier: MIT
"""`examples/files`: input and output by `flux archive`, on real brokers of a burst."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.flux.site import Site
from tests.flux_instance import FLUX
from tests.support.waiting import HANG_S

pytestmark = pytest.mark.flux
EXAMPLE = Path(__file__).parents[2] / "examples" / "files" / "run-with-files"
# The hosts share this machine: Flux tells them apart.
COMMAND = """\
test -e deep/data.txt
flux getattr hostname > results/host
sort deep/data.txt > results/sorted.txt
test "$(flux getattr hostname)" != "$FAILS"
"""


@contextmanager
def running(
    site: Site, place: Path, fails: str = ""
) -> Iterator[subprocess.Popen[str]]:
    """Run the example as a user does, in a directory of its own."""
    source = place / "input" / "deep"
    source.mkdir(parents=True)
    (source / "data.txt").write_text("b\na\n")
    path = f"{Path(FLUX).parent}:{os.environ['PATH']}"
    variables = {"PATH": path, "FLUX_URI": site.cli.uri, "FAILS": fails}
    with subprocess.Popen(
        [EXAMPLE, "input", "output", "4", "sh", "-ec", COMMAND],
        cwd=place,
        env={**os.environ, **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def archives(site: Site) -> str:
    """Return what archives the lead's KVS has; empty without any."""
    return site.try_flux("kvs", "ls", "archive").stdout.strip()


def test_files_go_to_the_nodes_and_come_back(site: Site, tmp_path: Path) -> None:
    """The input is gone before the nodes are there, so none can have found it here."""
    site.close_gate("join")
    with site.cli.daemon(), running(site, tmp_path) as process:
        burst_id = site.wait_for_burst("join")
        assert archives(site).startswith("files-")
        shutil.rmtree(tmp_path / "input")
        site.open_gate("join")
        said, wrong = process.communicate(timeout=HANG_S)
        assert (process.returncode, said) == (0, "")
        assert "run-with-files: " not in wrong
        made = [tmp_path / "output" / str(rank) for rank in range(4)]
        hosts = {(path / "host").read_text().strip() for path in made}
        assert hosts == {f"burst-0-{number}" for number in range(4)}
        for path in made:
            assert (path / "sorted.txt").read_text() == "a\nb\n"
        assert archives(site) == ""
        site.cli.run("down", burst_id)


def test_what_fails_on_a_node_is_told_and_results_come_back(
    site: Site, tmp_path: Path
) -> None:
    with site.cli.daemon(), running(site, tmp_path, fails="burst-0-1") as process:
        process.communicate(timeout=HANG_S)
        assert process.returncode == 1
        for rank in range(4):
            assert (tmp_path / "output" / str(rank) / "host").exists()


def test_a_run_that_is_interrupted_leaves_no_job_and_no_archive(
    site: Site, tmp_path: Path
) -> None:
    site.close_gate("join")
    with site.cli.daemon(), running(site, tmp_path) as process:
        site.wait_for_burst("join")
        process.terminate()
        assert process.wait(timeout=HANG_S) == 130
        assert archives(site) == ""
        job = site.flux("jobs", "-a", "-no", "{id}").strip()
        site.wait_for_job(job, "CANCELED")
        site.open_gate("join")
