# SPDX-License-Identifier: MIT
"""What SECURITY.md says that others cannot do is shown by tests that there are."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in (ROOT / "SECURITY.md").read_text().splitlines()
    if line.startswith("|") and "::" in line
]


@pytest.mark.parametrize("named", [row[-1] for row in ROWS])
def test_each_test_that_it_names_exists(named: str) -> None:
    path, _, name = named.partition("::")
    tree = ast.parse((ROOT / path).read_text())
    found = {n.name for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)}
    assert name in found


def test_the_table_has_a_test_in_each_row() -> None:
    text = (ROOT / "SECURITY.md").read_text()
    section = text.partition("## What others cannot do")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| [^-].*\|$", section, flags=re.M)
    assert len(rows) - 1 == len(ROWS) > 10
