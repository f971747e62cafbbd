# SPDX-License-Identifier: MIT
"""The unit by which systemd starts the daemon."""

import configparser
import shutil
from pathlib import Path

import pytest

from burst.lead_setup.start_files import systemd_unit
from tests.support.commands import run_captured
from tests.support.own_name import OWN_NAME


def test_the_owner_runs_it_and_followers_outlive_it() -> None:
    unit = configparser.ConfigParser(interpolation=None)
    unit.read_string(systemd_unit(Path("/srv/lead"), "flux", Path("/srv/queues")))
    service = unit["Service"]
    assert service["User"] == "flux"
    assert service["KillMode"] == "process"
    assert service["ExecStart"].endswith(" -m burst daemon -c /srv/lead/burst.toml")
    assert service["ExecStartPre"] == "/srv/queues"


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="no systemd here")
def test_systemd_can_read_it(tmp_path: Path) -> None:
    path = tmp_path / "burst.service"
    text = systemd_unit(Path("/srv/lead"), OWN_NAME)
    for wrong in ("", "Nonsense=1\n"):
        path.write_text(text.replace("[Install]", f"{wrong}[Install]"))
        done = run_captured(["systemd-analyze", "verify", "--man=no", str(path)])
        # Of other units, which this host may lack, it tells besides.
        found = [line for line in done.stderr.splitlines() if str(path) in line]
        assert bool(found) == bool(wrong), done.stderr
