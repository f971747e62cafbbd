# SPDX-License-Identifier: MIT
"""What `burst status`, `explain`, `plan` and `doctor` go by without a daemon, or -c."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from burst.cli.target import Target
from burst.config.file import LOOKED_FOR
from burst.errors import START_A_DAEMON, ConfigError
from burst.model.jobid import format_f58
from tests.cli.cli_harness import CliHarness, burst, open_harness
from tests.contract.instance import SLEEP
from tests.embedded_instance import EmbeddedInstance, embedded_instance

_NONE = "no settings file was read"


@pytest.fixture
def left() -> Iterator[tuple[EmbeddedInstance, CliHarness, str]]:
    """A burst that its daemon left up."""
    with embedded_instance() as instance, open_harness(instance) as cli:
        with cli.daemon():
            said = cli.run("request", "-N2").lines
        yield instance, cli, said[0].rpartition(" ")[2]


@pytest.fixture
def no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A user without any settings."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("BURST_CONFIG", raising=False)


def test_the_records_are_shown_and_that_nobody_takes_the_bursts_down(
    left: tuple[EmbeddedInstance, CliHarness, str],
) -> None:
    instance, cli, name = left
    said = cli.run("status")
    assert said.lines[1].split()[:3] == [name, "local/local", "online"]
    assert said.lines[-1] == (
        "no daemon serves this lead; this is what is on record, and nothing takes"
        f" {name} down: start one (systemctl start burst where its unit is installed,"
        " else burst daemon -c FILE)"
    )
    found = cli.run("status", "--json").json
    assert found["daemon"] is None
    # Only a daemon takes an idle burst down.
    assert [row["idle"] >= 0 for row in found["bursts"]] == [True]
    assert [row["down_in"] for row in found["bursts"]] == [None]
    story = cli.run("explain", name).lines
    step = f"  next: somebody starts the daemon: {START_A_DAEMON}"
    assert step in story
    job = instance.submit(nodes=9, command=SLEEP)
    told = cli.run("explain", format_f58(job))
    assert told.lines == [
        f"{format_f58(job)}: sched, 9 whole nodes, 9 slots of 1 core",
        step,
    ]
    assert told.stderr.startswith("no daemon serves this lead; start one")
    instance.cancel(job)


def test_with_nothing_live_nothing_is_said_to_be_lost(quiet: CliHarness) -> None:
    last = quiet.run("status").lines[-1]
    assert "no burst is live: start one (systemctl start burst where" in last


@pytest.mark.usefixtures("no_file")
@pytest.mark.parametrize("command", ["plan", "gc"])
def test_without_daemon_and_file_it_is_said_that_no_provider_is_known(
    command: str, quiet: CliHarness
) -> None:
    done = burst(command, "--uri", quiet.uri)
    assert _NONE in done.stderr
    # Nothing was looked at: that is no answer of "no orphans".
    assert done.status == (command == "gc")
    assert "no orphans" not in done.stdout
    assert _NONE not in quiet.run(command).stderr


@pytest.mark.usefixtures("no_file")
def test_the_running_daemons_settings_are_used_where_none_are_named(
    served: CliHarness,
) -> None:
    found = burst("doctor", "--uri", served.uri).stdout
    assert f"{served.config} is read; providers: local" in found
    planned = burst("plan", "--uri", served.uri)
    assert planned.lines == ["nothing to burst"]
    assert _NONE not in planned.stderr


@pytest.mark.usefixtures("no_file")
def test_with_a_fault_in_the_users_own_file_no_other_lead_is_asked(
    served: CliHarness, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = tmp_path / ".config/burst/burst.toml"
    usual.parent.mkdir(parents=True)
    usual.write_text("[lead]\nuri = 'local:///another'\n[plan]\nshare = 'oops'\n")
    monkeypatch.setenv("FLUX_URI", served.uri)
    said = burst("status")
    assert said.status == 1
    assert f"ERROR: {usual}: plan.share" in said.stderr


@pytest.mark.usefixtures("no_file")
@pytest.mark.parametrize(
    ("text", "uri"),
    [
        ("[lead]\nuri = 'local:///site'\n[plan]\nshare = 'oops'\n", "local:///site"),
        ("[lead]\nuri = 7\n", ""),
        ("lead = 'oops'\n", ""),
        ("no toml", ""),
    ],
)
def test_a_fault_in_the_sites_file_takes_no_lead_from_its_users(
    text: str,
    uri: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    own, site = tmp_path / "own.toml", tmp_path / "site.toml"
    site.write_text(text)
    usual = (str(own), str(site))
    assert Target(None, None, usual).find_uri() == uri
    assert capsys.readouterr().err.startswith(f"settings are not read: {site}: ")
    assert Target(None, "local:///mine", usual).find_uri() == "local:///mine"
    # What somebody has named is to be right, and so is the user's own file.
    with pytest.raises(ConfigError):
        Target(site, None, usual).find_uri()
    own.write_text(text)
    with pytest.raises(ConfigError):
        Target(None, None, usual).find_uri()
    own.unlink()
    monkeypatch.setenv("BURST_CONFIG", str(site))
    with pytest.raises(ConfigError):
        Target(None, None, usual).find_uri()


@pytest.mark.usefixtures("no_file")
def test_what_the_environment_names_counts_before_the_daemons_file(
    served: CliHarness, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = tmp_path / "mine.toml"
    mine.write_text("[plan]\nshare = false\n")
    monkeypatch.setenv("BURST_CONFIG", str(mine))
    assert f"{mine} is read" in burst("doctor", "--uri", served.uri).stdout


@pytest.mark.usefixtures("no_file")
def test_doctor_says_that_no_file_was_read_where_there_is_no_daemon(
    quiet: CliHarness,
) -> None:
    found = burst("doctor", "--uri", quiet.uri).stdout
    told = f"there is no settings file ({LOOKED_FOR}); defaults are used"
    assert told in " ".join(found.split())
