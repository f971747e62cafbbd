# SPDX-License-Identifier: MIT
"""A task of the job, with a program in the place of `flux`."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from burst.batch.batch_plan import LeadRequest, SlotRequest
from burst.batch.lead_directory import BatchJob, LeadDirectory, default_parent
from burst.batch.start_broker import (
    ENDING,
    BatchTask,
    await_lead_files,
    await_script_start,
    prepare_broker,
    read_task,
    run_node,
)
from burst.errors import ConfigError, LeadError
from burst.kits import certificate
from tests.support.fluxlead import short_directory

R: dict[str, Any] = {
    "version": 1,
    "execution": {
        "R_lite": [
            {"rank": "3", "children": {"core": "2-3"}},
            {"rank": "8", "children": {"core": "0-7", "gpu": "1"}},
        ],
        "nodelist": ["n[3,8]"],
        "expiration": 0.0,
    },
}
SETTINGS = b'[providers.local]\ntype = "local"\n'


@pytest.fixture
def directory() -> Iterator[Path]:
    with short_directory() as path:
        yield path


def place_with(directory: Path, r: object = R, **request: Any) -> LeadDirectory:
    flux = directory / "flux"
    flux.write_text(
        f"#!/bin/sh\necho \"$@\" >>{directory}/asked\necho '{json.dumps(r)}'"
    )
    flux.chmod(0o755)
    place = LeadDirectory.new(directory / "batch")
    asked = LeadRequest(slots=(SlotRequest(4),), flux=str(flux), **request)
    place.make(asked, SETTINGS)
    return place


def broker_does(directory: Path, what: str) -> None:
    with (directory / "flux").open("a") as flux:
        flux.write(f"\n[ $1 = broker ] && {what} || true\n")


def task(directory: Path, rank: int) -> BatchTask:
    tmpdir = directory / f"tmp-{rank}"
    tmpdir.mkdir()
    return BatchTask(rank, "f1", tmpdir)


def test_rank_0_makes_the_lead_of_what_is_allocated(directory: Path) -> None:
    place = place_with(directory)
    broker = prepare_broker(place, task(directory, 0), ["-Sx=1"], ["script", "word"])
    r = json.loads((place.path / "R").read_text())["execution"]
    assert r["R_lite"] == [
        {"rank": "0", "children": {"core": "2-3"}},
        {"rank": "1", "children": {"core": "0-7", "gpu": "1"}},
        {"rank": "2-5", "children": {"core": "0-1"}},
    ]
    assert r["nodelist"] == ["n[3,8],burst-0-[0-3]"]
    bootstrap = tomllib.loads((place.path / "broker.toml").read_text())["bootstrap"]
    first = bootstrap["hosts"][0]
    assert first["connect"].startswith("tcp://n3:")
    for option in ("-Shostname=n3", "-Sbroker.quorum=2", "-Sx=1"):
        assert option in broker.argv
    assert broker.argv[-5:] == ("--job", "f1", "--", "script", "word")
    assert str(place.path) in broker.environment["FLUX_CLI_PLUGINPATH"]
    memo = f"job memo f1 uri=ssh://n3{directory}/tmp-0/burst/local"
    assert memo in (directory / "asked").read_text()


@pytest.mark.parametrize("mode", ["hold", "scheduler"])
@pytest.mark.parametrize("ends", [0.0, 1_800_000_000.5])
def test_the_lead_is_told_when_the_job_ends(
    directory: Path, mode: str, ends: float
) -> None:
    place = place_with(
        directory, {**R, "execution": R["execution"] | {"expiration": ends}}
    )
    place.given.write_bytes(SETTINGS + f"[intake]\nmode = '{mode}'\n".encode())
    prepare_broker(place, task(directory, 0), [], ["script"])
    table = tomllib.loads((place.path / "broker.toml").read_text()).get("burst", {})
    assert table.get("ends", 0.0) == ends
    assert table.get("scheduler", False) is (mode == "scheduler")
    # Flux itself is not told: it would refuse jobs with a longer time limit.
    r = json.loads((place.path / "R").read_text())["execution"]
    assert r["expiration"] == 0.0


def test_what_it_makes_is_nobody_elses(directory: Path) -> None:
    place = place_with(directory)
    prepare_broker(place, task(directory, 0), [], ["script"])
    assert stat.S_IMODE(place.path.stat().st_mode) == 0o700
    assert stat.S_IMODE(place.certificate.stat().st_mode) == 0o600
    secret = certificate.read(place.certificate).secret.decode()
    others = [
        p for p in place.path.rglob("*") if p.is_file() and p != place.certificate
    ]
    assert others
    assert not any(secret in path.read_text() for path in others)


def test_what_the_user_has_flux_look_for_it_still_finds(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FLUX_CLI_PLUGINPATH", "/mine")
    monkeypatch.delenv("FLUX_MODPROBE_PATH_APPEND", raising=False)
    place = place_with(directory)
    environment = prepare_broker(place, task(directory, 0), [], ["script"]).environment
    flux = place.path / "flux"
    assert environment["FLUX_CLI_PLUGINPATH"] == f"{flux}/cli/plugins:/mine"
    assert environment["FLUX_MODPROBE_PATH_APPEND"] == f"{flux}/modprobe"


def test_the_daemon_is_told_of_the_users_slurm(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broker removes all SLURM_* from what it runs."""
    monkeypatch.setenv("SLURM_CONF", "/site/slurm.conf")
    monkeypatch.delenv("SLURM_CONF_SERVER", raising=False)
    broker = prepare_broker(place_with(directory), task(directory, 0), [], ["script"])
    begins = broker.argv.index("env")
    assert broker.argv[begins + 1] == "SLURM_CONF=/site/slurm.conf"
    assert broker.argv[begins + 2].startswith("/")


