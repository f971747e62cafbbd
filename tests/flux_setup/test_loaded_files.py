# SPDX-License-Identifier: MIT
"""The files that Flux loads stand alone, and say what they need."""

from __future__ import annotations

import ast
import sys
import tomllib
from pathlib import Path

import pytest

from tests.intake.user_cli import FILES

SCRIPTS = sorted(FILES.rglob("*.py"))


def imported(path: Path) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add(str(node.module))
    return {name.partition(".")[0] for name in names}


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_each_imports_flux_and_the_standard_library_only(path: Path) -> None:
    assert imported(path) - {"flux"} <= set(sys.stdlib_module_names)


def test_flux_jobs_has_a_format_of_ours() -> None:
    formats = tomllib.loads((FILES / "flux-jobs.burst.toml").read_text())
    assert list(formats["formats"]) == ["burst"]


def test_a_flux_without_the_scheduler_classes_is_told_what_to_do() -> None:
    text = (FILES / "sched-burst.py").read_text()
    too_old: dict[str, object] = {"__file__": str(FILES / "sched-burst.py")}
    with pytest.raises(ImportError, match=r"needs flux-core 0\.84 or later"):
        exec(compile(without_flux(text), "sched-burst.py", "exec"), too_old)


def without_flux(text: str) -> str:
    return text.replace("from flux.scheduler import", "from flux_too_old import")
