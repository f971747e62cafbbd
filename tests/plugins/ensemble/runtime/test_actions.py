# SPDX-License-Identifier: MIT
"""Commands of `[custom]`: what they are told, and what the log tells of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from burst_ensemble.core.intents import RunCustom
from burst_ensemble.runtime.actions import run_command

from tests.plugins.ensemble.core.ensembles import ensemble
from tests.support.waiting import wait_until

ASKED = RunCustom(member="m", command="tell", number=3)


def test_a_command_has_the_variables_that_jobs_may_have_and_no_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLOUD_SECRET", "x" * 40)
    monkeypatch.setenv("LANG", "C.UTF-8")
    spec = ensemble(
        custom={"tell": ("sh", "-c", "env > all; mv all told")}, directory=str(tmp_path)
    )
    run_command(spec, ASKED, "local:///run/lead")
    told = tmp_path / "told"
    wait_until(told.exists, "the command")
    found = dict(line.split("=", 1) for line in told.read_text().splitlines())
    assert found["FLUX_URI"] == "local:///run/lead"
    assert found["BURST_ENSEMBLE"] == spec.name
    assert (found["BURST_MEMBER"], found["BURST_COMMAND_NUMBER"]) == ("m", "3")
    assert found["LANG"] == "C.UTF-8"
    assert "CLOUD_SECRET" not in found


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("sh", "-c", "exit 4"), "command tell of m ended with status 4"),
        (("/nowhere/save.sh",), "command tell of m cannot be run: "),
        (("true", "a\0b"), "command tell of m cannot be run: embedded null byte"),
    ],
)
def test_a_command_that_fails_is_told_in_the_log(
    words: tuple[str, ...], said: str, caplog: pytest.LogCaptureFixture
) -> None:
    run_command(ensemble(custom={"tell": words}), ASKED, "")
    wait_until(lambda: said in caplog.text, lambda: f"{said!r} in {caplog.text}")
