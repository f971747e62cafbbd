# SPDX-License-Identifier: MIT
"""Finding the bindings, each time in a new process that has imported nothing yet."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from burst.errors import LeadError
from burst.flux.bindings import check_version

FIND = """
from burst.errors import LeadError
from burst.flux.bindings import import_core
try:
    print("found", import_core().lib)
except LeadError as error:
    print(error)
"""


def find(path: Path, python_path: Path | None = None) -> str:
    """Return what a new process finds or says, with only that directory on PATH."""
    environment = {**os.environ, "PATH": str(path)}
    if python_path is not None:
        environment["PYTHONPATH"] = str(python_path)
    done = subprocess.run(
        [sys.executable, "-c", FIND],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def bindings(directory: Path, core: str) -> Path:
    """Write a package that looks like Flux's, and return where it is."""
    package = directory / "python" / "_flux"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "_core.py").write_text(core)
    return package


def flux(directory: Path, script: str) -> None:
    """Write a `flux` that runs this script for whatever it is asked."""
    (directory / "flux").write_text(f"#!/bin/sh\n{script}\n")
    (directory / "flux").chmod(0o755)


def test_they_may_be_importable(tmp_path: Path) -> None:
    package = bindings(tmp_path, "lib = 'plain'")
    assert find(tmp_path, package.parent) == "found plain\n"


def test_those_in_the_prefix_of_flux_are_found_without_asking(tmp_path: Path) -> None:
    lib = tmp_path / "lib/flux"
    lib.mkdir(parents=True)
    package = bindings(tmp_path, "lib = 'installed'")
    package.parent.rename(lib / "python{}.{}".format(*sys.version_info))
    (tmp_path / "bin").mkdir()
    flux(tmp_path / "bin", "echo asked >&2; exit 3")
    assert find(tmp_path / "bin") == "found installed\n"


def test_nothing_else_beside_them_is_found(tmp_path: Path) -> None:
    package = bindings(
        tmp_path, "import sys; lib = [p for p in sys.path if 'python/' in p]"
    )
    flux(tmp_path, f"echo {package}")
    assert str(package.parent) not in find(tmp_path)


def test_broken_ones_that_are_importable_are_passed_over(tmp_path: Path) -> None:
    broken = bindings(tmp_path / "wheel", "raise ImportError('libflux-core.so.2')")
    package = bindings(tmp_path / "own", "lib = 'asked'")
    flux(tmp_path, f"echo {package}")
    assert find(tmp_path, broken.parent) == "found asked\n"


def test_no_flux_at_all_is_said_with_what_to_do(tmp_path: Path) -> None:
    said = find(tmp_path)
    assert "import _flux._core: No module named" in said
    assert "no flux on PATH" in said
    assert "install flux-core 0.84 or later" in said


def test_a_flux_that_fails_is_said(tmp_path: Path) -> None:
    flux(tmp_path, "echo no python here >&2; exit 3")
    said = find(tmp_path)
    assert "exit status 3" in said
    assert "no python here" in said
    assert "flux python" in said


def test_a_directory_without_bindings_is_said(tmp_path: Path) -> None:
    flux(tmp_path, f"echo {tmp_path / 'none' / '_flux'}")
    assert "No such file or directory" in find(tmp_path)


def test_bindings_that_miss_cffi_are_said_with_what_to_do(tmp_path: Path) -> None:
    missing = "raise ModuleNotFoundError(\"No module named '_cffi_backend'\")"
    flux(tmp_path, f"echo {bindings(tmp_path, missing)}")
    said = find(tmp_path)
    assert "_cffi_backend" in said
    assert "pip install 'flux-burst-orchestrator[flux]'" in said


@pytest.mark.parametrize(
    ("broker", "library"),
    [("0.88.0", "0.88.0"), ("0.88.5", "0.88.0"), ("0.88.0-12-gabc", "0.88.0")],
)
def test_versions_that_go_together(broker, library):
    check_version(broker, library)


@pytest.mark.parametrize(
    ("broker", "library", "why"),
    [
        ("0.83.0", "0.83.0", "needs 0.84 or later"),
        ("0.88.0", "0.87.0", "the Python bindings found are of 0.87.0"),
        ("1.0.0", "0.88.0", "put the flux of that broker first on PATH"),
        ("new", "0.88.0", "not a version"),
    ],
)
def test_versions_that_do_not(broker, library, why):
    with pytest.raises(LeadError, match=why):
        check_version(broker, library)
