# SPDX-License-Identifier: MIT
"""Gathering facts: each by itself, whatever the others do."""

import os
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from burst.config import Settings, parse
from burst.core.commands import held_jobs
from burst.doctor.collect_facts import (
    ProbeRequest,
    ask_providers,
    probe,
    read_added,
    read_endpoint,
    read_flux,
    read_runtime,
)
from burst.doctor.facts import HandshakeResult, ProviderFacts, ReadFailure
from burst.errors import NoDaemon, Refused, Unreadable
from burst.flux_setup.running_instance import RunningInstance
from burst.kits import certificate
from burst.model.burst import BurstId
from burst.model.finding import Finding, Level, ok
from burst.model.fsd import format_fsd
from burst.model.lead import LeadIdentity
from burst.model.request import BurstPreferences
from burst.provider import BurstStatus, Phase, Provider
from burst.runtime.record_store import RecordStore
from burst.testing import FakeProvider
from tests.builders import T0, identity, whole
from tests.fakes import FakeLead
from tests.sim import Sim
from tests.support.ports import free_port
from tests.support.waiting import growing_limits

LEAD = identity()
DELETED = "its record says that it was deleted"


class Open(FakeProvider):
    """One that examines itself."""

    def examine(self, lead: LeadIdentity | None) -> Sequence[Finding]:
        return [ok(f"lead {lead.owner if lead else 'unknown'} of {self.owner}")]

    def probe(
        self, lead: LeadIdentity, tell: Callable[[str], None], user: str = ""
    ) -> Sequence[Finding]:
        tell("is tried")
        found = [ok(f"{lead.endpoint} of {self.owner}")]
        return [*found, ok(f"{user} could run")] if user else found


def settings(*names: str, **options: Any) -> Settings:
    table = {"type": "fake", **options}
    return parse({"providers": dict.fromkeys(names, table)}, "x")


def make(settings: Settings, owner: str) -> dict[str, Provider]:
    return {name: Open(name, owner=owner) for name in settings.providers}


def ask(*names: str, **how: Any) -> list[ProviderFacts]:
    return ask_providers(settings(*names), LEAD, **{"make": make, **how})


def broken(**attributes: Any) -> Any:
    """Return a maker of providers with these attributes."""

    def maker(settings: Settings, owner: str) -> dict[str, Provider]:
        made = make(settings, owner)
        for provider in made.values():
            vars(provider).update(attributes)
        return made

    return maker


def of_fakes(settings: Settings, owner: str) -> dict[str, Provider]:
    """Make providers that have neither `examine` nor `probe`."""
    return {name: FakeProvider() for name in settings.providers}


def test_a_provider_is_asked_for_all_it_can_say() -> None:
    (facts,) = ask("one")
    assert (facts.name, facts.type, facts.enabled) == ("one", "fake", True)
    assert not isinstance(facts.offers, ReadFailure)
    assert facts.offers
    assert facts.statuses == ()
    assert facts.findings == [ok(f"lead {LEAD.owner} of {LEAD.owner}")]
    # It may have no examination, and be asked alone.
    (facts,) = ask("one", make=of_fakes)
    assert facts.findings == []
    assert [facts.name for facts in ask("one", "two", only="two")] == ["two"]


@pytest.mark.parametrize(
    ("method", "told"),
    [("place", "place() failed: TypeError"), ("directories", "directories() failed")],
)
def test_one_with_which_no_daemon_would_start_is_not_usable(
    method: str, told: str
) -> None:
    (facts,) = ask("one", make=broken(**{method: lambda: None}))
    assert facts.trouble is not None
    assert told in facts.trouble.what


def test_without_a_lead_it_is_not_asked_for_its_bursts() -> None:
    asked = broken(next_observe_error=Refused("asked"))
    (facts,) = ask_providers(settings("one"), None, make=asked)
    assert facts.statuses == ()


def test_a_provider_that_is_not_made_says_why() -> None:
    (facts,) = ask_providers(settings("one", enabled=False), LEAD)
    assert (facts.enabled, facts.offers) == (False, ())
    (facts,) = ask_providers(settings("one"), LEAD)
    assert facts.trouble is not None
    assert facts.trouble.what == "providers.one.type: no provider 'fake' is installed"


@pytest.mark.parametrize(
    ("knob", "field"),
    [("next_offers_error", "offers"), ("next_observe_error", "statuses")],
)
def test_one_answer_that_fails_leaves_the_others(knob: str, field: str) -> None:
    (facts,) = ask("one", make=broken(**{knob: Refused("401", "log in")}))
    assert getattr(facts, field) == ReadFailure("401", "log in")
    others = {"offers", "statuses", "findings"} - {field}
    assert not any(isinstance(getattr(facts, other), ReadFailure) for other in others)