def test_the_other_ranks_wait_for_it_and_join(directory: Path) -> None:
    place = place_with(directory, port=7000)
    prepare_broker(place, task(directory, 0), [], ["script"])
    broker = prepare_broker(place, task(directory, 1), ["-Sx=1"], ["script"])
    assert "-Shostname=n8" in broker.argv
    assert broker.argv[-1] == "-Sx=1"
    assert broker.environment == {}
    bootstrap = tomllib.loads((place.path / "broker.toml").read_text())["bootstrap"]
    assert bootstrap["default_port"] == 7000


def test_a_port_of_the_settings_is_listened_at(directory: Path) -> None:
    place = place_with(directory)
    place.given.write_bytes(SETTINGS + b"[lead]\nport = 7001\n")
    prepare_broker(place, task(directory, 0), [], ["script"])
    bootstrap = tomllib.loads((place.path / "broker.toml").read_text())["bootstrap"]
    assert bootstrap["default_port"] == 7001


def test_a_port_that_nobody_sets_is_none_that_linux_gives_away(
    directory: Path,
) -> None:
    place = place_with(directory)
    prepare_broker(place, task(directory, 0), [], ["script"])
    bootstrap = tomllib.loads((place.path / "broker.toml").read_text())["bootstrap"]
    given = Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()
    assert 1023 < bootstrap["default_port"] < int(given[0])


def test_a_node_that_does_not_see_the_files_says_so(directory: Path) -> None:
    place = place_with(directory)
    with pytest.raises(
        LeadError, match=r"did not appear on this node within 0 s; the directory has"
    ):
        await_lead_files(place, 0.0)
    with pytest.raises(ConfigError, match="which all of its nodes have to see"):
        LeadDirectory(directory / "elsewhere").request()


def test_a_flux_that_fails_is_quoted(directory: Path) -> None:
    place = place_with(directory)
    other = task(directory, 1)
    (directory / "flux").write_text("#!/bin/sh\nexit 3")
    with pytest.raises(LeadError, match="flux job info: status 3"):
        prepare_broker(place, other, [], ["script"])
    (directory / "flux").unlink()
    with pytest.raises(LeadError, match=r"flux job info: .*No such file"):
        prepare_broker(place, other, [], ["script"])


