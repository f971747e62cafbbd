# SPDX-License-Identifier: MIT
"""docs/ensembles.md has each algorithm, metrics that exist, and a valid file."""

from __future__ import annotations

import re
from pathlib import Path

from burst_ensemble.config.file import load_ensemble
from burst_ensemble.core.algorithms import BUILT_IN
from burst_ensemble.core.algorithms.triggers import metrics
from burst_ensemble.runtime.algorithms import load_algorithms

from tests.plugins.ensemble.core.ensembles import NOW, view

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "ensembles.md").read_text("utf-8")


def section(title: str) -> str:
    """The text below a header, as far as the next."""
    header = rf"^#+ [^\n]*{re.escape(title)}[^\n]*\n(.*?)(?=^#|\Z)"
    found = re.search(header, PAGE, re.MULTILINE | re.DOTALL)
    assert found, title
    return found[1]


def test_each_algorithm_is_there_with_a_link_to_its_options() -> None:
    for name in BUILT_IN:
        assert f"| [`{name}`](ensemble-options.md#{name}) |" in PAGE


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
