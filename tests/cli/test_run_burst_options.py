# SPDX-License-Identifier: MIT
"""The flags of `run-burst` that providers bring, here one of a third party."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from burst.cli.run_burst_options import GivenFlags, provider_flag_options
from burst.config import ProviderTable
from burst.errors import ConfigError
from burst.kits.pod_type import PodType
from burst.kits.pods.diagnose.own_image import OwnImage
from burst.model.shape import Shape
from burst.provider_type import (
    GROUP,
    NodesRequest,
    ProviderFlag,
    ProviderType,
    TableRequest,
)


class RackType(ProviderType):
    flags: Sequence[ProviderFlag] = (
        ProviderFlag("rack", "Where it stands.", selects=True),
        ProviderFlag("color", "Of no use.", ignored=True),
    )

    def options(
        self, given: Mapping[str, str], table: Mapping[str, Any], nodes: int
    ) -> dict[str, Any]:
        return {**table, "rack": given["rack"], "nodes": nodes}

    def notes(
        self, given: Mapping[str, str], options: Mapping[str, Any]
    ) -> Sequence[str]:
        return [f"the rack is {given['rack']} of {options['dir']}"]


TYPE = RackType()
POINT = EntryPoint("rack", f"{__name__}:TYPE", GROUP)
GONE = EntryPoint("gone", "no_such_package:TYPE", GROUP)


def run(*words: str, points: Sequence[EntryPoint] = (POINT,)) -> GivenFlags:
    seen: list[GivenFlags] = []

    def function(flags: GivenFlags) -> None:
        seen.append(flags)

    command = click.command()(provider_flag_options(function, points))
    result = CliRunner().invoke(command, words)
    assert result.exit_code == 0, result.output
    return seen[0]


def test_a_provider_brings_its_own() -> None:
    given = run("--rack", "r7", "--color", "red")
    assert given.selected_type() == "rack"
    assert given.words() == ["--rack r7"]
    base = ProviderTable(type="rack", options={"dir": "/d"})
    assert given.notes(base) == ["the rack is r7 of /d"]
    assert given.table(base, 4).options == {"dir": "/d", "rack": "r7", "nodes": 4}


def test_without_any_the_table_is_as_it_was() -> None:
    given = run()
    base = ProviderTable(type="local")
    assert given.selected_type() == ""
    assert given.notes(base) == []
    assert given.table(base, 4) is base


def test_a_flag_of_another_type_is_refused() -> None:
    with pytest.raises(ConfigError, match="--rack: a provider of type local has no"):
        run("--rack", "r7").table(ProviderTable(type="local"), 1)


def test_a_package_that_cannot_be_imported_keeps_nobody_from_the_others(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run("--rack", "r7", points=(GONE, POINT)).selected_type() == "rack"
    told = capsys.readouterr().err
    assert "flags of provider type gone are left out: " in told
    assert "cannot be imported: No module named" in told


def test_flags_of_a_type_that_several_packages_have_are_left_out(
    capsys: pytest.CaptureFixture[str],
) -> None:
    other = EntryPoint("gone", "another_package:TYPE", GROUP)
    assert run("--rack", "r7", points=(GONE, other, POINT)).types == {"rack": TYPE}
    told = capsys.readouterr().err
    assert told.count("flags of provider type gone are left out: packages ") == 1
    assert "packages another_package and no_such_package each have 'gone'" in told


def test_pods(tmp_path: Path) -> None:
    given = {"image": "x", "flux-operator-yaml": str(tmp_path / "o.yaml")}
    assert PodType().options(given, {"namespace": "n"}, 2) == {
        "namespace": "n",
        "image": "x",
        "form": "operator",
        "operator_yaml": str(tmp_path / "o.yaml"),
    }
    assert PodType().notes({}, {}) == []
    nodes = NodesRequest(name="nodes", shape=Shape(8), nodes=4)
    wanted = TableRequest(each=(nodes,), total=8)
    assert PodType().table_template(wanted) == ""
    key = {"image": "x", "munge-key": str(tmp_path / "munge.key")}
    made = PodType().options(key, {}, 2)
    assert made == {"image": "x", "munge_key": str(tmp_path / "munge.key")}
    (said,) = PodType().notes(key, made)
    assert "goes into the burst's Secret, and a munged of the image" in said


def test_pods_run_the_image_of_the_leads_own_by_default() -> None:
    plain, viewed = OwnImage("lead:1"), OwnImage("lead:1", "view:2")
    made = PodType(lambda: plain).options({}, {}, 2)
    assert made == {"image": "lead:1"}
    (said,) = PodType(lambda: plain).notes({}, made)
    assert "followers run image lead:1; --image names another" in said
    assert PodType(lambda: plain).options({}, {"image": "x"}, 2) == {"image": "x"}
    found = PodType(lambda: viewed).options({}, {}, 2)
    assert found == {"image": "lead:1", "view": "view:2"}


def test_no_sdk_is_imported_for_them() -> None:
    code = "import sys; from burst.provider_type import *;"
    code += "found = [provider_type(kind) for kind in installed_types()];"
    code += "assert len(found) >= 7;"
    code += "sys.exit(any(m.split('.')[0] in ('google', 'kubernetes') for m in"
    code += " sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
