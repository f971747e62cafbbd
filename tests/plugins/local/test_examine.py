# SPDX-License-Identifier: MIT
"""What the local provider finds before it starts anything."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from burst_local.provider import LocalProvider, LocalSettings

from burst.model.finding import Finding, Level
from burst.model.lead import GuestAccess, LeadIdentity
from tests.builders import identity
from tests.support.fluxlead import short_directory

LEAD = identity("lead-0,burst-0-[0-1]", kind="flux", version="0.88.0", owner="o")
PROGRAM = "#!/bin/sh\necho 'commands: 0.88.3'\n"


@pytest.fixture
def place() -> Iterator[Path]:
    with short_directory() as path:
        flux = path / "flux"
        flux.write_text(PROGRAM)
        flux.chmod(0o755)
        yield path


def examine(
    place: Path, lead: LeadIdentity | None = LEAD, **options: Any
) -> list[Finding]:
    given = {"flux": str(place / "flux"), "dir": str(place / "home"), **options}
    provider = LocalProvider("p", LocalSettings(**given), "o")
    return list(provider.examine(lead))


def only(findings: list[Finding], level: Level) -> str:
    """Return the one finding that is not as it should be."""
    (bad,) = (finding for finding in findings if finding.level is not Level.OK)
    assert bad.level is level
    assert bad.advice
    return bad.what


@pytest.mark.parametrize("lead", [LEAD, None])
def test_all_is_well_and_nothing_made(lead: LeadIdentity | None, place: Path) -> None:
    found = examine(place, lead)
    assert [(finding.level, finding.what) for finding in found] == [
        (Level.OK, f"followers run {place}/flux, Flux 0.88.3"),
        (Level.OK, f"followers have their directories in {place}/home/o.p"),
    ]
    assert os.listdir(place) == ["flux"]


def test_a_lead_may_need_no_flux(place: Path) -> None:
    lead = msgspec.structs.replace(LEAD, follower_module="m")
    found = examine(place, lead, flux="/no/flux")
    assert {finding.level for finding in found} == {Level.OK}


@pytest.mark.parametrize(
    ("script", "version", "what"),
    [
        (None, "0.88.0", "there is no program"),
        ("exit 1", "0.88.0", "version` failed"),
        ("echo commands: none", "0.88.0", "not a version of Flux: 'none'"),
        (
            "echo commands: 0.87.9",
            "0.88.0",
            "Flux 0.87.9, which a lead of 0.88.0 rejects",
        ),
    ],
)
def test_a_flux_that_the_lead_would_not_take_is_wrong(
    script: str | None, version: str, what: str, place: Path
) -> None:
    flux = place / "flux"
    if script is None:
        flux.unlink()
    else:
        flux.write_text(f"#!/bin/sh\n{script}\n")
    lead = msgspec.structs.replace(LEAD, version=version)
    assert what in only(examine(place, lead), Level.WRONG)


@pytest.mark.parametrize(
    ("inside", "what"),
    [
        ("flux", "cannot be"),
        ("flux/deeper", "cannot be"),
        ("x" * 60, "the path of a unix socket may have at most 107"),
    ],
)
def test_a_place_where_no_directory_can_be_is_wrong(
    inside: str, what: str, place: Path
) -> None:
    assert what in only(examine(place, dir=str(place / inside)), Level.WRONG)


def test_a_host_too_long_for_its_socket_is_noted(place: Path) -> None:
    late = "n" * 50
    lead = identity(f"lead-0,burst-0-0,{late}", kind="flux", version="0.88.0")
    found = examine(place, lead)
    assert f"{late} could not be a follower" in only(found, Level.NOTE)


def test_the_kernels_own_directories_take_no_followers(place: Path) -> None:
    told = only(examine(place, dir="/sys/x/y"), Level.WRONG)
    assert told == "/sys/x/y/o.p: cannot be made, since /sys cannot be written"


def test_a_place_out_of_reach_of_the_leads_guests_is_wrong(place: Path) -> None:
    closed = place / "closed"
    closed.mkdir(0o700)
    place.chmod(0o711)
    options = {"dir": str(closed / "home")}
    assert all(found.level is Level.OK for found in examine(place, LEAD, **options))
    system = msgspec.structs.replace(LEAD, access=GuestAccess(allow_guest_user=True))
    said = only(examine(place, system, **options), Level.WRONG)
    assert f"{closed}: guests may not pass through it" in said
    closed.chmod(0o711)
    assert all(found.level is Level.OK for found in examine(place, system, **options))
