# SPDX-License-Identifier: MIT
"""Gathering facts: each by itself, whatever the others do."""

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from burst.config import Settings, parse
from burst.doctor.collect_facts import (
    ProbeRequest,
    ask_providers,
    probe,
    read_endpoint,
    read_flux,
    read_runtime,
)
from burst.doctor.facts import HandshakeResult, ProviderFacts, ReadFailure
from burst.errors import NoDaemon, Refused
from burst.kits import certificate
from burst.model.burst import BurstId
from burst.model.finding import Finding, Level, ok
from burst.model.lead import LeadIdentity
from burst.provider import BurstStatus, Phase, Provider
from burst.testing import FakeProvider
from tests.builders import identity
from tests.fakes import FakeLead
from tests.support.ports import free_port
from tests.support.waiting import growing_limits

LEAD = identity()


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


def test_a_provider_is_asked_for_all_it_can_say() -> None:
    (facts,) = ask("one")
    assert (facts.name, facts.type, facts.enabled) == ("one", "fake", True)
    assert not isinstance(facts.offers, ReadFailure)
    assert facts.offers
    assert facts.statuses == ()
    assert facts.findings == [ok(f"lead {LEAD.owner} of {LEAD.owner}")]


def test_without_a_lead_it_is_not_asked_for_its_bursts() -> None:
    (facts,) = ask_providers(
        settings("one"), None, make=broken(next_observe_error=Refused("asked"))
    )
    assert facts.statuses == ()


def test_a_provider_may_have_no_examination() -> None:
    (facts,) = ask(
        "one", make=lambda s, _: {name: FakeProvider() for name in s.providers}
    )
    assert facts.findings == []


def test_one_provider_may_be_asked_alone() -> None:
    assert [facts.name for facts in ask("one", "two", only="two")] == ["two"]


def test_what_is_disabled_is_not_made() -> None:
    (facts,) = ask_providers(settings("one", enabled=False), LEAD)
    assert (facts.enabled, facts.offers) == (False, ())


def test_a_provider_that_cannot_be_made_says_why() -> None:
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


def test_it_may_try_it_for_a_guest() -> None:
    found, _ = try_way(make, "ann")
    assert found == [ok(f"{LEAD.endpoint} of {LEAD.owner}"), ok("ann could run")]


def test_one_that_cannot_says_so() -> None:
    found, _ = try_way(lambda s, _: {name: FakeProvider() for name in s.providers})
    assert not isinstance(found, ReadFailure)
    assert found[0].level is Level.NOTE
    assert "type fake has nothing" in found[0].what


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
            assert slow.trouble == ReadFailure("there was no answer in time")
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


@pytest.mark.parametrize(
    ("endpoint", "lead", "expected"),
    [
        ("", {}, ""),
        (
            "",
            {"address": "x"},
            ReadFailure(
                "lead.port: not known from the lead's bootstrap hosts either",
                "set both, as followers are to connect to them",
            ),
        ),
    ],
)
def test_where_there_is_no_endpoint_nothing_is_tried(
    endpoint: str, lead: dict[str, Any], expected: object
) -> None:
    facts = read_endpoint(identity(endpoint=endpoint), parse({"lead": lead}, "x"))
    assert facts.endpoint == expected
    assert facts.handshake is None
    assert isinstance(facts.keys, ReadFailure)


def test_an_endpoint_of_another_kind_is_a_trouble() -> None:
    facts = read_endpoint(identity(endpoint="ipc:///x"), Settings())
    assert isinstance(facts.handshake, ReadFailure)
    assert "not of the form tcp://ADDRESS:PORT" in facts.handshake.what


def no_daemon(_: object) -> dict[str, Any]:
    raise NoDaemon("no daemon serves this lead")


def test_the_state_is_read_from_the_lead_and_its_store() -> None:
    lead = FakeLead()
    lead.serve(lambda request: {"pid": 1, "asked": request.method}, {})
    state = read_runtime(lead, LEAD, (), [])
    assert state.daemon == {"pid": 1, "asked": "ping"}
    assert not isinstance(state.view, ReadFailure)
    assert state.view.online == {0, 1}
    assert not isinstance(state.records, ReadFailure)


def test_nobody_serving_is_no_trouble() -> None:
    lead = FakeLead()
    lead.serve(no_daemon, {})
    assert read_runtime(lead, LEAD, (), []).daemon is None


def test_what_cannot_be_read_is_a_trouble_each() -> None:
    lead = FakeLead(unreadable=True)
    lead.disk.records["meta/schema"] = "99"
    state = read_runtime(lead, LEAD, (), [])
    assert isinstance(state.daemon, ReadFailure)
    assert isinstance(state.view, ReadFailure)
    assert isinstance(state.records, ReadFailure)
    assert "the store has schema '99'" in state.records.what


def test_what_no_record_explains_is_an_orphan() -> None:
    lead = FakeLead()
    lead.serve(no_daemon, {})
    left = BurstStatus(burst_id=BurstId("burst-0-abc"), phase=Phase.RUNNING)
    facts = ProviderFacts(name="one", type="fake", statuses=[left])
    (orphan,) = read_runtime(lead, LEAD, (), [facts]).orphans
    assert (orphan.provider, orphan.burst) == ("one", "burst-0-abc")


def test_bursts_that_could_not_be_asked_for_are_no_orphans() -> None:
    lead = FakeLead()
    facts = ProviderFacts(name="one", type="fake", statuses=ReadFailure("503"))
    assert read_runtime(lead, LEAD, (), [facts]).orphans == ()


def test_no_flux_on_path_is_seen(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    facts = read_flux()
    assert (facts.program, facts.version) == ("", "")


def test_the_flux_on_path_is_asked(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
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
