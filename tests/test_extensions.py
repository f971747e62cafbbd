# SPDX-License-Identifier: MIT
"""What other packages add to ours, and that ours does without any."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

NEW = """
from __future__ import annotations

import click

from burst.config.convert import PackageTable
from burst.errors import ConfigError


@click.command()
def hello() -> None:
    "Say it."
    click.echo("hello")


@click.group()
def greet() -> None:
    "Greet."


class Hello(PackageTable, frozen=True):
    size: int = 1

    def check(self, where: str) -> None:
        if self.size > 3:
            raise ConfigError(f"{where}: hello.size: {self.size} is too large")


def fail(settings: object) -> None:
    print("I fail")
    raise SystemExit(settings and 3)
"""
POINTS = """
[burst.commands]
hello = burst_hello:hello
greet = burst_hello:greet
greet.all = burst_hello:hello
broken = burst_hello:nothing
odd = burst_hello:fail
flat = burst_hello:hello
flat.x = burst_hello:hello

[burst.doctor]
failing = burst_hello:fail
unwell = burst_hello:nothing

[burst.settings]
hello = burst_hello:Hello
"""
# Of each text what is wrong with it as settings; an empty line if nothing is.
READ = """
import tomllib
from burst.config import parse
from burst.errors import ConfigError

for text in texts:
    try:
        parse(tomllib.loads(text), "x")
    except ConfigError as error:
        print(error)
    else:
        print()
"""
# What is installed but for packages that are no providers of ours.
WITHOUT = """
import importlib.metadata, sys

PACKAGES = (
    "burst_ensemble",
    "burst_ensemble_agent",
    "burst_ensemble_replay",
    "burst_replay",
    "burst_report",
    "burst_watch",
)
every = importlib.metadata.entry_points
importlib.metadata.entry_points = lambda **wanted: [
    point for point in every(**wanted) if not point.module.startswith(PACKAGES)
]
sys.modules.update(dict.fromkeys(PACKAGES))
"""


@pytest.fixture
def site(tmp_path: Path) -> Mapping[str, str]:
    """The environment of a program for which a package is installed."""
    (tmp_path / "burst_hello.py").write_text(NEW)
    info = tmp_path / "burst_hello-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: burst-hello\nVersion: 1"
    )
    (info / "entry_points.txt").write_text(POINTS)
    return {**os.environ, "PYTHONPATH": str(tmp_path)}


def run(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code],
        env=environment or None,
        capture_output=True,
        text=True,
        check=False,
    )


def burst(*words: str, before: str = "", **environment: str) -> str:
    """What a command prints, errors too."""
    code = f"{before}\nimport sys\nsys.argv = {['burst', *words]!r}\n"
    found = run(f"{code}from burst.cli import main\nmain()", **environment)
    return found.stdout + found.stderr


def test_a_package_adds_a_command(site: Mapping[str, str]) -> None:
    assert burst("hello", **site) == "hello\n"
    assert burst("greet", "all", **site) == "hello\n"
    assert "\n  all " in burst("greet", "--help", **site)
    assert "greet.all" not in burst("--help", **site)
    assert "Did you mean hello?" in burst("hallo", **site)
    broken = burst("broken", **site)
    assert "burst.commands: broken of package burst-hello cannot be imported" in broken
    assert "Traceback" not in broken
    assert "burst.commands: odd is <" in burst("odd", **site)
    assert "flat is <Command hello>, not a click Group" in burst("flat", "x", **site)
    listed = burst("--help", **site)
    assert "odd is <" in listed
    assert "broken of package burst-hello cannot be" in listed
    assert "\n  status " in listed


def test_the_check_of_a_package_that_fails_ends_no_other(
    site: Mapping[str, str],
) -> None:
    told = burst("doctor", **{**site, "FLUX_URI": "local:///nothing"})
    found = " ".join(told.split())
    assert "wrong failing SystemExit: 3 ->" in found
    assert "wrong unwell burst.doctor: unwell of package burst-hello cannot" in found
    assert "wrong lead " in found


def test_what_a_package_prints_is_not_in_the_json_of_doctor(
    site: Mapping[str, str],
) -> None:
    code = "import sys; sys.argv = ['burst', 'doctor', '--json']"
    code += "\nfrom burst.cli import main; main()"
    found = run(code, **{**site, "FLUX_URI": "local:///nothing"})
    assert not json.loads(found.stdout)["ok"]
    assert "I fail" in found.stderr


def test_a_package_adds_a_table_of_settings(
    site: Mapping[str, str], tmp_path: Path
) -> None:
    file = tmp_path / "burst.toml"
    file.write_text("[hello]\nsize = 2\n")
    assert "hello.size" in burst("config", "-c", str(file), **site)
    told = {
        "": "",
        "[hello]\nsize = 2\n": "",
        "[hello]\nsize = 4\n": "x: hello.size: 4 is too large",
        "[hello]\nsise = 4\n": "x: hello: sise: no such key",
        "hello = 1\n": "hello: expected a table [hello]",
        "[packages.hello]\nsize = 2\n": "packages: no such key",
        "[hallo]\nsize = 2\n": "hallo: no such key",
    }
    found = run(f"texts = {list(told)}\n{READ}", **site)
    for why, said in zip(told.values(), found.stdout.splitlines(), strict=True):
        assert why in said
        assert bool(why) == bool(said)


def test_without_packages_that_may_be_left_out_all_else_works(tmp_path: Path) -> None:
    file = tmp_path / "burst.toml"
    file.write_text('[providers.near]\ntype = "local"\n')
    ours = burst("config", "-c", str(file), before=WITHOUT)
    assert "providers.near.type" in ours
    left_out = ("ensemble", "replay", "report", "watch")
    said = burst("--help", before=WITHOUT)
    assert not any(f"\n  {name} " in said for name in left_out)
    assert "No such command 'ensemble'" in burst("ensemble", before=WITHOUT)
    file.write_text("[ensemble]\nfiles = []\n")
    assert "ensemble: no such key" in burst("config", "-c", str(file), before=WITHOUT)
    every = "import burst.daemon, burst.doctor, burst.http.service"
    found = run(f"{WITHOUT}\n{every}")
    assert (found.returncode, found.stderr) == (0, "")
