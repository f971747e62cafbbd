# SPDX-License-Identifier: MIT
"""Facts to findings: the daemon, the records, the ranks, what is left over."""

from typing import Any

import msgspec
import pytest

from burst import __version__
from burst.core.orphans import Orphan
from burst.core.plan.slots import find_slots
from burst.core.records import Records
from burst.doctor.check_runtime import (
    check_daemon,
    check_orphans,
    check_records,
    check_unleased_slots,
)
from burst.doctor.facts import ReadFailure, RuntimeFacts
from burst.model.burst import Burst, BurstId, Lease
from burst.model.finding import Level
from burst.model.hold import Hold, HoldState
from burst.model.jobid import JobId, format_f58
from tests.builders import NODE, T0, identity, view
from tests.doctor.reading import NOTE, OK, WRONG, levels, said

SLOTS = find_slots(identity())  # burst-0: ranks 2-5, burst-1: ranks 6-9
HOLDER = {"pid": 7, "host": "here", "since": T0, "version": __version__}
STATE = RuntimeFacts(daemon=HOLDER, records=Records(), view=view(), slots=SLOTS)
LEASED = Burst(
    lease=Lease(
        id=BurstId("burst-0-3fa9c1"),
        provider="local",
        offer="small",
        slot="burst-0",
        hosts=("burst-0-0",),
        ranks=(2,),
        shape=NODE,
    )
)
LIVE = Records(bursts={LEASED.id: LEASED})


def state(**changes: Any) -> RuntimeFacts:
    return msgspec.structs.replace(STATE, **changes)


def held(number: int, how: HoldState = HoldState.HELD) -> Records:
    hold = Hold(urgency=16, state=how, since=T0)
    return Records(holds={JobId(job): hold for job in range(1, number + 1)})


def test_who_serves_the_lead_is_told() -> None:
    (found,) = check_daemon(STATE, "/x.toml")
    assert found.level is OK
    assert f"burst {__version__} serves this lead: pid 7 on here" in found.what


@pytest.mark.parametrize(
    ("daemon", "expected", "words"),
    [
        (
            {"version": "0.0.9"},
            [NOTE],
            f"; this is {__version__} -> restart the daemon",
        ),
        ({"halt": "x", "halt_advice": "make room"}, [OK, WRONG], "x -> make room"),
    ],
)
def test_what_a_daemon_says_of_itself_is_judged(
    daemon: dict[str, str], expected: list[Level], words: str
) -> None:
    found = check_daemon(state(daemon=HOLDER | daemon), "")
    assert levels(found) == expected
    assert words in said(found)


def test_a_daemon_that_does_not_answer_is_wrong() -> None:
    found = check_daemon(state(daemon=ReadFailure("no answer within 10s")), "")
    assert said(found).startswith("the daemon does not answer: no answer within 10s")


@pytest.mark.parametrize(
    ("path", "start"),
    [("", "burst daemon"), ("/a b/x.toml", "burst daemon -c '/a b/x.toml'")],
)
def test_no_daemon_is_noted_with_how_to_start_one(path: str, start: str) -> None:
    for records in (Records(), ReadFailure("disk"), held(1, HoldState.RELEASED)):
        found = check_daemon(state(daemon=None, records=records), path)
        assert levels(found) == [NOTE]
        assert said(found) == f"no daemon serves this lead -> start one: {start}"


@pytest.mark.parametrize(
    ("unit", "level", "text"),
    [
        ("inactive", NOTE, "no daemon serves this lead -> start one: systemctl start"),
        ("failed", WRONG, "burst.service is failed -> `systemctl status burst` shows"),
        (
            "activating",
            WRONG,
            "burst.service is activating -> `systemctl status burst`",
        ),
    ],
)
def test_a_unit_that_is_installed_is_looked_at(
    unit: str, level: Level, text: str
) -> None:
    found = check_daemon(state(daemon=None, unit=unit), "/x.toml")
    assert levels(found) == [level]
    assert text in said(found)


def test_jobs_left_held_without_a_daemon_are_wrong() -> None:
    found = check_daemon(state(daemon=None, records=held(1)), "")
    assert levels(found) == [NOTE, WRONG]
    nobody = "jobs are held, and without a daemon nothing releases them"
    assert f"{nobody} (1): {format_f58(1)} ->" in said(found)
    assert "`burst release --all`" in said(found)
    many = said(check_daemon(state(daemon=None, records=held(6)), ""))
    assert f"{nobody} (6): " in many
    assert f"{format_f58(5)} and others" in many


def test_bursts_left_without_a_daemon_are_wrong() -> None:
    found = check_daemon(state(daemon=None, records=LIVE), "")
    assert levels(found) == [NOTE, WRONG]
    assert "without a daemon nothing takes them down: burst-0-3fa9c1" in said(found)


QUARANTINED = msgspec.structs.replace(LEASED, quarantined="no rule for it")
NOT_ACTED_ON = (
    "burst-0-3fa9c1 is quarantined, so the daemon does not act on it: no rule"
)


