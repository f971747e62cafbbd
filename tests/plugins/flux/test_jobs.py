# SPDX-License-Identifier: MIT
"""How the jobs of the other instance are listed, and errors of the connection."""

from __future__ import annotations

from pathlib import Path

import pytest
from burst_flux.jobs import OtherFlux

from burst.errors import Transient
from tests.plugins.flux.flux_program import FluxProgram, job


@pytest.fixture
def program(tmp_path: Path) -> FluxProgram:
    return FluxProgram(tmp_path)


@pytest.fixture
def other(program: FluxProgram) -> OtherFlux:
    return OtherFlux(str(program.path), "ssh://host/run/flux/local", 20.0)


def test_a_job_without_a_name_does_not_hide_the_others(
    program: FluxProgram, other: OtherFlux
) -> None:
    """flux-jobs(1) leaves out what is empty."""
    nameless = job("", "RUN")
    del nameless["name"]
    program.jobs(nameless, job("burst.a.b.c", "RUN"))
    assert [each.name for each in other.active()] == ["", "burst.a.b.c"]


@pytest.mark.parametrize(
    "notice",
    [
        "Unauthorized access is not permitted. Invalid attempts are logged.",
        "Your account is inactive after 90 days.",
    ],
)
def test_a_notice_of_ssh_does_not_say_what_is_wrong(
    program: FluxProgram, other: OtherFlux, notice: str
) -> None:
    said = f"ERROR: Unable to connect to Flux: {notice}\nssh: Connection timed out"
    for word in ("submit", "cancel", "queue", "resource"):
        program.fail(word, f"flux-{word}: {said}")
    program.jobs(job("burst.a.b.c", "RUN"))
    with pytest.raises(Transient):
        other.submit("sleep")
    with pytest.raises(Transient):
        other.cancel(other.active(), 0.0)
    with pytest.raises(Transient):
        other.closed("batch")
