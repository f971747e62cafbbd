# SPDX-License-Identifier: MIT
"""The own hosts beside that of rank 0: whether they have burst's frobnicator."""

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from burst.doctor.check_intake import check_own_hosts
from burst.doctor.collect_installed import read_own_hosts
from burst.doctor.facts import OwnHostFacts, ReadFailure
from burst.errors import Transient
from burst.flux_setup.running_instance import RunningInstance, read_instance
from tests.builders import identity
from tests.doctor.reading import NOTE, WRONG, levels, said
from tests.flux_pool import FluxPool
from tests.intake.user_cli import FROBNICATOR

LEAD = identity("lead-[0-3],burst-0-[0-3]")
GONE = "/nowhere/frob-burst.py"


def instance(**table: Any) -> RunningInstance:
    config = {"ingest": {"frobnicator": {"plugins": ["defaults", GONE], **table}}}
    return RunningInstance(config=config, online=frozenset(range(6)))


def test_each_other_own_host_that_is_up_is_asked() -> None:
    asked: list[Sequence[str]] = []

    def ask(argv: Sequence[str]) -> str:
        asked.append(argv)
        return "1: file\n2: table\n3: table\nsome node's own line\n"

    facts = read_own_hosts("local:///x", instance(), LEAD, ask)
    assert facts == OwnHostFacts(
        path=GONE, without_file="lead-1", without_table="lead-[2-3]"
    )
    ((*_, ranks, _, _, _, path),) = asked
    assert (ranks, path) == ("1-3", GONE)
    found = [*check_own_hosts(facts)]
    assert levels(found) == [WRONG, WRONG]
    assert f"lead-1 lacks {GONE}" in said(found)
    assert "lead-[2-3] has a configuration of Flux that does not name" in said(found)


def test_hosts_that_need_none_are_not_asked() -> None:
    alone = msgspec.structs.replace(instance(), online=frozenset({0, 4, 5}))
    for each in (RunningInstance(config={}), instance(disable=True), alone):
        assert read_own_hosts("", each, LEAD, lambda _: "1: file\n") is None
    assert not [*check_own_hosts(None)]


def test_hosts_that_cannot_be_asked_are_told() -> None:
    def ask(_: Sequence[str]) -> str:
        raise Transient("`flux exec` did not end within 30 s")

    facts = read_own_hosts("", instance(), LEAD, ask)
    assert isinstance(facts, ReadFailure)
    found = [*check_own_hosts(facts)]
    assert levels(found) == [NOTE]
    assert "did not end within 30 s" in said(found)


@pytest.mark.flux
def test_a_broker_of_flux_answers(flux_pool: FluxPool) -> None:
    extra = {"ingest": {"frobnicator": {"plugins": ["defaults", FROBNICATOR]}}}
    with flux_pool.lend(extra, followers=["lead-1"]) as lent:
        uri = lent.uri
        has = read_own_hosts(uri, read_instance(uri), LEAD)
        online = msgspec.structs.replace(instance(), online=frozenset({0, 1}))
        lacks = read_own_hosts(uri, online, LEAD)
    assert has == OwnHostFacts(path=FROBNICATOR)
    assert lacks == OwnHostFacts(
        path=GONE, without_file="lead-1", without_table="lead-1"
    )
