# SPDX-License-Identifier: MIT
"""Facts to findings: settings, Flux, the lead, and how it was started."""

from typing import Any

import msgspec
import pytest

from burst.config import Settings, parse
from burst.doctor.check_setup import (
    check_bootstrap,
    check_flux_program,
    check_lead,
    check_settings,
    check_user,
)
from burst.doctor.facts import FluxFacts, LeadFacts, ReadFailure, SettingsFacts
from burst.flux.identity import BootInfo
from burst.model.finding import Level
from burst.model.lead import Bootstrap, HostEntry, LeadIdentity
from burst.model.shape import Shape
from tests.builders import identity
from tests.doctor.reading import NOTE, OK, WRONG, levels, said

FLUX = FluxFacts(
    program="/usr/bin/flux",
    version="0.88.0",
    bindings="/usr/lib/flux/_flux",
    library="0.88.3",
)
LEAD = identity(kind="flux", uri="local:///x")
BOOT = BootInfo(rank=0, method="config", nodelist=LEAD.hosts, owner=1000, userid=1000)
BAD_LEAD = ReadFailure("cannot connect to local:///x", "start it")
BAD_BINDINGS = ReadFailure("no bindings; tried everything", "install flux-core")


def test_why_there_is_no_lead_is_told_with_what_to_do() -> None:
    gone = ReadFailure("FLUX_URI is not set in this shell", "export FLUX_URI")
    (found,) = check_lead(LeadFacts(uri="", source="", identity=gone), FLUX)
    assert (found.what, found.advice) == (gone.what, gone.advice)


def test_a_settings_file_is_named_with_its_providers() -> None:
    settings = parse({"providers": {"here": {"type": "local"}}}, "x")
    (found,) = check_settings(SettingsFacts(path="/x.toml", settings=settings))
    assert (found.level, found.what) == (OK, "/x.toml is read; providers: here")
    none = SettingsFacts(path="", settings=Settings())
    assert levels(check_settings(none)) == [NOTE]


@pytest.mark.parametrize("advice", ["did you mean x?", ""])
def test_a_settings_file_that_cannot_be_used_is_wrong(advice: str) -> None:
    trouble = ReadFailure("/x.toml: lead.y: no such key", advice)
    facts = SettingsFacts(path="/x.toml", settings=Settings(), trouble=trouble)
    found = check_settings(facts)
    assert levels(found) == [WRONG]
    assert said(found).startswith("/x.toml: lead.y: no such key -> ")


def test_flux_and_its_python_of_one_minor_version_are_fine() -> None:
    assert levels(check_flux_program(FLUX, needed=True)) == [OK, OK]


ABSENT = {"program": "", "version": ""}
OLD = {"version": "0.83.9", "library": "0.83.0"}
SILENT = ReadFailure("/usr/bin/flux cannot be asked")
LACKING = {"bindings": BAD_BINDINGS, "library": ""}


@pytest.mark.parametrize(
    ("changes", "expected", "text"),
    [
        (ABSENT, [WRONG, OK], "no flux on PATH -> install flux-core 0.84 or later"),
        (
            {"version": SILENT},
            [WRONG, OK],
            "-> check that `/usr/bin/flux version` works",
        ),
        (
            OLD,
            [WRONG, OK],
            "is Flux 0.83.9; too old for bursts -> install flux-core 0.84",
        ),
        ({"version": "new"}, [WRONG, OK], "/usr/bin/flux: not a version of Flux"),
        (
            {"library": "0.87.1"},
            [OK, OK, WRONG],
            "but the Python bindings are of 0.87.1",
        ),
        (LACKING, [OK, WRONG], "no bindings; tried everything -> install flux-core"),
    ],
)
def test_what_is_wrong_with_flux_is_told(
    changes: dict[str, Any], expected: list[Level], text: str
) -> None:
    found = check_flux_program(msgspec.structs.replace(FLUX, **changes), needed=True)
    assert levels(found) == expected
    assert text in said(found)


def test_a_lead_may_need_no_flux() -> None:
    none = FluxFacts(program="", bindings=BAD_BINDINGS)
    (found,) = check_flux_program(none, needed=False)
    assert found.level is OK
    assert "needs none" in found.what


def test_a_lead_that_answers_its_owner_on_rank_0_is_fine() -> None:
    facts = LeadFacts(uri="local:///x", source="FLUX_URI", identity=LEAD, boot=BOOT)
    (found,) = check_lead(facts, FLUX)
    assert found.level is OK
    assert found.what.startswith("flux 0.88.0 at local:///x (by FLUX_URI), owner tag")


