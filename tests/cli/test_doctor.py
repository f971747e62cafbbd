# SPDX-License-Identifier: MIT
"""`burst doctor`: its exit status, what it finds, and what it says to do."""

from __future__ import annotations

import pytest

from burst.cli.reload import tell_wrong
from burst.config import parse
from burst.doctor import DoctorRequest, SettingsFacts, diagnose
from burst.model.finding import Finding, Level
from tests.cli.cli_harness import CliHarness, CommandResult
from tests.cli.conftest import Shared


def wrong(said: CommandResult) -> str:
    """Return what is wrong, each with what to do, from a report for people."""
    assert said.status == 1, said
    lines = said.stdout.splitlines()
    found = [n for n, line in enumerate(lines) if line.startswith("wrong ")]
    for n in found:
        assert lines[n + 1].strip().startswith("-> "), lines[n]
    return "\n".join(" ".join((lines[n] + lines[n + 1]).split()) for n in found)


def test_root_is_told_no_finding_about_itself(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """As by `burst reload`, which has done what was asked for."""
    tell_wrong(
        [
            Finding(Level.WRONG, "run as flux", "as root: runuser", about="user"),
            Finding(Level.WRONG, "no rank slots", "declare some", about="slots"),
            Finding(Level.OK, "fine", about="lead"),
        ]
    )
    assert capsys.readouterr().err == "wrong: slots: no rank slots; declare some\n"


def test_it_says_which_providers_it_waits_for_and_for_how_long() -> None:
    table = {"type": "local"}
    named = {"b": table, "a": table, "off": {**table, "enabled": False}}
    settings = SettingsFacts(path="", settings=parse({"providers": named}, "x"))
    for only, told in (("", "a, b"), ("b", "b")):
        shown: list[str] = []
        diagnose(
            DoctorRequest(
                settings=settings,
                uri="embedded:///nowhere",
                provider=only,
                show=shown.append,
            )
        )
        assert shown == [f"checking; waiting for provider {told}, for at most 3m"]


def test_where_all_is_well_the_exit_status_is_0(shared: Shared) -> None:
    _, cli, daemon = shared
    said = cli.run("doctor")
    assert said.status == 0, said
    assert "\nwrong " not in said.stdout
    assert said.lines[-1].startswith("0 wrong, ")
    for told in (
        f"{cli.config} is read; providers: local",
        "offers local: up to 8 nodes of 4 cores, 1 GPU",
        f"pid {daemon.process.pid}",
    ):
        assert told in said.stdout


def test_for_programs_it_is_one_object(served: CliHarness) -> None:
    found = served.run("doctor", "--json").json
    assert found["ok"] is True
    assert {row["level"] for row in found["findings"]} <= {"ok", "note"}
    assert found["findings"][0] == {
        "level": "ok",
        "about": "settings",
        "what": f"{served.config} is read; providers: local",
        "advice": "",
    }
    lines = served.run("doctor", "-o", "{level}:{about}").lines
    assert lines[0] == "ok:settings"


def test_what_is_wrong_is_told_with_what_to_do(served: CliHarness) -> None:
    served.write(lead={"slots": ["x-[0-1]"]})
    try:
        said = served.run("doctor")
        found = served.run("doctor", "--json")
    finally:
        served.write()
    assert "x-[0-1] is not in the lead's hosts -> " in wrong(said)
    assert found.status == 1
    assert '"ok": false' in found.stdout


def test_what_costs_money_and_has_no_lease_is_told(served: CliHarness) -> None:
    sold = {"local": {"type": "local", **served.options, "price": 1.0}}
    try:
        served.write(providers=sold)
        endless = served.run("doctor", "--provider", "local")
        served.write(providers=sold, deadlines={"lease": "24h"})
        bounded = served.run("doctor", "--provider", "local")
    finally:
        served.write()
    assert endless.status == bounded.status == 0
    assert "bursts of local/local cost money and have no lease" in endless.stdout
    assert "cost money and have no lease" not in bounded.stdout


def test_one_provider_may_be_asked_and_must_be_known(served: CliHarness) -> None:
    assert served.run("doctor", "--provider", "local").status == 0
    error = served.run("doctor", "--provider", "nope").error
    assert error == "there is no provider 'nope' in the settings; there are local"


def test_without_a_lead_the_rest_is_looked_at_all_the_same(served: CliHarness) -> None:
    said = served.run("doctor", "--uri", f"embedded://{served.directory}/none")
    assert f"{served.directory}/none" in wrong(said)
    assert "offers local: up to 8 nodes" in said.stdout
    assert (
        "not checked without the lead: rank slots, endpoint, certificate" in said.stdout
    )


def test_a_file_that_cannot_be_used_is_the_one_thing_that_is_wrong(
    served: CliHarness,
) -> None:
    served.config.write_text("[providers\n")
    try:
        said = served.run("doctor")
    finally:
        served.write()
    assert "not TOML: " in wrong(said)
    assert said.stdout.splitlines()[-1].startswith("1 wrong, ")
    assert "not checked without the settings: " in said.stdout
