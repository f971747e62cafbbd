# SPDX-License-Identifier: MIT
"""What a command says where there is no lead."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.cli_harness import burst

pytestmark = pytest.mark.flux


def test_a_shell_that_names_no_lead_is_told_what_to_export(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if Path("/run/flux/local").exists():
        pytest.skip("a system instance runs on this host")
    monkeypatch.delenv("FLUX_URI", raising=False)
    error = burst("status").error
    assert error.startswith("FLUX_URI is not set in this shell, and cannot connect")
    assert "set it as `burst lead init` said (its file env, or export)" in error


def test_a_lead_that_is_named_and_not_there_is_to_be_started() -> None:
    error = burst("status", "--uri", "local:///nowhere/local").error
    assert error.startswith("cannot connect to local:///nowhere/local")
    assert error.endswith("start the broker, or name another with --uri or FLUX_URI")
