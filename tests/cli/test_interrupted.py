# SPDX-License-Identifier: MIT
"""Ctrl-C ends a program quietly, also while it is still being imported."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from burst.model.exit_status import INTERRUPTED

_INTERRUPTED_IMPORT = """
import signal, sys

class CtrlC:
    def find_spec(self, name, path=None, target=None):
        if name == "click":
            signal.raise_signal(signal.SIGINT)

sys.meta_path.insert(0, CtrlC())
"""


def programs() -> dict[str, str]:
    project = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))
    found: dict[str, str] = project["project"]["scripts"]
    return found


@pytest.mark.parametrize("name", ["burst", "flux-burst", "run-burst"])
def test_ctrl_c_while_a_program_is_imported_ends_it_quietly(name: str) -> None:
    module, _, function = programs()[name].partition(":")
    started = f"from {module} import {function}\n{function}()"
    done = subprocess.run(
        [sys.executable, "-c", _INTERRUPTED_IMPORT + started],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (INTERRUPTED, "")
