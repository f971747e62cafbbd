# SPDX-License-Identifier: MIT
"""What is printed where followers run, and what it means for the lead."""

import os
import platform
from pathlib import Path

import msgspec
import pytest

from burst.kits.follower_facts import FollowerFacts, judge, parse, script
from burst.model.finding import Finding, Level
from burst.model.lead import LeadIdentity
from burst.testing import example_lead
from tests.flux_instance import FLUX, MISSING
from tests.support.commands import run_captured

MACHINE = "x86_64"
GOOD = FollowerFacts(
    MACHINE, "7 flux", "/bin/flux", "commands: 0.88.3 libflux-core: 0.88.3"
)


@pytest.fixture
def lead(tmp_path: Path) -> LeadIdentity:
    return example_lead(tmp_path)


def found(facts: FollowerFacts, lead: LeadIdentity) -> list[Finding]:
    """Return what is no good."""
    return [f for f in judge(facts, lead, MACHINE) if f.level is not Level.OK]


def change(**changes: str | None) -> FollowerFacts:
    return msgspec.structs.replace(GOOD, **changes)


def run(text: str, **environment: str) -> FollowerFacts:
    done = run_captured(
        ["/bin/sh", "-c", text],
        env={"PATH": os.environ["PATH"], **environment},
        check=True,
    )
    facts, rest = parse(done.stdout)
    assert facts is not None
    assert rest == ""
    return facts


def test_what_fits_the_lead_is_told_as_such(lead: LeadIdentity) -> None:
    assert [(f.level, f.what) for f in judge(GOOD, lead, MACHINE)] == [
        (Level.OK, "followers there run on x86_64, as the lead does"),
        (Level.OK, "followers there run as user 7 (flux)"),
        (
            Level.OK,
            "followers there run /bin/flux, Flux 0.88.3, which matches the lead's"
            " 0.88.0",
        ),
    ]


@pytest.mark.parametrize(
    ("facts", "level", "words"),
    [
        (change(machine="aarch64"), Level.NOTE, "run on aarch64, and the lead runs"),
        (change(user="7"), Level.NOTE, "user 7, who has no name in /etc/passwd"),
        (change(user="7 7"), Level.NOTE, "user 7, who has no name"),
        (change(flux=""), Level.WRONG, "there is no Flux in the image"),
        (change(version="commands: 0.87.0"), Level.WRONG, "Flux 0.87.0, which a lead"),
        (change(version="no such file"), Level.WRONG, "version` fails in the image"),
        (change(version="commands: new"), Level.WRONG, "fails in the image"),
        (change(curve="not supported"), Level.WRONG, "ZeroMQ has no CURVE: not supp"),
    ],
)
def test_what_does_not_fit_is_told_with_what_to_do(
    facts: FollowerFacts, level: Level, words: str, lead: LeadIdentity
) -> None:
    (finding,) = found(facts, lead)
    assert finding.level is level
    assert words in finding.what
    assert finding.advice


def test_what_is_not_known_is_not_judged(lead: LeadIdentity) -> None:
    assert list(judge(FollowerFacts(), lead, MACHINE)) == []
    other = msgspec.structs.replace(lead, follower_module="m")
    assert found(change(flux=""), other) == []


def test_other_output_has_no_facts() -> None:
    refused = "connect: Connection refused"
    assert parse(f"{refused}\n") == (None, refused)
    facts, rest = parse("burst-machine: x\nit failed\n")
    assert (facts, rest) == (FollowerFacts(machine="x"), "it failed")


def test_this_machine_is_found() -> None:
    facts = run(script())
    assert facts.machine == platform.machine()
    assert facts.user.split()[0] == str(os.geteuid())
    assert facts.flux is None


def test_a_flux_that_fails_is_found(tmp_path: Path, lead: LeadIdentity) -> None:
    program = tmp_path / "a flux"
    program.write_text("#!/bin/sh\necho it is $1 broken >&2; exit 1\n")
    program.chmod(0o700)
    facts = run(script(str(program)))
    assert facts.flux == str(program)
    assert facts.version == "it is version broken"
    assert facts.curve == "it is keygen broken"
    assert run(script(str(tmp_path / "none"))).flux == ""


@pytest.mark.flux
@pytest.mark.skipif(not FLUX, reason=MISSING)
def test_the_flux_of_this_machine_fits_a_lead_of_this_machine(
    lead: LeadIdentity,
) -> None:
    facts = run(script("flux"), FLUX_URI="local:///nowhere")
    assert facts.flux == FLUX
    assert facts.curve == ""
    levels = [f.level for f in judge(facts, lead, platform.machine())]
    assert set(levels) == {Level.OK}
