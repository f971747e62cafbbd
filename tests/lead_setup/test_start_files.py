# SPDX-License-Identifier: MIT
"""The scripts that start a lead, and that shells read, as sh runs them."""

import subprocess
from pathlib import Path

from burst.lead_setup.start_files import write_start_files
from tests.support.commands import run_captured


def sh(*words: object) -> subprocess.CompletedProcess[str]:
    return run_captured([str(word) for word in words])


def test_an_only_host_is_started_whatever_it_is_called(tmp_path: Path) -> None:
    found = write_start_files(tmp_path, ["lead-0"], [["echo", "a  b", "$HOME"]], {})
    assert sh(found.start).stdout == "a  b $HOME\n"
    assert found.start.stat().st_mode & 0o777 == 0o700


def test_each_of_several_hosts_starts_its_own(tmp_path: Path) -> None:
    own = sh("hostname", "-s").stdout.strip()
    commands = [["echo", "first"], ["echo", "own"]]
    found = write_start_files(tmp_path, ["lead-0", own], commands, {})
    assert sh(found.start).stdout == "own\n"
    assert sh(found.start, "lead-0").stdout == "first\n"


def test_a_host_that_is_not_the_leads_is_an_error(tmp_path: Path) -> None:
    commands = [["echo"], ["echo"]]
    found = write_start_files(tmp_path, ["lead-0", "lead-1"], commands, {})
    done = sh(found.start, "lead-7")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.endswith(": no own host of the lead is called lead-7\n")


def test_a_shell_that_reads_env_has_the_variables(tmp_path: Path) -> None:
    place = tmp_path / "a b"
    place.mkdir()
    found = write_start_files(place, ["a"], [["true"]], {"X": "1 $2", "Y": "'"})
    assert sh("sh", "-c", f'. "{found.env}"; echo "$X$Y"').stdout == "1 $2'\n"
    assert f". '{found.env}'" in found.env.read_text()