@pytest.mark.parametrize(
    ("records", "level", "text"),
    [
        (LIVE, OK, "the store can be read; records of bursts: 1"),
        (ReadFailure("the store has schema '2'", "run that"), WRONG, "schema '2'"),
        (Records(unreadable={"burst/x-1": "bad"}), WRONG, "record burst/x-1 cannot be"),
        (Records(bursts={LEASED.id: QUARANTINED}), WRONG, NOT_ACTED_ON),
    ],
)
def test_records(records: Records | ReadFailure, level: Level, text: str) -> None:
    (found,) = check_records(state(records=records))
    assert found.level is level
    assert text in found.what
    assert level is OK or found.advice


def test_what_is_out_of_reach_has_its_own_advice() -> None:
    burst = msgspec.structs.replace(QUARANTINED, out_of_reach=True)
    (found,) = check_records(state(records=Records(bursts={LEASED.id: burst})))
    assert (found.level, found.advice) == (WRONG, "")


@pytest.mark.parametrize(
    ("enabled", "expected"), [({"local"}, OK), (None, OK), ({"other"}, WRONG)]
)
def test_a_live_burst_needs_its_provider(
    enabled: set[str] | None, expected: Level
) -> None:
    found = check_records(state(records=LIVE), enabled)
    assert levels(found) == [expected]
    text = "burst-0-3fa9c1: provider local is not enabled, so the burst cannot be seen"
    assert (text in said(found)) is (expected is WRONG)


def test_costs_that_cannot_be_kept_are_wrong() -> None:
    found = check_records(state(archive=ReadFailure("denied", "let it write")))
    assert said(found) == "denied -> let it write"
    assert levels(found) == [WRONG]


NONE, UNREAD = Records(), Records(unreadable={"burst/burst-0-1": "x"})
UP = "is not leased: brokers of no known burst are up on"
BY_HAND = (
    "rank slot burst-0: no burst gets ranks 2,5, drained by hand: bad fan -> when the"
    " reason no longer holds: flux resource undrain 2,5"
)
FAILED = "prolog failed for job ƒ1"


@pytest.mark.parametrize(
    ("records", "changes", "expected", "text"),
    [
        (NONE, {}, [OK], ""),
        (NONE, {"online": (0, 2, 3)}, [WRONG], f"burst-0 {UP} ranks 2-3"),
        (NONE, {"torpid": frozenset({9})}, [WRONG], f"burst-1 {UP} rank 9"),
        (LIVE, {"online": (0, 2, 3)}, [OK], ""),
        (UNREAD, {"online": (0, 2)}, [OK], ""),
        (ReadFailure("disk"), {"online": (0, 2)}, [WRONG], "up on rank 2"),
        (
            NONE,
            {"drained": {2: "bad fan", 3: "burst: idle", 4: "", 5: "bad fan", 1: "x"}},
            [NOTE] * 3,
            BY_HAND,
        ),
        (
            NONE,
            {"drained": {3: "burst: x"}},
            [NOTE],
            "rank 3 drained by burst: burst: x",
        ),
        (NONE, {"drained": {4: FAILED}}, [NOTE], f"rank 4 drained by Flux: {FAILED}"),
        (NONE, {"drained": {4: ""}}, [NOTE], "rank 4, drained by hand: no reason"),
        # Of a slot of which a burst has other ranks, too.
        (LIVE, {"drained": {5: "bad fan"}}, [NOTE], "rank 5, drained by hand: bad fan"),
        (NONE, {"excluded": frozenset({6, 7})}, [NOTE], "ranks 6-7, excluded"),
        (
            NONE,
            {"allocated": frozenset({6})},
            [WRONG],
            "jobs on offline rank 6 -> flux",
        ),
        (
            NONE,
            {"allocated": frozenset({6}), "granting": {6: NODE}},
            [WRONG],
            "rank 6 allocated to no job -> it",
        ),
    ],
)
def test_why_a_slot_is_not_leased(
    records: Records | ReadFailure,
    changes: dict[str, Any],
    expected: list[Level],
    text: str,
) -> None:
    found = check_unleased_slots(state(records=records, view=view(**changes)))
    assert levels(found) == expected
    assert text in said(found)


@pytest.mark.parametrize("advice", ["run it on the lead", ""])
def test_ranks_that_cannot_be_read_are_wrong(advice: str) -> None:
    found = check_unleased_slots(state(view=ReadFailure("this is rank 3", advice)))
    assert levels(found) == [WRONG]
    assert "ranks cannot be read: this is rank 3" in said(found)


def test_orphans_are_wrong() -> None:
    assert levels(check_orphans(STATE)) == [OK]
    orphan = Orphan("local", BurstId("burst-1-abc"), "no record of it", ())
    found = check_orphans(state(orphans=[orphan]))
    assert said(found) == (
        "orphan burst-1-abc of provider local: no record of it -> look at it, then"
        " delete it: burst gc --yes"
    )


def test_no_orphans_are_promised_where_bursts_cannot_be_listed() -> None:
    found = check_orphans(state(unlisted=["provider one does not list its bursts"]))
    assert levels(found) == [NOTE]
    assert "not checked: provider one does not list" in said(found)
