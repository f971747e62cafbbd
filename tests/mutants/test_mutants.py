# SPDX-License-Identifier: MIT
"""The tool on a tree of one module: what is caught, what is not, what has no test."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.mutants.__main__ import judge, table
from tests.mutants.covering import Copy, Covering
from tests.mutants.sample import Mutant, mutated, room_of, sample

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
import pytest
from burst.model.toy import enough, forget

@pytest.mark.parametrize("count", [5, 6])
def test_enough(count):
    assert enough(count)
    assert not enough(1)

def test_forget():
    assert forget(["a"]) == []
"""
_TOY = "burst/model/toy.py"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    files = {_TOY: _SOURCE, "tests/model/test_toy.py": _TESTS, "burst/__init__.py": ""}
    for name, text in files.items():
        path = tmp_path / "tree" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "tree"


def _mutant(operator: str, line: int, *, imported: bool = False) -> Mutant:
    return Mutant(_TOY, operator, 0, line, imported)


def test_what_tests_catch_and_what_they_do_not(tree: Path, tmp_path: Path) -> None:
    copy = Copy(tree, tmp_path / "copy")
    copy.measure(tmp_path, ["tests"])
    covering = Covering(tmp_path)
    mutants = {
        _mutant("ReplaceComparisonOperator_Gt_LtE", 8): "caught",
        _mutant("NumberReplacer", 3, imported=True): "survived",
        _mutant("RemoveCall", 11): "caught",
        _mutant("NegateFilter", 12): "survived",
        _mutant("ReplaceUnaryOperator_Delete_Not", 15): "no test",
    }
    verdicts = [judge(copy, covering, mutant, 30) for mutant in mutants]
    assert [verdict["outcome"] for verdict in verdicts] == [*mutants.values()]
    assert verdicts[0]["by"].startswith("tests/model/test_toy.py::test_enough")
    assert verdicts[1]["diff"] == ["-LEAST = 3", "+LEAST = 4"]
    assert (copy.root / _TOY).read_text() == (tree / _TOY).read_text() == _SOURCE
    assert table(verdicts)[1] == pytest.approx(40)


def test_tests_that_cannot_run_catch_nothing(tree: Path, tmp_path: Path) -> None:
    (tree / _TOY).write_text(_SOURCE.replace("3", "{False: 3}[False]"))
    copy = Copy(tree, tmp_path / "copy")
    copy.measure(tmp_path, ["tests"])
    imported = _mutant("ReplaceFalseWithTrue", 3, imported=True)
    verdict = judge(copy, Covering(tmp_path), imported, 30)
    assert verdict["outcome"] == "caught"
    assert verdict["by"] == "tests/model/test_toy.py"
    (copy.root / "tests/model/test_toy.py").rename(copy.root / "tests/test_other.py")
    with pytest.raises(RuntimeError, match="fails without a change: status 4"):
        judge(copy, Covering(tmp_path), imported, 30)


def test_what_tells_nothing_is_no_mutant(tree: Path) -> None:
    assert not mutated(tree, _mutant("ReplaceBinaryOperator_BitOr_BitAnd", 5))
    assert not mutated(tree, _mutant("ReplaceComparisonOperator_IsNot_Is", 7))
    assert "    pass\n    return" in (mutated(tree, _mutant("RemoveCall", 11)) or "")


def test_the_sample_is_of_the_source_alone(tree: Path) -> None:
    before = sample(tree, 3, 22)
    (tree / "tests/model/test_toy.py").unlink()
    (tree / _TOY).write_text("# Lines move.\n" + _SOURCE)
    after = sample(tree, 3, 22)
    assert [m[:3] for m in after] == [m[:3] for m in before]
    assert [m[:3] for m in sample(tree, 3, 23)] != [m[:3] for m in before]


def test_each_package_is_in_the_sample(tree: Path) -> None:
    for name in ("burst/daemon.py", "plugins/burst_toy/toy.py", "burst/testing/toy.py"):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(_SOURCE)
    rooms = {room_of(mutant.file) for mutant in sample(tree, 9, 1)}
    assert rooms == {"burst", "burst/model", "plugins/burst_toy"}
