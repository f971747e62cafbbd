# SPDX-License-Identifier: MIT
"""docs/ensembles.md has each algorithm, metrics that exist, and a valid file."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest
from burst_ensemble.config.file import load_ensemble
from burst_ensemble.core.algorithms import BUILT_IN
from burst_ensemble.core.algorithms.common import IdleOptions
from burst_ensemble.core.metrics import metrics
from burst_ensemble.runtime.algorithms import load_algorithms

from tests.plugins.ensemble.core.ensembles import NOW, view

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "ensembles.md").read_text("utf-8")
PAGE_OF_OPTIONS = (DOCS / "ensemble-options.md").read_text("utf-8")


def section(title: str) -> str:
    """The text below a header, as far as the next."""
    header = rf"^#+ [^\n]*{re.escape(title)}[^\n]*\n(.*?)(?=^#|\Z)"
    found = re.search(header, PAGE, re.MULTILINE | re.DOTALL)
    assert found, title
    return found[1]


@pytest.mark.parametrize("name", BUILT_IN)
def test_each_algorithm_is_there_with_a_link_to_its_options(name: str) -> None:
    assert f"| [`{name}`](ensemble-options.md#{name}) |" in PAGE
    options = PAGE_OF_OPTIONS.partition(f"## `{name}`\n")[2].partition("\n## ")[0]
    for field in msgspec.structs.fields(BUILT_IN[name].Options):
        is_common = field.name in IdleOptions.__struct_fields__
        assert is_common or f"| `{field.encode_name}` |" in options


def test_the_file_on_the_page_is_right(tmp_path: Path) -> None:
    (text,) = re.findall(r"```toml\n(.*?)```", PAGE, re.S)
    path = tmp_path / "page.toml"
    path.write_text(text)
    file = load_ensemble(path, ["local"])
    assert list(load_algorithms(file)["sizes"]) == [
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
    assert set(names) <= metrics(view(), NOW).keys()
