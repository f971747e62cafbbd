# SPDX-License-Identifier: MIT
"""Facts to findings: rank slots, the endpoint, the certificate."""

from typing import Any

import msgspec
import pytest

from burst.config import Settings, parse
from burst.core.plan.slots import find_slots
from burst.doctor.check_network import (
    check_adopted,
    check_certificate,
    check_endpoint,
    check_slots,
)
from burst.doctor.facts import EndpointFacts, HandshakeResult, ReadFailure
from burst.model.finding import Level
from burst.model.ranks import parse_hostlist
from tests.builders import identity
from tests.doctor.reading import NOTE, OK, WRONG, levels, said

AT = "tcp://10.0.0.7:8050"
KEYS = "lead-0, fingerprint 0123"
WAY = EndpointFacts(
    endpoint=AT,
    own=AT,
    handshake=HandshakeResult.ACCEPTED,
    certificate="/x/burst.cert",
    keys=KEYS,
)
NAT = {"address": "nat"}


def way(**changes: Any) -> EndpointFacts:
    return msgspec.structs.replace(WAY, **changes)


def settings(**tables: Any) -> Settings:
    return parse(tables, "x")


def test_each_rank_slot_is_told_with_its_ranks_and_nodes() -> None:
    found = check_slots(find_slots(identity("lead-0,burst-0-[0-3],burst-1-[0-1]")))
    assert [(finding.level, finding.what) for finding in found] == [
        (OK, "burst-0: ranks 1-4, burst-0-[0-3], each 4 cores, 1 GPU"),
        (OK, "burst-1: ranks 5-6, burst-1-[0-1], each 4 cores, 1 GPU"),
    ]


def test_slots_that_cannot_be_are_wrong() -> None:
    found = check_slots(())
    assert levels(found) == [WRONG]
    assert "burst lead adopt` or, in new files, `burst lead init DIR" in said(found)
    found = check_slots(ReadFailure("lead.slots: x is not in the lead's hosts", "add"))
    assert said(found) == "lead.slots: x is not in the lead's hosts -> add"
    found = check_slots(find_slots(identity("lead-[0-1]"), ["lead-[0-1]"]))
    assert levels(found) == [WRONG]
    assert "rank 0 is the lead itself" in said(found)


@pytest.mark.parametrize("lacking", [(), ReadFailure("burst-0-0 is no host", "")])
def test_slots_that_a_restart_brings_are_not_told_to_be_lacking(
    lacking: Any,
) -> None:
    assert check_slots(lacking, awaits_restart=True) == []
    own = find_slots(identity("lead-[0-1]"), ["lead-[0-1]"])
    assert levels(check_slots(own, awaits_restart=True)) == [WRONG]


def test_slots_that_the_lead_has_after_its_next_restart_are_told() -> None:
    added, before = ["burst-0-[0-3]", "burst-1-0"], ["lead-0"]
    after = [*before, *parse_hostlist("burst-0-[0-3],burst-1-0")]
    assert check_adopted(added, after) == []
    for hosts, lacking in ((before, ", ".join(added)), (after[:-1], added[1])):
        found = check_adopted(added, hosts)
        assert levels(found) == [WRONG]
        assert f"was not restarted since its files were given {lacking} -> " in said(
            found
        )


@pytest.mark.parametrize(
    ("changes", "level", "text"),
    [
        ({}, OK, f"{KEYS}, readable by this user only; the lead uses it"),
        ({"handshake": HandshakeResult.REFUSED}, OK, f"{KEYS}, readable by this user"),
        ({"certificate": ""}, WRONG, "names no certificate"),
        ({"keys": ReadFailure("/x: is empty", "make one")}, WRONG, "/x: is empty"),
    ],
)
def test_the_certificate(changes: dict[str, Any], level: Level, text: str) -> None:
    (found,) = check_certificate(way(**changes))
    assert found.level is level
    assert text in found.what


@pytest.mark.parametrize(
    ("handshake", "lead", "level", "text"),
    [
        (HandshakeResult.ACCEPTED, {}, OK, "listens there and accepts its certificate"),
        (HandshakeResult.UNVERIFIED, {}, NOTE, "listens there; without a usable"),
        (HandshakeResult.REJECTED, {}, WRONG, "does not accept /x/burst.cert"),
        (HandshakeResult.NO_ANSWER, {}, WRONG, "did not answer as a lead does why"),
        (HandshakeResult.REFUSED, {}, WRONG, "nothing listens there (why)"),
        (HandshakeResult.TIMEOUT, {}, WRONG, "cannot be reached from here (why)"),
        (HandshakeResult.UNRESOLVED, {}, WRONG, "cannot be reached from here (why)"),
        (HandshakeResult.FAILED, {}, WRONG, "cannot be reached from here (why)"),
        (HandshakeResult.TIMEOUT, NAT, NOTE, "cannot be reached from"),
        (HandshakeResult.REFUSED, NAT, WRONG, "nothing listens there"),
        (ReadFailure("no answer in time"), {}, WRONG, "no answer in time"),
    ],
)
def test_how_a_follower_would_get_on_at_the_endpoint(
    handshake: HandshakeResult | ReadFailure,
    lead: dict[str, Any],
    level: Level,
    text: str,
) -> None:
    facts = way(detail="why", handshake=handshake)
    (found,) = check_endpoint(facts, settings(lead=lead))
    assert found.level is level
    assert text in found.what
    assert level is OK or found.advice


@pytest.mark.parametrize(
    ("endpoint", "text"),
    [
        (ReadFailure("lead.port: not known", "set"), "not known"),
        ("", "does not say where followers can reach it"),
    ],
)
def test_without_an_endpoint_nobody_can_join(endpoint: object, text: str) -> None:
    (found,) = check_endpoint(way(endpoint=endpoint), settings())
    assert found.level is WRONG
    assert text in found.what
    assert found.advice


def test_a_port_that_only_a_forwarder_makes_right_is_noted() -> None:
    facts = way(endpoint="tcp://10.0.0.7:30850")
    found = check_endpoint(facts, settings(lead={"port": 30850}))
    assert levels(found) == [OK, NOTE]
    assert "connect to port 30850, but the lead listens on 8050" in said(found)


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]", "localhost"])
@pytest.mark.parametrize(("kind", "expected"), [("local", [OK]), ("gke", [OK, NOTE])])
def test_loopback_is_for_followers_on_this_host(
    host: str, kind: str, expected: list[Level]
) -> None:
    at, cloud = f"tcp://{host}:8050", settings(providers={"cloud": {"type": kind}})
    found = check_endpoint(way(endpoint=at, own=at), cloud)
    assert levels(found) == expected
    assert kind == "local" or f"told {at}: those of cloud cannot join" in said(found)
    # A name is not taken for loopback.
    at = "tcp://lead.example:8050"
    assert levels(check_endpoint(way(endpoint=at, own=at), cloud)) == [OK]
