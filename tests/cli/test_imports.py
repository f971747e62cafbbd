# SPDX-License-Identifier: MIT
"""A command imports what it needs: not the core, and no rich without a terminal."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.cli.cli_harness import CliHarness

_TELL = """
import sys
from burst.cli import main
try:
    main()
finally:
    print("imported:", *sys.modules, file=sys.stderr)
"""
# With the daemon's answer, and on a pipe, these are of no use.
UNUSED = {
    "burst.core.tick",
    "burst.core.records",
    "burst.runtime.engine",
    "burst.runtime.record_store",
    "burst.runtime.service_answers",
    "jinja2",
    "kubernetes",
    "prometheus_client",
    "rich.cells",
    "rich.console",
    "rich.text",
    "tomlkit",
    "waitress",
}


@pytest.mark.parametrize(
    ("command", "module", "more"),
    [
        ("status", "burst.cli.status", set()),
        ("explain", "burst.cli.explain", set()),
        # It is found by its entry point.
        ("report", "burst_report.command", {"importlib.metadata"}),
    ],
)
def test_a_command_that_asks_the_daemon_imports_little(
    served: CliHarness, command: str, module: str, more: set[str]
) -> None:
    name = ["burst-0-nothing"] if command == "explain" else []
    about = ["-c", str(served.config), "--uri", served.uri]
    done = subprocess.run(
        [sys.executable, "-c", _TELL, command, *name, *about],
        env={**os.environ, "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    imported = set(done.stderr.split("imported:")[1].split())
    assert module in imported, done.stderr
    assert not imported & UNUSED - more


def test_a_flux_lead_is_found_without_a_look_at_what_is_installed() -> None:
    asked = "import sys; from burst.runtime.connect import is_flux"
    told = "print(is_flux('local:///run/flux'), 'importlib.metadata' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", f"{asked}; {told}"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "True False\n"
