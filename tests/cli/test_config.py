# SPDX-License-Identifier: MIT
"""`burst config`: the settings as they are in effect, and where each comes from."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.cli_harness import BURST, burst
from tests.embedded_instance import short_directory

TEXT = """\
[daemon]
cadence = "1s"
on_stop = "reap"
[plan]
share = false
[providers.site]
type = "local"
max_nodes = 3
"""
FORM = "{key} = {value} ({from})"


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A user's directory with no settings in it, nor anywhere else they are found."""
    with short_directory() as home:
        monkeypatch.setenv("HOME", str(home))
        monkeypatch.delenv("BURST_CONFIG", raising=False)
        yield home


@pytest.fixture
def config(home: Path) -> Path:
    path = home / "my.toml"
    path.write_text(TEXT)
    return path


def test_each_key_is_shown_as_the_file_would_have_it_and_where_it_is_from(
    config: Path,
) -> None:
    lines = burst("config", "-c", str(config)).lines
    table = {line.split()[0]: line.split()[1:] for line in lines}
    assert table["KEY"] == ["VALUE", "FROM"]
    assert table["daemon.cadence"] == ['"1s"', str(config)]
    assert table["daemon.on_stop"] == ['"reap"', str(config)]
    assert table["plan.share"] == ["false", str(config)]
    assert table["plan.spread"] == ["true", "default"]
    assert table["lead.slots"] == ["[]", "default"]
    assert table["lead.uri"] == ['""', "default"]
    assert table["limits.max_nodes"] == ["0", "default"]
    assert table["providers.site.enabled"] == ["true", "default"]
    assert table["providers.site.max_nodes"] == ["3", str(config)]


def test_a_plug_ins_own_defaults_are_shown_too(config: Path) -> None:
    config.write_text(
        f"{TEXT}[providers.far]\ntype = 'kube'\nimage = 'flux'\n"
        "[providers.far.offers.large]\ncores = 8\nmax_nodes = 2\n"
    )
    lines = burst("config", "-c", str(config), "-o", FORM).lines
    assert "providers.site.gpus = 0 (default)" in lines
    assert "providers.far.schedule = 5m (default)" in lines
    assert "providers.far.service = () (default)" in lines
    assert f"providers.far.offers.large.cores = 8 ({config})" in lines
    assert "providers.far.offers.large.join_time = 10s (default)" in lines


def test_a_standing_minimum_of_an_offer_that_there_is_not_is_refused(
    config: Path,
) -> None:
    minimum = '[[providers.site.standing]]\nnodes = 1\noffer = "locale"\n'
    config.write_text(TEXT + minimum)
    assert burst("config", "-c", str(config)).error == (
        f"{config}: providers.site.standing 1: offer: there is no 'locale'; the"
        " provider has local"
    )
    config.write_text((TEXT + minimum).replace("locale", "local"))
    assert burst("config", "-c", str(config)).lines


def test_a_provider_that_is_not_enabled_need_not_be_installed(config: Path) -> None:
    config.write_text("[providers.x]\ntype = 'nope'\nenabled = false\nkey = 3\n")
    lines = burst("config", "-c", str(config), "-o", FORM).lines
    assert f"providers.x.key = 3 ({config})" in lines


def test_without_any_file_all_is_default(home: Path) -> None:
    rows = burst("config", "--json").json["settings"]
    assert {row["from"] for row in rows} == {"default"}
    assert {"key": "deadlines.idle", "value": "5m", "from": "default"} in rows


@pytest.mark.usefixtures("home")
def test_a_home_in_which_nothing_can_be_found_has_no_file(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # The system raises an error for it, as for one that may not be searched.
    monkeypatch.setenv("HOME", "/" + 300 * "x")
    rows = burst("config", "--json").json["settings"]
    assert {row["from"] for row in rows} == {"default"}


@pytest.mark.parametrize(
    ("streams", "status", "told"),
    [
        (">/dev/full", 1, "burst: ERROR: No space left on device\n"),
        (">&-", 0, ""),
        ("--json >&-", 0, ""),
        ("2>&-", 0, ""),
    ],
)
@pytest.mark.usefixtures("home")
def test_streams_that_take_nothing(streams: str, status: int, told: str) -> None:
    command = ["sh", "-c", f"{BURST} config {streams}"]
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (status, told)


def test_a_file_for_which_no_space_is_left_is_named() -> None:
    program = """
import click, errno, os
from burst.cli.target import run_command

@click.command("odd")
def odd():
    raise OSError(errno.EDQUOT, os.strerror(errno.EDQUOT), "/home/u/my.toml")

run_command(odd)
"""
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stderr == "odd: ERROR: /home/u/my.toml: Disk quota exceeded\n"
    assert done.returncode == 1


@pytest.mark.parametrize("scheme", ["local", "embedded"])
@pytest.mark.usefixtures("home")
def test_a_word_that_is_not_utf_8_is_refused(scheme: str) -> None:
    uri = f"{scheme}:///" + os.fsdecode(b"\xe4")
    command = [BURST, "status", "--uri", uri]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    told = r"burst: ERROR: '.*/\\udce4' is not UTF-8; type it anew\n"
    assert done.returncode == 1
    assert re.fullmatch(told, done.stderr)


def test_what_the_command_line_says_counts_and_is_shown_to(config: Path) -> None:
    said = burst("config", "-c", str(config), "--uri", "embedded:///x", "-o", FORM)
    assert "lead.uri = embedded:///x (--uri)" in said.lines


def test_a_file_is_found_by_the_environment_then_in_the_users_directory(
    home: Path, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = home / ".config/burst/burst.toml"
    own.parent.mkdir(parents=True)
    own.write_text('[daemon]\ncadence = "7s"\n')
    assert f"daemon.cadence = 7s ({own})" in burst("config", "-o", FORM).lines
    monkeypatch.setenv("BURST_CONFIG", str(config))
    assert f"daemon.cadence = 1s ({config})" in burst("config", "-o", FORM).lines


def test_a_file_that_the_environment_names_but_is_not_there_is_said_to_be_missing(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BURST_CONFIG", str(home / "typo.toml"))
    error = burst("config").error
    assert error.startswith(f"{home}/typo.toml: cannot be read: No such file")
