# SPDX-License-Identifier: MIT
"""What is asked of `flux batch`, with a program in the place of `flux`."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from burst.batch.batch_plan import LeadRequest, SlotRequest
from burst.batch.lead_directory import BatchJob, LeadDirectory
from burst.batch.submit import Submission, check_parent, find_flux, submit
from burst.errors import ConfigError

# It has four nodes, and submits whatever there is but `refuse.sh` and `bare.sh`.
FLUX = """\
#!/bin/sh
case "$*" in
  resource*) echo 4 ;;
  getattr*) echo local:///parent ;;
  *refuse.sh) echo no >&2; exit 1 ;;
  *bare.sh) echo "ERROR: Number of slots to allocate must be specified" >&2; exit 1 ;;
  batch*) echo "$FLUX_CLI_PLUGINPATH" >path; echo "$BURST_LEAD_BATCH" >told
          echo "$@" >asked; echo f1 ;;
esac
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "flux").write_text(FLUX)
    (tmp_path / "flux").chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.delenv("FLUX_CLI_PLUGINPATH", raising=False)
    return tmp_path


def submission(*words: str, nodes: int | None = 2) -> Submission:
    request = LeadRequest(slots=(SlotRequest(4),), flux=find_flux())
    return Submission(request=request, settings=b"# mine\n", nodes=nodes, words=words)


def test_flux_batch_is_told_which_program_its_tasks_are(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FLUX_CLI_PLUGINPATH", "/mine")
    asked = submission("-t1h", "script.sh", "--word")
    assert submit(here / "base", asked).stdout == "f1\n"
    (place,) = LeadDirectory.find(here / "base")
    assert (here / "asked").read_text() == "batch -N2 -t1h script.sh --word\n"
    told = json.loads((here / "told").read_text())
    assert told["command"][-2:] == ["batch-node", str(place.path)]
    assert told["path"] == "/mine"
    ours, mine = (here / "path").read_text().strip().split(":")
    assert (Path(ours) / "lead-batch.py").exists()
    assert mine == "/mine"


def test_what_is_known_of_the_job_is_kept(here: Path) -> None:
    asked = submission("script.sh", nodes=None)
    submit(here / "base", asked)
    (place,) = LeadDirectory.find(here / "base")
    assert place.job() == BatchJob("f1", "local:///parent")
    assert place.request() == asked.request
    assert place.given.read_bytes() == b"# mine\n"
    assert (here / "asked").read_text() == "batch script.sh\n"


def test_a_job_that_is_refused_leaves_nothing(here: Path) -> None:
    said = submit(here / "base", submission("refuse.sh"))
    assert (said.status, said.stderr) == (1, "no\n")
    assert LeadDirectory.find(here / "base") == []


def test_without_a_number_of_own_nodes_it_is_said_which_option_has_it(
    here: Path,
) -> None:
    said = submit(here / "base", submission("bare.sh", nodes=None))
    assert said.stderr.splitlines()[1:] == ["give -N, the number of own nodes"]


def test_a_dry_run_writes_nothing(here: Path) -> None:
    submit(here / "base", submission("script.sh"), dry_run=True)
    assert (here / "asked").read_text() == "batch -N2 --dry-run script.sh\n"
    assert not (here / "base").exists()


def test_a_flux_that_cannot_be_run_leaves_nothing(here: Path) -> None:
    (here / "flux").write_text(FLUX.replace("*refuse.sh) ", "*refuse.sh) kill -9 $$;"))
    said = submit(here / "base", submission("refuse.sh"))
    assert said.status
    assert LeadDirectory.find(here / "base") == []


@pytest.mark.parametrize(
    ("nodes", "told"),
    [
        (0, "-N0: a lead has at least one own node; use -N1"),
        (-1, "-N-1: a lead has at least one own node; use -N1"),
        (5, "-N5: this instance has 4 nodes; ask for at most -N4 of its own; --slots"),
    ],
)
def test_nodes_that_there_cannot_be_are_refused(nodes: int, told: str) -> None:
    with pytest.raises(ConfigError) as caught:
        check_parent(find_flux(), nodes)
    assert str(caught.value).startswith(told)


def test_as_many_as_there_are_may_be_asked_for() -> None:
    for nodes in (None, 1, 4):
        check_parent(find_flux(), nodes)


def test_without_flux_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(ConfigError, match="there is no flux on PATH; install"):
        find_flux()
