# SPDX-License-Identifier: MIT
"""Pods have, and find, a Flux that is installed in a prefix of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kind.kindlead import FluxPodLead
from tests.kind.kindnear import NearCluster
from tests.kubelab.kind import hostimage

_SETTINGS = {
    "confdir": "etc/flux",
    "connector_path": "lib/flux/connectors",
    "datadir": "share/flux",
    "libexecdir": "libexec/flux",
    "module_path": "lib/flux/modules",
    "python_path": "lib/flux/python3.11",
}
# Answers what is asked of a flux to find its files.
_FLUX = """#!/bin/sh
case "$1 $2" in
{cases}
"python -c") shift; exec {python} "$@";;
*) exit 1;;
esac
"""


@pytest.fixture
def prefix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the flux on PATH is."""
    for place in _SETTINGS.values():
        (tmp_path / place).mkdir(parents=True, exist_ok=True)
    arms = " ".join(f"{n}) echo {tmp_path / p};;" for n, p in _SETTINGS.items())
    cases = f'"config builtin") case "$3" in {arms} esac;;'
    program = tmp_path / "bin" / "flux"
    program.parent.mkdir()
    program.write_text(_FLUX.format(cases=cases, python=sys.executable))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    return tmp_path


class Near(NearCluster):
    """A cluster that is not there."""

    def address(self) -> str:
        return "172.18.0.2"


def test_a_lead_in_a_pod_is_started_by_its_path(prefix: Path, tmp_path: Path) -> None:
    directory = tmp_path / "d"
    directory.mkdir()
    lead = FluxPodLead(Near(directory, "image"), directory)
    (container,) = lead.pod()["spec"]["containers"]
    assert container["command"][:2] == [str(prefix / "bin" / "flux"), "broker"]
    (path,) = (each["value"] for each in container["env"] if each["name"] == "PATH")
    assert path.split(":")[0] == str(prefix / "bin")
    found = subprocess.run(
        ["/bin/sh", "-c", "command -v flux"],
        env={"PATH": path},
        capture_output=True,
        text=True,
        check=True,
    )
    assert found.stdout.strip() == container["command"][0]


def test_the_image_of_brokers_has_the_files_of_that_prefix(prefix: Path) -> None:
    contents = hostimage.contents()
    assert prefix / "bin" / "flux" in contents
    for name in hostimage.FLUX_FOLDERS:
        assert prefix / _SETTINGS[name] in contents
