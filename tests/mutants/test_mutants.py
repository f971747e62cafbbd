# SPDX-License-Identifier: MIT
"""The tool on a tree of one module: what is caught, what is not, what has no test."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.mutants.__main__ import Trial, run
from tests.mutants.covering import Covering
from tests.mutants.sample import Mutant, mutants_of, mutated, sample

_SOURCE = '''\
from __future__ import annotations

LEAST = 3

def enough(count: int | None) -> bool:
    """Say whether."""
    assert count is not None
    return count > LEAST

def forget(names: list[str]) -> list[str]:
    names.clear()
    return [name for name in names if name]

def unused(text: str) -> bool:
    return not text
'''
_TESTS = """\
from burst.model.toy import enough, forget

def test_enough():
    assert enough(5)
    assert not enough(1)

def test_forget():
    assert forget(["a"]) == []
"""
_TOY = "burst/model/toy.py"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    files = {
        "burst/__init__.py": "",
        "burst/model/__init__.py": "",
        _TOY: _SOURCE,
        "tests/model/test_toy.py": _TESTS,
    }
    for name, text in files.items():
        path = tmp_path / "tree" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    subprocess.run(["git", "init", "-q", tmp_path / "tree"], check=True)
    return tmp_path / "tree"


def _mutant(function: str, operator: str) -> Mutant:
    return Mutant(_TOY, function, operator, 0)


def test_what_tests_catch_and_what_they_do_not(tree: Path, tmp_path: Path) -> None:
    trial = Trial(tree, Covering(tree, tmp_path, 0), 30)
    mutants = {
        _mutant("enough", "ReplaceComparisonOperator_Gt_LtE"): "caught",
        _mutant("enough", "ReplaceComparisonOperator_Gt_GtE"): "survived",
        _mutant("", "NumberReplacer"): "survived",  # it runs at the import
        _mutant("forget", "RemoveCall"): "caught",
        _mutant("forget", "NegateFilter"): "survived",
        _mutant("unused", "ReplaceUnaryOperator_Delete_Not"): "no test",
        _mutant("gone", "AddNot"): "absent",
    }
    verdicts = run(trial, list(mutants), 1)
    assert [verdict["outcome"] for verdict in verdicts] == list(mutants.values())
    assert verdicts[0]["by"] == "tests/model/test_toy.py::test_enough"
    assert (tree / _TOY).read_text() == _SOURCE


def test_what_tells_nothing_is_no_mutant(tree: Path) -> None:
    operators = {mutant.operator for mutant in mutants_of(tree, tree / _TOY)}
    # Neither the union of types nor what mypy is told.
    assert not operators & {"ReplaceBinaryOperator_BitOr_BitAnd", "AddNot"}
    assert "ReplaceComparisonOperator_IsNot_Is" not in operators
    changed, place = mutated(tree, _mutant("forget", "RemoveCall")) or ("", None)
    assert "    pass\n    return" in changed
    assert place
    assert place.start == (11, 4)


def test_the_sample_is_of_the_source_alone(tree: Path, tmp_path: Path) -> None:
    before = sample(tree, 3, 22)
    moved = tree.rename(tmp_path / "moved")
    (moved / "tests/model/test_toy.py").unlink()
    (moved / _TOY).write_text("# Lines move.\n" + _SOURCE)
    assert sample(moved, 3, 22) == before != sample(moved, 3, 23)
