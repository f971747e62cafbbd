# SPDX-License-Identifier: MIT
"""The scripts that start a lead, and that shells read, as sh runs them."""

import subprocess
from pathlib import Path

import pytest

from burst.demo.story import read_instructions
from burst.lead_setup.start_files import write_start_files
from tests.support.commands import run_captured
from tests.support.fluxlead import flux_lead, needs_flux

URI = "local:///nowhere/local"


def sh(*words: object) -> subprocess.CompletedProcess[str]:
    return run_captured([str(word) for word in words])


def test_an_only_host_is_started_whatever_it_is_called(tmp_path: Path) -> None:
    found = write_start_files(
        tmp_path, ["lead-0"], [["echo", "a  b", "$HOME"]], URI, {}
    )
    assert sh(found.start).stdout == "a  b $HOME\n"
    assert found.start.stat().st_mode & 0o777 == 0o700


def test_each_of_several_hosts_starts_its_own(tmp_path: Path) -> None:
    own = sh("hostname", "-s").stdout.strip()
    commands = [["echo", "first"], ["echo", "own"]]
    found = write_start_files(tmp_path, ["lead-0", own], commands, URI, {})
    assert sh(found.start).stdout == "own\n"
    assert sh(found.start, "lead-0").stdout == "first\n"


def test_a_host_that_is_not_the_leads_is_an_error(tmp_path: Path) -> None:
    commands = [["echo"], ["echo"]]
    found = write_start_files(tmp_path, ["lead-0", "lead-1"], commands, URI, {})
    done = sh(found.start, "lead-7")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.endswith(": no own host of the lead is called lead-7\n")


def test_a_shell_that_reads_env_has_the_variables(tmp_path: Path) -> None:
    place = tmp_path / "a b"
    place.mkdir()
    found = write_start_files(place, ["a"], [["true"]], URI, {"X": "1 $2", "Y": "'"})
    assert sh("sh", "-c", f'. "{found.env}"; echo "$X$Y $FLUX_URI"').stdout == (
        f"1 $2' {URI}\n"
    )
    assert f". '{found.env}'" in found.env.read_text()


@pytest.mark.parametrize(("site", "seen"), [("", "/a b"), ("/x:/y z", "/x:/y z:/a b")])
def test_where_a_site_has_modprobe_look_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, site: str, seen: str
) -> None:
    monkeypatch.setenv("FLUX_MODPROBE_PATH_APPEND", site)
    words = ["env", "FLUX_MODPROBE_PATH_APPEND=/a b"]
    command = [*words, "sh", "-c", 'echo "$FLUX_MODPROBE_PATH_APPEND"']
    found = write_start_files(tmp_path, ["lead-0"], [command], URI, {})
    assert sh(found.start).stdout == f"{seen}\n"
    scripts = found.start.read_text() + found.env.read_text()
    assert read_instructions(scripts)[0] == [command]


@pytest.mark.flux
@needs_flux
def test_a_lead_that_runs_is_not_started_a_second_time(tmp_path: Path) -> None:
    with flux_lead() as lead:
        commands = [["echo", "cleared its socket"]]
        found = write_start_files(tmp_path, ["lead-0"], commands, lead.files.uri, {})
        done = sh(found.start)
    assert (done.returncode, done.stdout) == (1, "")
    told = f": the lead runs already; to use it: . {found.env}\n"
    assert done.stderr.endswith(told)
