# SPDX-License-Identifier: MIT
"""A broker of a site's own files, before and after they get rank slots, on trial.

What adopted sites then do is in tests/site.
"""

from __future__ import annotations

import json
import os
import pwd
import shutil
import subprocess
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import tomli_w

from burst.lead_setup.add_slots import declared_hosts
from burst.lead_setup.adopt_lead import AdoptRequest, adopt_lead
from burst.lead_setup.lead_config import read_config
from burst.lead_setup.lead_plan import parse_slot
from burst.lead_setup.system_units import SystemPlaces
from burst.lead_setup.trial_broker import try_broker
from burst.model.shape import Shape
from tests.cli.cli_harness import burst
from tests.flux_instance import FLUX, FluxInstance
from tests.support.ports import free_port

pytestmark = pytest.mark.flux

SITE = """\
# Of the site; its words stay.
[bootstrap]
curve_cert = "{directory}/cert"
default_port = {port}
default_bind = "tcp://127.0.0.1:%p"
default_connect = "tcp://127.0.0.1:%p"
hosts = [
  {{ host = "lead-0, " }},  # rank 0
]

[[resource.config]]
hosts = "lead-0"
cores = "0-1"

[[resource.config]]
hosts = "lead-0"
properties = ["batch", "debug"]
"""


class SiteInstance(FluxInstance):
    """A lead whose configuration is a directory, as a site writes it."""

    @property
    def config_path(self) -> Path:
        return self.directory / "conf.d"

    def _configure(self) -> None:
        self.config_path.mkdir()
        text = SITE.format(directory=self.directory, port=free_port())
        (self.config_path / "system.toml").write_text(text)
        (self.config_path / "broker.toml").write_text("[resource]\nnoverify = true\n")

    def adopt(self) -> None:
        """Do what `burst lead adopt` does."""
        user = pwd.getpwuid(os.geteuid()).pw_name
        adopt_lead(
            AdoptRequest(
                config=self.config_path,
                settings=self.directory / "etc/burst.toml",
                slots=(parse_slot("burst-0-[0-3]:4:1", Shape(1)),),
                provider="local",
                mode="hold",
                places=SystemPlaces(user=user, group=user),
            )
        )


# That one is adopted comes last.
@pytest.fixture(scope="module")
def site() -> Iterator[SiteInstance]:
    directory = Path(tempfile.mkdtemp(prefix="bf-", dir="/tmp"))
    instance = SiteInstance(directory, {}, ())
    try:
        instance.start()
        yield instance
    finally:
        instance.end()
        shutil.rmtree(directory)


def test_a_broker_on_trial_leaves_nothing_and_has_an_end(
    site: SiteInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []
    make = tempfile.mkdtemp

    def note(*words: Any, **options: Any) -> str:
        made.append(make(*words, **options))
        return made[-1]

    monkeypatch.setattr(tempfile, "mkdtemp", note)
    tables = read_config(site.config_path)
    result = try_broker(tables, FLUX)
    assert result.resources is not None
    assert result.resources.hosts == ("lead-0",)
    assert result.resources.properties["batch"] == {0}
    late = try_broker(tables, FLUX, deadline_s=0.01)
    assert late.said[0] == "it did not end within 0.01s"
    wrong = {**tables, "resource": {"path": "/none"}}
    assert "unable to open /none" in try_broker(wrong, FLUX).said[0]
    assert len(made) == 3
    assert not any(map(os.path.exists, made))


@pytest.mark.skipif(os.geteuid() != 0, reason="another user's broker takes root")
def test_the_trial_runs_as_the_user_who_has_to_be_able_to_read_the_files(
    site: SiteInstance,
) -> None:
    tables = read_config(site.config_path)
    nobody = ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups"]
    runs = subprocess.run([*nobody, FLUX, "python", "-c", ""], check=False)
    if runs.returncode:
        pytest.skip("the Python of the Flux on PATH is not for all users")
    assert try_broker(tables, FLUX, "nobody").resources is not None
    closed = {**tables, "resource": {"path": str(site.directory / "R")}}
    assert "Permission denied" in try_broker(closed, FLUX, "nobody").said[0]


def test_what_a_broker_would_not_start_with_is_said_before_the_restart(
    site: SiteInstance,
) -> None:
    asked = ("lead", "check", str(site.config_path), "--uri", site.uri)
    assert burst(*asked).status == 0
    site.adopt()
    path = site.config_path / "system.toml"
    tables = tomllib.loads(path.read_text())
    settings = str(site.directory / "etc/burst.toml")
    found = burst("doctor", "-c", settings, "--uri", site.uri, "--json").stdout
    wrong = [row for row in json.loads(found)["findings"] if row["level"] == "wrong"]
    assert "not restarted since its files were given" in str(wrong)
    assert not {"slots", "intake"} & {row["about"] for row in wrong}
    (_, _, slot) = tables["resource"]["config"]
    assert slot["hosts"] == "burst-0-[0-3]"
    # An array of a later file replaces that of an earlier one.
    late = {"resource": {"config": [{"hosts": "lead-0", "cores": "0-1"}]}}
    later = site.config_path / "zz-late.toml"
    later.write_text(tomli_w.dumps(late))
    refused = burst(*asked)
    assert refused.status == 1
    assert "Number of hosts (5) is greater than node count (1)" in refused.stdout
    assert "[resource] declares nothing for burst-0-[0-3]" in refused.stdout
    later.write_text('[queues.far]\nrequires = ["far"]\n')
    told = burst(*asked)
    assert told.status == 1
    assert "queue far requires far, and no node that runs jobs has that" in told.stdout
    # A scheduler of which the mode would have ordinary jobs be denied.
    chosen = {"modules": {"alternatives": {"sched": "sched-fluxion-qmanager"}}}
    later.write_text(tomli_w.dumps(chosen))
    told = burst(*asked)
    assert told.status == 1
    assert "[intake] mode is hold, and Fluxion schedules by fcfs" in told.stdout
    later.unlink()
    assert burst(*asked).status == 0
    assert declared_hosts(read_config(site.config_path))[-1] == "burst-0-3"