NO_FLUX = msgspec.structs.replace(FLUX, bindings=BAD_BINDINGS)
BY_DEFAULT = (
    "without Flux's Python bindings: Flux's default, as FLUX_URI is not set -> see the"
    " finding about flux"
)
GONE = ReadFailure("kvs.lookup: no answer")


@pytest.mark.parametrize(
    ("source", "identity", "flux", "text"),
    [
        ("--uri", BAD_LEAD, FLUX, "connect to local:///x (by --uri) -> start it"),
        ("", BAD_BINDINGS, NO_FLUX, BY_DEFAULT),
        ("lead.uri", GONE, FLUX, "(by lead.uri) -> run this on the lead, as the owner"),
    ],
)
def test_a_lead_that_cannot_be_used_says_where_it_was_looked_for(
    source: str, identity: ReadFailure, flux: FluxFacts, text: str
) -> None:
    uri, boot = ("local:///x" if source else ""), (BOOT if identity is GONE else None)
    facts = LeadFacts(uri=uri, source=source, identity=identity, boot=boot)
    found = check_lead(facts, flux)
    assert levels(found) == [WRONG]
    assert text in said(found)


def test_away_from_rank_0_no_daemon_can_work() -> None:
    boot = msgspec.structs.replace(BOOT, rank=3)
    facts = LeadFacts(uri="u", source="--uri", identity=LEAD, boot=boot)
    found = check_lead(facts, FLUX)
    assert levels(found) == [OK, WRONG]
    assert "this is rank 3 of the instance" in said(found)


@pytest.mark.parametrize("boot", [BOOT, None])
def test_one_order_of_hosts_everywhere_is_fine(boot: BootInfo | None) -> None:
    assert levels(check_bootstrap(LEAD, boot)) == [OK]


SIMPLE = msgspec.structs.replace(BOOT, method="simple")
SHORT = msgspec.structs.replace(BOOT, nodelist=LEAD.hosts[:3])


@pytest.mark.parametrize(
    ("boot", "text"),
    [
        (ReadFailure("attr.get: gone", "try again"), "attr.get: gone -> try again"),
        (SIMPLE, "started by simple, not from [bootstrap] hosts"),
        (SHORT, "runs with burst-0-1 as rank 3, but R names no host there"),
    ],
)
def test_a_start_by_which_nothing_can_join_is_wrong(
    boot: BootInfo | ReadFailure, text: str
) -> None:
    found = check_bootstrap(LEAD, boot)
    assert levels(found) == [WRONG]
    assert text in said(found)


SWAPPED = "lead-[0-1],burst-1-[0-3],burst-0-[0-3]"
LONGER = "lead-[0-1],burst-0-[0-3],burst-1-[0-9]"


def test_hosts_that_are_no_hostlist_are_wrong() -> None:
    found = check_bootstrap(with_hosts("lead-[0-"), BOOT)
    assert levels(found) == [WRONG]
    assert "not a hostlist: 'lead-[0-'" in said(found)


def with_hosts(hosts: str) -> LeadIdentity:
    bootstrap = Bootstrap(hosts=(HostEntry(host=hosts),))
    found: LeadIdentity = msgspec.structs.replace(LEAD, bootstrap=bootstrap)
    return found


@pytest.mark.parametrize(
    ("hosts", "runs", "named"),
    [
        (SWAPPED, "burst-0-0 as rank 2", "burst-1-0"),
        (LONGER, "no host as rank 10", "burst-1-4"),
    ],
)
def test_hosts_that_the_lead_was_not_started_with_are_wrong(
    hosts: str, runs: str, named: str
) -> None:
    found = check_bootstrap(with_hosts(hosts), BOOT)
    assert levels(found) == [WRONG]
    assert f"runs with {runs}, but [bootstrap] hosts name {named} there" in said(found)


def test_ranks_without_cores_in_r_are_wrong() -> None:
    shapes = (*LEAD.shapes[:8], Shape(0), Shape(0))
    found = check_bootstrap(msgspec.structs.replace(LEAD, shapes=shapes), BOOT)
    assert levels(found) == [WRONG]
    assert "no cores for ranks 8-9" in said(found)


@pytest.mark.parametrize("userid", [0, 2000])
def test_whoever_is_not_the_owner_is_told_as_whom_to_ask(userid: int) -> None:
    names = {0: "root", 1000: "flux", 2000: "ann"}
    boot = msgspec.structs.replace(BOOT, userid=userid)
    (found,) = check_user(boot, names.__getitem__)
    assert found.level is WRONG
    assert f"this command runs as {names[userid]}, who" in found.what
    assert "runuser -u flux -- burst doctor" in found.advice
    for fine in (BOOT, None, ReadFailure("no answer")):
        assert check_user(fine, names.__getitem__) == []
