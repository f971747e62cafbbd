# SPDX-License-Identifier: MIT
"""`burst doctor` about the ensembles that the daemon starts by itself."""

from __future__ import annotations

from pathlib import Path

from burst_ensemble.doctor import check_settings

from burst.config import parse
from burst.model.finding import Finding, Level

FILE = """name = "{name}"
[[members]]
name = "a"
provider = "near"
algorithm = "{algorithm}"
"""


def check(*files: Path) -> list[Finding]:
    settings = {
        "ensemble": {"files": [str(file) for file in files]},
        "providers": {"near": {"type": "local"}},
    }
    return check_settings(parse(settings, "burst.toml"))


def write(path: Path, name: str = "sweep", algorithm: str = "stop") -> Path:
    path.write_text(FILE.format(name=name, algorithm=algorithm))
    return path


def test_without_files_nothing_is_told() -> None:
    assert check() == []


def test_each_file_is_told_with_its_members(tmp_path: Path) -> None:
    one, two = write(tmp_path / "1.toml"), write(tmp_path / "2.toml", "other")
    found = check(one, two)
    assert [each.level for each in found] == [Level.OK, Level.OK]
    assert found[0].what == f"{one} is ensemble sweep of a"


def test_what_is_wrong_in_a_file_is_told_with_its_line(tmp_path: Path) -> None:
    file = write(tmp_path / "1.toml", algorithm="stopp")
    found = check(file, tmp_path / "missing.toml")
    assert [each.level for each in found] == [Level.WRONG, Level.WRONG]
    assert f"{file}:5" in found[0].what
    assert "stopp" in found[0].what
    assert all(each.advice for each in found)
    assert "missing.toml" in found[1].what


def test_two_files_of_one_name_are_wrong(tmp_path: Path) -> None:
    one, two = write(tmp_path / "1.toml"), write(tmp_path / "2.toml")
    first, second = check(one, two)
    assert first.level is Level.OK
    assert second.level is Level.WRONG
    assert str(one) in second.what