def try_way(
    maker: Any, user: str = ""
) -> tuple[Sequence[Finding] | ReadFailure, list[str]]:
    told: list[str] = []
    facts = ProviderFacts(name="one", type="fake")
    asked = ProbeRequest(told.append, user)
    return probe(facts, settings("one", "two"), LEAD, asked, maker), told


def test_a_provider_may_try_the_way_to_the_lead() -> None:
    found = [ok(f"{LEAD.endpoint} of {LEAD.owner}")]
    assert try_way(make) == (found, ["is tried"])
    # And for a guest.
    assert try_way(make, "ann")[0] == [*found, ok("ann could run")]
    (cannot,) = try_way(of_fakes)[0]  # type: ignore[misc]
    assert cannot.level is Level.NOTE
    assert "type fake cannot test" in cannot.what


def test_a_try_that_fails_is_a_trouble() -> None:
    def fail(*_: object) -> None:
        raise Refused("no rights", "get some")

    assert try_way(broken(probe=fail))[0] == ReadFailure("no rights", "get some")
    assert try_way(lambda *_: {})[0] == ReadFailure(
        "KeyError: 'one'", "this is a bug in burst or in a plug-in; please report it"
    )


def test_a_provider_that_hangs_holds_up_no_other() -> None:
    forever = threading.Event()

    def maker(settings: Settings, owner: str) -> dict[str, Provider]:
        if "slow" in settings.providers:
            return broken(hang=forever)(settings, owner)  # type: ignore[no-any-return]
        return make(settings, owner)

    try:
        for limit in growing_limits():
            slow, quick = ask("slow", "quick", make=maker, deadline_s=limit)
            told = f"there was no answer within {format_fsd(limit)}"
            assert slow.trouble == ReadFailure(told)
            if quick.trouble is None:
                break
    finally:
        forever.set()


def test_the_endpoint_of_the_settings_is_tried(tmp_path: Path) -> None:
    path = tmp_path / "cert"
    made = certificate.create("lead-0")
    certificate.write(made, path)
    port = free_port()
    facts = read_endpoint(
        identity(certificate=str(path)), parse({"lead": {"port": port}}, "x")
    )
    assert facts.endpoint == f"tcp://127.0.0.1:{port}"
    assert facts.own == "tcp://127.0.0.1:8050"
    assert (facts.handshake, facts.detail) == (
        HandshakeResult.REFUSED,
        "Connection refused",
    )
    assert facts.keys == f"lead-0, fingerprint {made.fingerprint}"


HALF = ReadFailure(
    "lead.port: not known from the lead's bootstrap hosts either",
    "set both: followers connect to them",
)


@pytest.mark.parametrize(("lead", "expected"), [({}, ""), ({"address": "x"}, HALF)])
def test_where_there_is_no_endpoint_nothing_is_tried(
    lead: dict[str, Any], expected: object
) -> None:
    facts = read_endpoint(identity(endpoint=""), parse({"lead": lead}, "x"))
    assert facts.endpoint == expected
    assert facts.handshake is None
    assert isinstance(facts.keys, ReadFailure)
    other = read_endpoint(identity(endpoint="ipc:///x"), Settings())
    assert isinstance(other.handshake, ReadFailure)
    assert "not of the form tcp://ADDRESS:PORT" in other.handshake.what


def no_daemon(_: object) -> dict[str, Any]:
    raise NoDaemon("no daemon serves this lead")


def test_what_adopt_has_added_is_read_from_its_record(tmp_path: Path) -> None:
    instance = RunningInstance(config={}, place=str(tmp_path))
    assert read_added(instance) == ()
    (tmp_path / "burst-adopt.json").write_text('{"hosts": ["burst-0-[0-3]"]}')
    assert read_added(instance) == ["burst-0-[0-3]"]
    for none in (RunningInstance(config={}), ReadFailure("gone")):
        assert read_added(none) == ()


