# SPDX-License-Identifier: MIT
"""`burst ensemble check`."""

from __future__ import annotations

import json
import re
from pathlib import Path

import click.testing
import pytest
from burst_ensemble.runtime.files import KEPT_VARIABLES

from burst.cli import group
from burst.errors import ConfigError
from tests.plugins.ensemble.cli.file_commands import place, run

__all__ = ["place"]


RULE = (
    'algorithm = {{ name = "triggers", options.rules = [{{ trigger = "start", '
    'action = {{ name = "{}" }} }}] }}'
)


def test_check_says_each_member_its_algorithm_and_the_limits(place: Path) -> None:
    found = run(place, "check")
    lines = found.stdout.splitlines()
    assert "2 members" in lines[0]
    assert "at most 8 nodes and 5.00 of money and 2h" in lines[0]
    assert "5 x two (2 nodes, 10m)" in lines[2]
    assert "workload-demand (scaleChecks 3)" in lines[2]
    assert "triggers (1 rule)" in lines[3]
    assert lines[4] == "for whichever member is first: 2 x any (1 node)"


def test_check_as_json_has_what_the_table_has(place: Path) -> None:
    found = json.loads(run(place, "check", "--json").stdout)
    assert found["limits"] == {"nodes": 8, "money": 5.0, "time": "7200.0s"}
    assert [each["name"] for each in found["members"]] == ["small", "rules"]
    (algorithm,) = found["members"][0]["algorithm"]
    assert algorithm == {"name": "workload-demand", "options": {"scaleChecks": 3}}


def test_a_member_that_is_an_instance_of_its_own_needs_no_limits(place: Path) -> None:
    (place / "e.toml").write_text('name = "x"\n[[members]]\nmode = "external"\n')
    lines = run(place, "check").stdout.splitlines()
    assert "no limits" in lines[0]
    assert "its own" in lines[2]


MORE_JOBS = 'algorithm = [{ name = "more-jobs" }]'


@pytest.mark.parametrize(
    ("file", "endless"),
    [
        ("", False),
        (MORE_JOBS, True),
        (f'{MORE_JOBS}\nmode = "external"', False),
        (MORE_JOBS.replace("]", ', { name = "stop" }]'), False),
        (RULE.format("grow"), True),
        (RULE.format("end"), False),
        (f'{RULE.format("grow")}\n[limits]\ntime = "1h"', False),
        (f"{RULE.format('grow')}\n[limits]\nmoney = 1", False),
    ],
)
def test_a_member_that_nothing_ends_is_told(
    place: Path, file: str, endless: bool
) -> None:
    top = 'name = "x"\n[[members]]\nname = "a"\n'
    (place / "e.toml").write_text(f"{top}{file}\n")
    said = run(place, "check").stderr
    assert said.startswith("warning: nothing in the file ends member a") is endless


def test_a_format_prints_a_line_for_each_member_and_nothing_else(place: Path) -> None:
    assert run(place, "check", "-o", "{name}").stdout == "small\nrules\n"


KUBE = """
[providers.far]
type = "kube"
image = "flux"
form = "{form}"
offers.nodes = {{ cores = 4, max_nodes = 8 }}
"""
ISOLATED = """\
name = "far"
[[members]]
name = "a"
provider = "{provider}"
mode = "isolated"
max = 4
"""


@pytest.mark.parametrize(
    ("provider", "form", "image", "refused"),
    [
        ("far", "job", "", ""),
        ("far", "operator", "", "provider far makes no isolated bursts"),
        ("far", "operator", "lammps:2", ""),
        ("here", "operator", "lammps:2", "here have no images"),
    ],
)
def test_check_knows_by_the_settings_what_providers_make(
    place: Path, provider: str, form: str, image: str, refused: str
) -> None:
    with (place / "burst.toml").open("a") as settings:
        settings.write(KUBE.format(form=form))
    text = ISOLATED.format(provider=provider)
    if image:
        text = text.replace('mode = "isolated"', f'image = "{image}"')
    (place / "e.toml").write_text(text)
    if refused:
        with pytest.raises(ConfigError, match=rf"e.toml:5: .*{refused}"):
            run(place, "check")
    else:
        found = run(place, "check", "-o", "{mode} {image}").stdout
        assert found == f"{'joined' if image else 'isolated'} {image}\n"


def test_the_help_of_up_lists_the_variables_that_are_kept() -> None:
    found = click.testing.CliRunner().invoke(group, ["ensemble", "up", "--help"])
    (listed,) = re.findall(r"no others:(.*?)\.\n", found.stdout, re.DOTALL)
    assert "".join(listed.split()).split(",") == list(KEPT_VARIABLES)
