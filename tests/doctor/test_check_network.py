# SPDX-License-Identifier: MIT
"""Facts to findings: rank slots, the endpoint, the certificate."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from burst.config import Settings, parse
from burst.core.plan.slots import find_slots
from burst.doctor.check_network import (
    check_certificate,
    check_endpoint,
    check_slots,
)
from burst.doctor.facts import EndpointFacts, HandshakeResult, ReadFailure
from burst.model.finding import Level
from tests.builders import identity
from tests.doctor.reading import NOTE, OK, WRONG, levels, said

AT = "tcp://10.0.0.7:8050"
WAY = EndpointFacts(
    endpoint=AT,
    own=AT,
    handshake=HandshakeResult.ACCEPTED,
    certificate="/x/burst.cert",
    keys="lead-0, fingerprint 0123",
)


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


def test_a_lead_without_rank_slots_says_how_to_get_them() -> None:
    found = check_slots(())
    assert levels(found) == [WRONG]
    assert "burst lead init DIR --slot 'burst-0-[0-3]'" in said(found)


def test_slots_that_cannot_be_are_wrong() -> None:
    found = check_slots(ReadFailure("lead.slots: x is not in the lead's hosts", "add"))
    assert said(found) == "lead.slots: x is not in the lead's hosts -> add"


def test_the_lead_itself_cannot_be_lent() -> None:
    found = check_slots(find_slots(identity("lead-[0-1]"), ["lead-[0-1]"]))
    assert levels(found) == [WRONG]
    assert "rank 0 is the lead itself" in said(found)


@pytest.mark.parametrize(
    ("changes", "level", "text"),
    [
        (
            {},
            OK,
            "of lead-0, fingerprint 0123, readable by this user only; the lead uses it",
        ),
        (
            {"handshake": HandshakeResult.REFUSED},
            OK,
            "fingerprint 0123, readable by this user only",
        ),
        ({"certificate": ""}, WRONG, "names no certificate"),
        ({"keys": ReadFailure("/x: is empty", "make one")}, WRONG, "/x: is empty"),
    ],
)
def test_the_certificate(changes: dict[str, Any], level: Level, text: str) -> None:
    (found,) = check_certificate(way(**changes))
    assert found.level is level
    assert text in found.what


@pytest.mark.parametrize(
    ("changes", "lead", "level", "text"),
    [
        ({}, {}, OK, "the lead listens there and accepts its certificate"),
        (
            {"endpoint": ReadFailure("lead.port: not known", "set")},
            {},
            WRONG,
            "not known",
        ),
        ({"endpoint": ""}, {}, WRONG, "does not say where followers can reach it"),
        (
            {"handshake": HandshakeResult.UNVERIFIED},
            {},
            NOTE,
            "something listens there; without a usable",
        ),
        (
            {"handshake": HandshakeResult.REJECTED},
            {},
            WRONG,
            "does not accept /x/burst.cert",
        ),
        (
            {"handshake": HandshakeResult.NO_ANSWER},
            {},
            WRONG,
            "did not answer as a lead does why",
        ),
        (
            {"handshake": HandshakeResult.REFUSED},
            {},
            WRONG,
            "nothing listens there (why)",
        ),
        (
            {"handshake": HandshakeResult.TIMEOUT},
            {},
            WRONG,
            "cannot be reached from here (why)",
        ),
        (
            {"handshake": HandshakeResult.UNRESOLVED},
            {},
            WRONG,
            "cannot be reached from here (why)",
        ),
        (
            {"handshake": HandshakeResult.FAILED},
            {},
            WRONG,
            "cannot be reached from here (why)",
        ),
        (
            {"handshake": HandshakeResult.TIMEOUT},
            {"address": "nat"},
            NOTE,
            "cannot be reached from",
        ),
        (
            {"handshake": HandshakeResult.REFUSED},
            {"address": "nat"},
            WRONG,
            "nothing listens there",
        ),
        (
            {"handshake": ReadFailure("no answer in time")},
            {},
            WRONG,
            "no answer in time",
        ),
    ],
)
def test_the_endpoint(
    changes: dict[str, Any], lead: dict[str, Any], level: Level, text: str
) -> None:
    (found,) = check_endpoint(way(detail="why", **changes), settings(lead=lead))
    assert found.level is level
    assert text in found.what
    assert level is OK or found.advice


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
    at = f"tcp://{host}:8050"
    found = check_endpoint(
        way(endpoint=at, own=at), settings(providers={"cloud": {"type": kind}})
    )
    assert levels(found) == expected
    assert kind == "local" or f"told {at}: those of cloud cannot join" in said(found)


def test_a_name_is_not_taken_for_loopback() -> None:
    at = "tcp://lead.example:8050"
    providers = {"cloud": {"type": "gke"}}
    found = check_endpoint(way(endpoint=at, own=at), settings(providers=providers))
    assert levels(found) == [OK]
