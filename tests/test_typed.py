# SPDX-License-Identifier: MIT
"""What is installed tells type checkers that it has types (PEP 561)."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]

PROVIDER = """
from collections.abc import Sequence
from burst.provider import BurstId, BurstSpec, BurstStatus, Offer, Provider, Shape

class Mine(Provider):
    def offers(self) -> Sequence[Offer]:
        return [Offer(name="a", shape=Shape(1), max_nodes=1)]
    def provision(self, spec: BurstSpec) -> None: ...
    def observe(self) -> Sequence[BurstStatus]:
        return []
    def reap(self, burst_id: {kind}) -> None: ...

made: Provider = Mine()
"""


def test_each_installed_package_bears_the_marker() -> None:
    wheel = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]
    packages = wheel["build"]["targets"]["wheel"]["packages"]
    assert len(packages) >= 5
    assert [p for p in packages if not (ROOT / p / "py.typed").is_file()] == []


def check(tmp_path: Path, kind: str) -> str:
    """Return what mypy says of a third party's provider."""
    source = tmp_path / "mine.py"
    source.write_text(PROVIDER.format(kind=kind))
    options = ["--strict", "--config-file=", f"--cache-dir={tmp_path}/cache"]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *options, str(source)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout + done.stderr


def test_a_third_partys_provider_is_checked_against_the_interface(
    tmp_path: Path,
) -> None:
    assert "Success" in check(tmp_path, "BurstId")
    assert "incompatible with supertype" in check(tmp_path, "int")