@pytest.fixture
def in_job(directory: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Make this process the task of a job, for as long as signals may be changed."""
    before = {number: signal.getsignal(number) for number in ENDING}
    (directory / "tmp").mkdir()
    monkeypatch.setenv("PATH", f"{directory}:{os.environ['PATH']}")
    monkeypatch.setenv("FLUX_TASK_RANK", "0")
    monkeypatch.setenv("FLUX_JOB_ID", "f1")
    monkeypatch.setenv("FLUX_JOB_TMPDIR", str(directory / "tmp"))
    monkeypatch.setenv("FLUX_URI", "local:///parent")
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.usefixtures("in_job")
def test_a_node_has_the_status_of_its_broker_and_leaves_nothing(
    directory: Path,
) -> None:
    place = place_with(directory)
    broker_does(directory, f"touch {place.log} && exit 3")
    assert run_node(place, [], ["script"]) == 3
    assert not place.path.exists()
    place = place_with(directory)
    broker_does(directory, f"touch {place.log} && kill -9 $$")
    place.set_owner("me-1")
    assert run_node(place, [], ["script"]) == 128 + 9
    assert place.owner() == "me-1"
    # The command that submitted the job ended before it could write that.
    assert place.job() == BatchJob("f1", "local:///parent")


@pytest.mark.usefixtures("in_job")
def test_a_node_that_cannot_start_its_broker_ends_the_job(directory: Path) -> None:
    place = place_with(directory, {"version": 2})
    with pytest.raises(ConfigError, match="R of this job cannot be read"):
        run_node(place, [], ["script"])
    assert "job raise --severity=0 --type=burst f1 rank 0: R of this job" in (
        (directory / "asked").read_text()
    )
    assert not place.path.exists()
    (directory / "flux").write_text("#!/bin/sh\nexit 1\n")
    with pytest.raises(LeadError, match=r"and the job could not be ended: .*job raise"):
        run_node(place, [], ["script"])


@pytest.mark.usefixtures("in_job")
def test_a_broker_that_ends_before_the_script_begins_ends_the_job(
    directory: Path,
) -> None:
    place = place_with(directory)
    broker_does(directory, "exit 1")
    with pytest.raises(LeadError, match="ended with status 1 before the script began"):
        run_node(place, [], ["script"])
    assert "rank 0: the broker ended" in (directory / "asked").read_text()
    assert not place.path.exists()


def test_own_nodes_that_do_not_join_have_a_deadline(directory: Path) -> None:
    place = place_with(directory)
    broker = subprocess.Popen(["sleep", "60"])
    try:
        with pytest.raises(LeadError, match="not all own nodes joined rank 0 within 0"):
            await_script_start(place, broker, 0.0)
        place.log.touch()
        await_script_start(place, broker, 0.0)
    finally:
        broker.kill()
        broker.wait()


def test_outside_of_a_job_it_says_what_it_is_for() -> None:
    told = {"FLUX_TASK_RANK": "1", "FLUX_JOB_ID": "f1", "FLUX_JOB_TMPDIR": "/tmp/x"}
    assert read_task(told) == BatchTask(1, "f1", Path("/tmp/x"))
    with pytest.raises(
        ConfigError, match=r"is not a task of a Flux job: .*; only tasks"
    ):
        read_task({})


def test_places_are_where_a_users_data_are(directory: Path) -> None:
    assert default_parent({"XDG_DATA_HOME": "/data"}) == Path("/data/burst/batch")
    home = {"HOME": "/home/me"}
    assert default_parent(home) == Path("/home/me/.local/share/burst/batch")
    (directory / "file").touch()
    with pytest.raises(ConfigError, match="name a directory that you may write with"):
        LeadDirectory.new(directory / "file").make(LeadRequest(slots=()), b"")
    assert LeadDirectory.find(directory / "none") == []
