# SPDX-License-Identifier: MIT
"""docs/ensembles.md has each algorithm and option, and files that are right."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest
from burst_ensemble.config.file import load_ensemble
from burst_ensemble.config.spec import EnsembleLimits, JobSpec
from burst_ensemble.core.algorithms import BUILT_IN
from burst_ensemble.core.algorithms.idling import IdleOptions
from burst_ensemble.core.algorithms.triggers import TriggerAction, TriggerRule
from burst_ensemble.core.metrics import metric
from burst_ensemble.runtime.algorithms import load_algorithms

from tests.plugins.ensemble.core.ensembles import NOW, view

PAGE = (Path(__file__).parents[2] / "docs" / "ensembles.md").read_text("utf-8")
fields = msgspec.structs.fields
COMMON = {field.name for field in fields(IdleOptions)}


def section(title: str) -> str:
    """The text below a header, as far as the next."""
    header = rf"^#+ [^\n]*{re.escape(title)}[^\n]*\n(.*?)(?=^#|\Z)"
    found = re.search(header, PAGE, re.MULTILINE | re.DOTALL)
    assert found, title
    return found[1]


def rows(text: str) -> dict[str, str]:
    """The rows of the tables in a text, by their first cell."""
    return dict(re.findall(r"^\| `(\w+)` \| (.*) \|$", text, re.M))


def check_rows(kind: type[msgspec.Struct], text: str, but: set[str]) -> None:
    found = rows(text)
    for field in fields(kind):
        if field.name in but:
            continue
        assert field.encode_name in found, (kind, field.encode_name)
        default = field.default
        if isinstance(default, int) and not isinstance(default, bool):
            assert f"`{default}`" in found[field.encode_name]


@pytest.mark.parametrize("name", BUILT_IN)
def test_each_algorithm_has_its_options_with_their_defaults(name: str) -> None:
    check_rows(BUILT_IN[name].Options, section(name), COMMON)


def test_common_options_rules_jobs_and_limits_are_there() -> None:
    check_rows(IdleOptions, section("Algorithms"), set())
    check_rows(TriggerRule, section("triggers"), {"name"})
    check_rows(TriggerAction, section("triggers"), set())
    check_rows(JobSpec, section("[[jobs]]"), {"commands"})
    check_rows(EnsembleLimits, section("[limits]"), set())


def test_the_file_on_the_page_is_right(tmp_path: Path) -> None:
    (text,) = re.findall(r"```toml\n(.*?)```", PAGE, re.S)
    path = tmp_path / "page.toml"
    path.write_text(text)
    file = load_ensemble(path, ["local"])
    assert list(load_algorithms(file.spec, file)["sizes"]) == [
        "workload-demand",
        "stop",
    ]


def test_the_metrics_on_the_page_are_there() -> None:
    text = section("triggers")
    names = [
        name.replace("JOBS", "all")
        for name in re.findall(r"`((?:count|mean|nodes|metrics)\.[\w.-]+)`", text)
    ]
    assert len(names) >= 9
    for name in names:
        metric(view(), name, NOW)
