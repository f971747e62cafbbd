# SPDX-License-Identifier: MIT
"""`burst setup`: what it shows, what it does, what it refuses."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import tomli_w

from burst.flux_setup.install import apply_files
from burst.lead_setup.site_files import RECORD
from burst.model.jobid import format_f58
from tests.cli.cli_harness import burst
from tests.flux.fluxion import needs_fluxion, scheduled, use_fluxion
from tests.flux_instance import FLUX
from tests.flux_pool import FluxPool

pytestmark = pytest.mark.flux

BATCH = {"batch": {"requires": ["^burst"]}}
OURS = {name: {"requires": ["burst"]} for name in ("burst", "burst-ready")}
DEFAULT = {"jobspec": {"defaults": {"system": {"queue": "batch"}}}}


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("FLUX_URI", "BURST_CONFIG", "XDG_DATA_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def files(directory: Path) -> set[str]:
    paths = directory.rglob("*")
    return {str(p.relative_to(directory)) for p in paths if p.is_file()}


def test_it_shows_does_and_takes_back(home: Path) -> None:
    place = home / "d"
    asked = ("setup", "--dir", str(place), "--mode", "scheduler")
    shown = burst(*asked, "--dry-run")
    assert f"write      {place}/sched-burst.py" in shown.lines
    assert not place.exists()
    done = burst(*asked)
    assert f"export FLUX_CLI_PLUGINPATH={place}/cli/plugins" in done.stdout
    assert "put it beside broker.toml" in done.stdout
    assert files(place) == {
        "burst-setup.json",
        "cli/plugins/burst.py",
        "conf.d/zz-burst-lead.toml",
        "frob-burst.py",
        "modprobe/modprobe.d/burst.toml",
        "modprobe/rc1.d/burst.py",
        "sched-burst-jobs.py",
        "sched-burst-leases.py",
        "sched-burst.py",
        "xdg/flux/flux-jobs.burst.toml",
    }
    assert "nothing changes" in burst(*asked).lines
    remove = ("setup", "--dir", str(place), "--remove")
    assert f"remove     {place}/sched-burst.py" in burst(*remove, "--dry-run").lines
    assert files(place)
    burst(*remove)
    assert not place.exists()


def test_what_starts_the_daemon_of_a_lead_stays(home: Path) -> None:
    own = home / "lead/flux"
    burst("lead", "init", str(own.parent), "--mode", "queue")
    lead = {"burst.service", "rc1.d/burst-daemon", "rc1.d/burst-queues"}
    before = {name: (own / name).read_text() for name in lead}
    for mode in ("scheduler", "queue"):
        burst("setup", "--dir", str(own), "--mode", mode)
        assert {name: (own / name).read_text() for name in lead} == before
        assert ("sched-burst.py" in files(own)) is (mode == "scheduler")
    burst("setup", "--dir", str(own), "--remove")
    assert not own.exists()


def test_by_default_it_is_for_this_user_and_by_the_settings(home: Path) -> None:
    settings = home / "burst.toml"
    settings.write_text(tomli_w.dumps({"intake": {"mode": "queue", "any_job": True}}))
    said = burst("setup", "-c", str(settings))
    assert "    flux queue start --queue=batch" in said.lines
    assert (home / ".config/flux/flux-jobs.burst.toml").exists()
    config = (home / ".local/share/burst/flux/conf.d/zz-burst-lead.toml").read_text()
    assert "[queues.burst-ready]" in config
    assert "any_job = true" in config
    burst("setup", "--user", "--remove")
    assert files(home) == {"burst.toml"}


def test_the_place_of_the_system_is_asked_of_flux() -> None:
    lines = burst("setup", "--system", "--dry-run").lines
    assert any(line.endswith("/cli/plugins/burst.py") for line in lines)
    assert any(line.endswith("/etc/xdg/flux/flux-jobs.burst.toml") for line in lines)


def test_two_places_are_refused() -> None:
    said = burst("setup", "--system", "--dir", "x")
    assert said.status == 2
    assert "--dir cannot be used with" in said.stderr


def test_a_sites_own_queue_is_not_redefined(home: Path, flux_pool: FluxPool) -> None:
    limits = {"policy": {"limits": {"duration": "1h"}}}
    default = {"jobspec": {"defaults": {"system": {"queue": "batch"}}}}
    with flux_pool.lend({"queues": {"batch": limits}, "policy": default}) as instance:
        place = ("--dir", str(home / "d"), "--uri", instance.uri)
        said = burst("setup", *place, "--mode", "queue")
    assert "The site's own queues stay as they are." in said.lines
    tables = tomllib.loads((home / "d/conf.d/zz-burst-lead.toml").read_text())
    assert set(tables["queues"]) == {"burst", "burst-ready"}
    assert tables["queues"]["burst"] == {"requires": ["burst"], **limits}
    listed = tables["ingest"]["frobnicator"]["plugins"]
    assert listed == ["defaults", "constraints", f"{home}/d/frob-burst.py"]


@needs_fluxion
def test_new_queues_are_not_to_be_loaded_into_a_fluxion_that_runs(
    home: Path, flux_pool: FluxPool
) -> None:
    def told(queues: dict[str, Any]) -> bool:
        extra = scheduled("easy", queues=queues)
        with flux_pool.lend(extra, prepare=use_fluxion) as instance:
            place = ("--dir", str(home / "-".join(queues)), "--uri", instance.uri)
            said = burst("setup", *place, "--mode", "queue")
        assert "The site's own queues stay as they are." in said.lines
        return "do not have the running lead reload" in said.stdout

    assert told({"batch": {}})
    assert not told({"batch": {}, **OURS})


def test_a_file_whose_list_would_count_instead_is_told(home: Path) -> None:
    conf = home / "d/conf.d"
    conf.mkdir(parents=True)
    site = {"ingest": {"frobnicator": {"plugins": ["defaults", "/site/a.py"]}}}
    (conf / "zzz.toml").write_text(tomli_w.dumps(site))
    local = {"providers": {"local": {"type": "local"}}}
    (home / "burst.toml").write_text(tomli_w.dumps(local))
    said = burst("setup", "--dir", str(home / "d"), "-c", str(home / "burst.toml"))
    assert f"{conf}/zzz.toml comes after zz-burst-lead.toml" in said.stdout
    assert "beside broker.toml" not in said.stdout, "it is where Flux reads it"
    tables = tomllib.loads((conf / "zz-burst-lead.toml").read_text())
    assert tables["ingest"]["frobnicator"]["plugins"][:2] == ["defaults", "/site/a.py"]
    # Followers of provider local are on a host of another name.
    assert tables["resource"]["verify"]["hostname"] == "ignore"


@pytest.mark.skipif(os.geteuid() != 0, reason="brokers of another user are root's")
def test_what_root_installs_in_a_directory_is_for_the_user_of_the_brokers(
    home: Path,
) -> None:
    before = os.umask(0o077)
    try:
        burst("setup", "--dir", str(home / "d"), "--mode", "hold")
    finally:
        os.umask(before)
    for path in (home / "d").rglob("*"):
        mode = 0o755 if path.is_dir() else 0o644
        assert path.stat().st_mode & 0o777 == mode, path


def test_a_lead_that_does_not_answer_keeps_nobody_from_it(home: Path) -> None:
    uri = f"local://{home}/none"
    said = burst("setup", "--dir", str(home / "d"), "--uri", uri)
    assert said.lines[0].startswith("its queues and scheduler are not known: ")
    assert files(home / "d")


def test_a_flux_that_is_too_old_is_refused(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = home / "bin" / "flux"
    old.parent.mkdir()
    old.write_text("#!/bin/sh\necho commands: 0.80.0\necho libflux-core: 0.80.0\n")
    old.chmod(0o755)
    monkeypatch.setenv("PATH", str(old.parent), prepend=":")
    said = burst("setup", "--dir", str(home / "d"), "--mode", "scheduler")
    assert "needs the scheduler classes of 0.84 or later" in said.error
    assert burst("setup", "--dir", str(home / "d"), "--mode", "hold").status == 0


def test_a_site_without_a_frobnicator_is_refused_it(home: Path) -> None:
    place = home / "d"
    (place / "conf.d").mkdir(parents=True)
    site = {"ingest": {"frobnicator": {"disable": True}}}
    (place / "conf.d/site.toml").write_text(tomli_w.dumps(site))
    said = burst("setup", "--dir", str(place), "--mode", "hold")
    assert "[ingest.frobnicator] disable is true" in said.error
    assert files(place) == {"conf.d/site.toml"}


def test_a_queue_in_which_jobs_wait_is_not_removed(
    home: Path, flux_pool: FluxPool
) -> None:
    place = ("setup", "--dir", str(home / "d"))
    burst(*place, "--mode", "queue")
    piece = tomllib.loads((home / "d/conf.d/zz-burst-lead.toml").read_text())
    assert piece["queues"] == {**OURS, **BATCH}
    before = files(home)
    with flux_pool.lend({"queues": {**OURS, **BATCH}, "policy": DEFAULT}) as instance:
        job = instance.submit(nodes=1, urgency=0, attributes={"queue": "batch"})
        asked = (*place, "--uri", instance.uri)
        assert burst(*asked, "--mode", "queue").status == 0
        waiting = (
            f"ordinary jobs wait in queue batch, which is removed: {format_f58(job)};"
        )
        for change in (("--mode", "scheduler"), ("--mode", "hold"), ("--remove",)):
            refused = burst(*asked, *change)
            assert refused.error.startswith(waiting), change
            assert files(home) == before
        instance.cancel(job)
        other = instance.submit(nodes=1, urgency=0, attributes={"queue": "burst"})
        refused = burst(*asked, "--mode", "hold")
        assert f"queues that are removed: {format_f58(other)};" in refused.error
        instance.cancel(other)
        assert burst(*asked, "--mode", "hold").status == 0


def test_a_queue_of_an_instance_without_our_piece_keeps_nobody_from_it(
    home: Path, flux_pool: FluxPool
) -> None:
    place = ("setup", "--dir", str(home / "d"))
    burst(*place, "--mode", "queue")
    with flux_pool.lend({"queues": {"batch": {}}, "policy": DEFAULT}) as instance:
        instance.submit(nodes=1, urgency=0, attributes={"queue": "batch"})
        removed = burst(*place, "--remove", "--uri", instance.uri)
    assert removed.status == 0, removed.stderr
    assert not (home / "d").exists()
    assert "config reload" not in removed.stdout


def test_nothing_is_removed_under_a_lead_that_cannot_be_asked(
    home: Path, flux_pool: FluxPool
) -> None:
    """It runs, so jobs may wait in its queues, and its frobnicator is in use."""
    place = ("setup", "--dir", str(home / "d"))
    burst(*place, "--mode", "queue")
    before = files(home)
    with flux_pool.lend({"queues": {**OURS, **BATCH}, "policy": DEFAULT}) as instance:
        instance.flux("module", "remove", "sched-simple")
        instance.flux("module", "remove", "resource")
        asked = (*place, "--uri", instance.uri)
        for change in (("--mode", "hold"), ("--remove",)):
            refused = burst(*asked, *change)
            assert refused.status == 1, change
            assert "resource.status: " in refused.error
            assert "name that one: --uri local://RUNDIR/local" in refused.error
            assert files(home) == before
        assert burst(*asked, "--mode", "queue").status == 0, "nothing is removed"
        instance.flux("module", "load", "resource")
        instance.flux("module", "load", "sched-simple")
    # One that is gone is not in the way, and may have another socket.
    removed = burst(*place, "--remove", "--uri", f"local://{home}/none")
    assert removed.status == 0, removed.stderr
    assert "If a lead runs that has burst's frobnicator" in removed.stdout
    assert "out of the lead's own file if it is" in removed.stdout
    assert "restart it now" in removed.stdout


def test_without_fluxs_bindings_a_lead_that_is_gone_keeps_nobody_from_it(
    home: Path,
) -> None:
    """As after an update of Python; what a lead that runs uses cannot be read then."""
    place = ("setup", "--dir", str(home / "d"))
    burst(*place, "--mode", "queue")
    (home / "_flux.py").write_text('raise ImportError("made for another Python")\n')

    def remove(run: Path) -> subprocess.CompletedProcess[str]:
        asked = (*place, "--remove", "--uri", f"local://{run}/local")
        known = os.environ.get("PYTHONPATH", "")
        return subprocess.run(
            [sys.executable, "-m", "burst", *asked],
            env={"HOME": str(home), "PATH": "", "PYTHONPATH": f"{home}:{known}"},
            capture_output=True,
            text=True,
            check=False,
        )

    (home / "local").touch()
    refused = remove(home)
    assert "cannot be read: Flux's Python bindings cannot be" in refused.stderr
    assert (home / "d").exists()
    removed = remove(home / "none")
    assert removed.returncode == 0, removed.stderr
    assert not (home / "d").exists()


def test_the_system_instance_may_have_a_rundir_of_its_own(
    home: Path, flux_pool: FluxPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As `burst lead adopt --rundir` noted it; FLUX_URI may be of another."""
    config = home / "flux/system/conf.d"
    monkeypatch.setenv("PATH", str(flux_with_files_at(home / "flux")), prepend=":")
    piece = tomli_w.dumps({"queues": {**OURS, **BATCH}})
    apply_files(home / "flux/burst", {config / "zz-burst-lead.toml": piece})
    before = files(home)
    asked = ("setup", "--system", "-c", os.devnull)
    refused = burst(*asked, "--remove")
    assert refused.error.startswith("queues are removed (batch, burst, burst-ready), ")
    assert "; name it: --uri local://RUNDIR/local, also if it" in refused.error
    with flux_pool.lend({"queues": {**OURS, **BATCH}, "policy": DEFAULT}) as instance:
        job = instance.submit(nodes=1, urgency=0, attributes={"queue": "batch"})
        (config / RECORD).write_text(json.dumps({"uri": instance.uri}))
        monkeypatch.setenv("FLUX_URI", f"local://{home}/none")
        refused = burst(*asked, "--remove")
        assert f"which is removed: {format_f58(job)};" in refused.error
        (config / RECORD).unlink()
    assert files(home) == before
    assert burst(*asked, "--remove", "--uri", f"local://{home}/none").status == 0
    assert not list(config.glob("*.toml"))