def test_the_state_is_read_from_the_lead_and_its_store() -> None:
    lead = FakeLead()
    lead.serve(lambda request: {"pid": 1, "asked": request.method}, {})
    held = lead.submit(whole(1), urgency=0, preferences=BurstPreferences(urgency=9))
    state = read_runtime(lead, LEAD, (), [])
    assert state.daemon == {"pid": 1, "asked": "ping"}
    assert not isinstance(state.view, ReadFailure)
    assert state.view.online == {0, 1}
    assert not isinstance(state.records, ReadFailure)
    # No daemon has recorded it.
    assert held_jobs(state.records) == [held]
    # A rule marked it, which only its record tells.
    ledger = RecordStore(lead.store())
    ledger.write(ledger.load(T0), state.records)
    lead.unmarked.add(held)
    state = read_runtime(lead, LEAD, (), [])
    assert not isinstance(state.records, ReadFailure)
    assert held_jobs(state.records) == [held]
    # Nobody serving is no trouble.
    lead.serve(no_daemon, {})
    assert read_runtime(lead, LEAD, (), []).daemon is None


def test_a_daemon_that_hangs_does_not_hold_up_the_checks() -> None:
    class HangingLead(FakeLead):
        def call(self, method: str, payload: Any, timeout: float = 60.0) -> Any:
            raise Unreadable(f"{method}: no answer within {timeout:g}s")

    found = read_runtime(HangingLead(), LEAD, (), []).daemon
    assert found == ReadFailure("ping: no answer within 5s")


@pytest.mark.parametrize(
    ("shown", "state"),
    [
        ("LoadState=loaded ActiveState=x Environment=FLUX_URI=local:///x", "x"),
        ("LoadState=loaded ActiveState=x Environment=FLUX_URI=local:///y", ""),
        ("LoadState=loaded ActiveState=x Environment=", ""),
        ("LoadState=not-found ActiveState=x Environment=FLUX_URI=local:///x", ""),
        ("", ""),
    ],
)
def test_a_unit_is_looked_at_if_it_is_the_leads(
    shown: str, state: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program = tmp_path / "systemctl"
    program.write_text(f"#!/bin/sh\nprintf '%s\\n' {shown}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    lead = FakeLead()
    lead.serve(no_daemon, {})
    known = msgspec.structs.replace(LEAD, uri="local:///x")
    assert read_runtime(lead, known, (), []).unit == state


def test_what_cannot_be_read_is_a_trouble_each() -> None:
    lead = FakeLead(unreadable=True)
    lead.disk.records["meta/schema"] = "99"
    state = read_runtime(lead, LEAD, (), [])
    assert isinstance(state.daemon, ReadFailure)
    assert isinstance(state.view, ReadFailure)
    assert isinstance(state.records, ReadFailure)
    assert "the store has schema '99'" in state.records.what
    assert state.unlisted == ["the records cannot be read"]


def test_what_no_record_explains_is_an_orphan() -> None:
    lead = FakeLead()
    lead.serve(no_daemon, {})
    left = BurstStatus(burst_id=BurstId("burst-0-abc"), phase=Phase.RUNNING)
    facts = ProviderFacts(name="one", type="fake", statuses=[left])
    (orphan,) = read_runtime(lead, LEAD, (), [facts]).orphans
    assert (orphan.provider, orphan.burst) == ("one", "burst-0-abc")
    # What could not be asked for is none, and that is told.
    failed = ReadFailure("503")
    for facts in (
        ProviderFacts(name="one", type="fake", statuses=failed),
        ProviderFacts(name="one", type="fake", trouble=failed),
    ):
        seen = read_runtime(lead, LEAD, (), [facts])
        assert seen.orphans == ()
        assert seen.unlisted == ["provider one does not list its bursts"]


def test_what_is_left_of_a_deleted_burst_is_an_orphan() -> None:
    sim = Sim.at_rest(deadlines={"idle": "5s"})
    sim.end_job(sim.run_job())
    left = BurstStatus(burst_id=sim.burst.id, phase=Phase.RUNNING)
    made = broken(observe=lambda: (left,))
    facts = ask("local", make=made)
    (orphan,) = read_runtime(sim.lead, sim.lead.known, (), facts).orphans
    assert (orphan.burst, orphan.why) == (left.burst_id, DELETED)


def test_the_flux_on_path_is_asked(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    facts = read_flux()
    assert (facts.program, facts.version) == ("", "")
    flux = tmp_path / "flux"
    flux.write_text("#!/bin/sh\necho 'commands: 0.70.0'\n")
    flux.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    facts = read_flux()
    assert (facts.program, facts.version) == (str(flux), "0.70.0")


@pytest.mark.parametrize("answer", [None, "no list", ["no finding"]])
def test_an_examination_with_a_wrong_answer_is_one_failure(answer: object) -> None:
    class Odd(FakeProvider):
        def examine(self, _: object) -> Any:
            return answer

    (facts,) = ask("one", make=lambda s, _: {name: Odd() for name in s.providers})
    assert isinstance(facts.findings, ReadFailure)
    assert facts.offers
