# SPDX-License-Identifier: MIT
from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from burst.errors import ConfigError
from burst.kits.program import flux_version
from burst.model.version import major_minor
from tests.support.fluxlead import needs_flux


def script(directory: Path, body: str) -> str:
    path = directory / "flux"
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return str(path)


def test_the_version_of_the_commands_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FLUX_URI", "local:///nowhere")
    says = 'echo "commands:    \t\t0.84.1"; echo "broker: 0.1.0"; test -z "$FLUX_URI"'
    assert flux_version(script(tmp_path, says)) == "0.84.1"


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("exit 3", "cannot be asked for its version: .*exit status 3.*see that `"),
        ("echo hello", "does not say its version; is it the flux of flux-core"),
    ],
)
def test_what_does_not_tell_is_refused(body: str, text: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=text):
        flux_version(script(tmp_path, body))


def test_what_is_no_program_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="No such file"):
        flux_version(str(tmp_path / "flux"))


@pytest.mark.flux
@needs_flux
def test_a_real_flux_tells_its_version() -> None:
    program = shutil.which("flux")
    assert program
    assert major_minor(flux_version(program)) >= (0, 84)