def flux_with_files_at(place: Path) -> Path:
    """Make a Flux whose own files are there; return the directory of the command."""
    flux = place.parent / "bin/flux"
    flux.parent.mkdir()
    where = f'*confdir*) echo {place} ;; *) exec {FLUX} "$@" ;;'
    flux.write_text(f'#!/bin/sh\ncase "$*" in {where} esac\n')
    flux.chmod(0o755)
    return flux.parent


@pytest.mark.parametrize("how", ["system", "dir again", "system bare"])
@pytest.mark.parametrize("own", [{}, {"debug": {}}], ids=["ours", "own"])
def test_after_removal_the_lead_has_to_drop_the_frobnicator(
    home: Path,
    flux_pool: FluxPool,
    monkeypatch: pytest.MonkeyPatch,
    own: Any,
    how: str,
) -> None:
    """With --dir, the site's own queues are known of the instance only."""
    apart = how.startswith("dir")
    place = home / "d" if apart else home / "flux/burst"
    config = home / ("d/conf.d" if apart else "flux/system/conf.d")
    frobnicator = place / "frob-burst.py"
    listed = {"frobnicator": {"plugins": ["defaults", str(frobnicator)]}}
    queues = OURS if own else {**OURS, **BATCH}
    piece = {"queues": queues, "ingest": listed}
    installed = {
        frobnicator: "",
        config / "zz-burst-lead.toml": tomli_w.dumps(piece),
    }
    apply_files(place, installed)
    if not apart and how != "system bare":
        (config / "site.toml").write_text(tomli_w.dumps({"access": {}, "queues": own}))
    if how.endswith("again"):
        # An earlier removal was interrupted.
        (config / "zz-burst-lead.toml").unlink()
    commands = flux_with_files_at(home / "flux")
    with flux_pool.lend({"queues": {**queues, **own}, "ingest": listed}) as instance:
        monkeypatch.setenv("PATH", str(commands), prepend=":")
        where = ("--dir", str(place)) if apart else ("--system",)
        said = burst("setup", *where, "--remove", "--uri", instance.uri)
    assert not frobnicator.exists()
    assert f"remove     {frobnicator}" in said.lines
    assert ("    flux config reload --follower-noop" in said.lines) is bool(own)
    assert ("restart it now" in said.stdout) is not bool(own)
