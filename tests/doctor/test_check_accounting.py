# SPDX-License-Identifier: MIT
"""Facts to findings: limits of flux-accounting beside the intake mode."""

from collections.abc import Mapping
from typing import Any

import pytest

from burst.config import IntakeSettings, Mode
from burst.doctor.check_accounting import check_accounting
from burst.doctor.facts import ReadFailure
from burst.model.accounting import AccountingFacts, AssociationLimits, QueueLimits
from burst.model.banks import Associations
from tests.doctor.reading import NOTE, OK, WRONG, levels, said

PHYSICS, ART = (5001, "physics"), (5002, "art")
MODES: tuple[Mode, ...] = ("hold", "queue", "scheduler")
BOTH = frozenset({"burst", "burst-ready"})


def judge(
    mode: Mode,
    associations: Mapping[tuple[int, str], AssociationLimits] | None = None,
    queues: Mapping[str, QueueLimits] | None = None,
) -> Any:
    facts = AccountingFacts(associations=associations or {}, queues=queues or {})
    answer = Associations({5001: frozenset({"physics"})}, facts=facts)
    return check_accounting(answer, IntakeSettings(mode=mode))


@pytest.mark.parametrize("mode", MODES)
def test_other_limits_suit_each_mode(mode: Mode) -> None:
    limits = AssociationLimits(max_nodes=2, max_cores=9, max_running_jobs=1)
    found = judge(mode, {PHYSICS: limits}, {"debug": QueueLimits(max_running_jobs=1)})
    assert levels(found) == [OK]
    assert found[0].what == f"limits of flux-accounting suit mode {mode}"


WAITING = AssociationLimits(max_sched_jobs=5)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("associations", "queue", "says"),
    [
        ({PHYSICS: WAITING}, {}, "max_sched_jobs of UID 5001 in bank physics"),
        ({}, {"max_sched_jobs": 5}, "max_sched_jobs of queue debug"),
        *(
            ({}, {limit: 5}, f"{limit} of queue debug")
            for limit in ("max_sched_nodes_per_assoc", "max_sched_cores_per_assoc")
        ),
    ],
)
def test_limits_on_waiting_jobs_need_mode_scheduler(
    mode: Mode, associations: Any, queue: dict[str, int], says: str
) -> None:
    found = judge(mode, associations, {"debug": QueueLimits(**queue)} if queue else {})
    if mode == "scheduler":
        assert levels(found) == [OK]
        return
    assert levels(found) == [WRONG]
    assert f"in mode {mode}, waiting jobs use up limits" in said(found)
    assert f": {says} -> set [intake] mode = " in said(found)


def test_of_many_associations_three_are_named() -> None:
    limited = AssociationLimits(max_sched_jobs=5)
    found = judge("hold", {(uid, "art"): limited for uid in range(5001, 5006)})
    assert "of UID 5003 in bank art and 2 more ->" in said(found)
    found = judge("hold", {(uid, "art"): limited for uid in range(5001, 5004)})
    assert "of UID 5003 in bank art ->" in said(found)


def test_who_may_not_use_the_queues_of_bursts_is_noted() -> None:
    known = {queue: QueueLimits() for queue in BOTH}
    associations = {
        PHYSICS: AssociationLimits(queues=frozenset({"burst"})),
        ART: AssociationLimits(queues=BOTH),
        (5003, "old"): AssociationLimits(),  # a plugin that does not say
    }
    found = judge("queue", associations, known)
    assert levels(found) == [NOTE]
    assert "out of queue burst-ready: UID 5001 in bank physics ->" in said(found)
    assert "--queues=...,burst,burst-ready" in said(found)
    for mode in ("hold", "scheduler"):
        assert levels(judge(mode, associations, known)) == [OK]
    # A queue that flux-accounting does not know is for everybody.
    assert levels(judge("queue", associations, {"burst": QueueLimits()})) == [OK]


def test_what_cannot_be_asked_is_noted() -> None:
    assert check_accounting(None, IntakeSettings()) == [], "it does not run"
    assert levels(check_accounting(Associations({}), IntakeSettings())) == [OK]
    found = check_accounting(ReadFailure("no answer in 5 s"), IntakeSettings())
    assert said(found) == (
        "flux-accounting cannot be asked: no answer in 5 s -> banks are not verified"
        " until it answers"
    )
    assert levels(found) == [NOTE]
    found = check_accounting(ReadFailure("no", "wait"), IntakeSettings())
    assert said(found).endswith("-> wait")
