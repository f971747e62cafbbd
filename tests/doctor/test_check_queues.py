# SPDX-License-Identifier: MIT
"""Facts to findings: which queue's jobs can run where, and within which limits."""

from typing import Any

import pytest

from burst.config import IntakeSettings, Mode
from burst.doctor.check_queues import (
    check_offer_limits,
    check_queue_states,
    check_queues,
)
from burst.doctor.facts import ProviderFacts, ReadFailure
from burst.model.job_limits import JobLimits
from burst.model.lead import QueueView
from tests.builders import offer
from tests.doctor.reading import NOTE, OK, WRONG, levels, said

PROPERTIES = {
    "batch": frozenset({0, 1}),
    "big": frozenset({1}),
    "burst": frozenset({2, 3}),
    "shared": frozenset({1, 2}),
}
LIST = ["defaults", "constraints", "/x/frob-burst.py"]
OURS = {"burst": {"requires": ["burst"]}, "burst-ready": {"requires": ["burst"]}}


def judge(
    queues: Any, mode: Mode = "hold", plugins: Any = LIST, **more: Any
) -> list[Any]:
    ranks = frozenset(range(4)) - more.pop("excluded", frozenset())
    frobnicator = {"plugins": plugins, "burst": {}} if plugins else {}
    config = {"queues": queues, "ingest": {"frobnicator": frobnicator}}
    default = more.pop("default", "")
    if default:
        system = {"queue": default}
        config["policy"] = {"jobspec": {"defaults": {"system": system}}}
    intake = IntakeSettings(mode=mode, **more)
    return check_queues(config, PROPERTIES, ranks, intake)


@pytest.mark.parametrize(
    ("requires", "level", "says"),
    [
        (["batch"], OK, "queue q: jobs run on ranks 0-1"),
        (["batch", "^big"], OK, "queue q: jobs run on ranks 0"),
        ([], OK, "queue q: jobs run on ranks 0-1"),
        (["^burst"], OK, "queue q: jobs run on ranks 0-1"),
        (["far"], WRONG, "queue q requires far, and no node that runs jobs has that"),
        (
            ["batch", "burst"],
            WRONG,
            "requires batch and burst, and no node that runs jobs has that",
        ),
        (["burst"], NOTE, "queue q requires burst, which lent nodes alone have"),
        (["shared"], WRONG, "which the lent ranks 2 have, too: jobs that do not"),
    ],
)
def test_a_queue_has_nodes_and_no_lent_ones(
    requires: list[str], level: Any, says: str
) -> None:
    (found,) = judge({"q": {"requires": requires}})
    assert says in found.what
    assert found.level is level


def test_a_node_that_is_excluded_runs_no_job_of_a_queue() -> None:
    queues = {"q": {"requires": ["batch"]}, "big": {"requires": ["big"]}}
    both, big = judge(queues, excluded=frozenset({1}))[1::-1]
    assert both.what == "queue q: jobs run on ranks 0"
    assert "big, and no node that runs jobs has that" in big.what
    assert big.level is WRONG


def test_limits_of_a_queue_are_told() -> None:
    limits = {"duration": "1h", "job-size": {"max": {"nnodes": 4}}}
    (found,) = judge({"q": {"policy": {"limits": limits}}})
    assert found.what == (
        "queue q: jobs run on ranks 0-1; nnodes at most 4, duration at most 1h"
    )
    # Where any job may run on lent nodes a queue may have them.
    assert levels(judge({"q": {"requires": ["shared"]}}, any_job=True)) == [OK]


@pytest.mark.parametrize(
    ("plugins", "level", "says"),
    [
        (None, NOTE, "the burst frobnicator, which lets them, is not loaded"),
        (["/x/frob-burst.py", "constraints"], WRONG, "stands before `constraints`"),
        (["/x/frob-burst.py"], WRONG, "stands before `constraints`"),
    ],
)
def test_burst_jobs_of_a_queue_need_the_frobnicator_last(
    plugins: Any, level: Any, says: str
) -> None:
    _, found = judge({"q": {"requires": ["batch"]}}, plugins=plugins)
    assert found.what.startswith("burst jobs in queue q get no lent nodes")
    assert says in found.what
    # Queues that it brings, too, would be unknown to a Fluxion that runs.
    assert ("flux config reload" in found.advice) is (level is WRONG)
    assert found.level is level
    assert "burst setup" in found.advice
    assert len(judge({"q": {"requires": ["^burst"]}}, plugins=plugins)) == 1


def test_our_queues_are_not_the_sites() -> None:
    assert judge(OURS, "queue") == []
    assert levels(judge({"burst": OURS["burst"]}, "hold")) == [NOTE]


def test_our_queues_have_the_limits_of_the_default_queue() -> None:
    limits = {"policy": {"limits": {"duration": "1h"}}}
    queues = {"batch": {"requires": ["batch"], **limits}, **OURS}
    found = judge(queues, "queue", default="batch")
    assert levels(found) == [OK, WRONG, WRONG]
    assert (
        "queue burst has other limits (none) than queue batch (duration at most 1h)"
        in said(found)
    )
    same = {name: {**each, **limits} for name, each in OURS.items()}
    assert levels(judge({**queues, **same}, "queue", default="batch")) == [OK]
    assert levels(judge(queues, "queue")) == [OK]
    del queues["burst-ready"]
    assert levels(judge(queues, "queue", default="batch")) == [OK, WRONG]


def test_offers_that_no_job_could_fill_are_told() -> None:
    facts = [
        ProviderFacts(name="a", type="local", offers=(offer(max_nodes=8),)),
        ProviderFacts(name="b", type="local", offers=ReadFailure("down")),
    ]
    four, two = JobLimits({"nnodes": 4}), JobLimits({"nnodes": 2})
    (found,) = check_offer_limits(facts, {"": four, "debug": two})
    assert "a/small sells up to 8 nodes" in found.what
    assert "have more than 4" in found.what
    assert list(check_offer_limits(facts, {"": four, "long": JobLimits()})) == []
    assert list(check_offer_limits(facts, {})) == []
    assert list(check_offer_limits(facts, {"": JobLimits({"nnodes": 8})})) == []


STOPPED = QueueView(started=False, reason="maintenance")
DISABLED = QueueView(enabled=False)


@pytest.mark.parametrize(
    ("queues", "mode", "says"),
    [
        ({"": QueueView()}, "hold", ""),
        (
            {"": STOPPED},
            "hold",
            "the queue of this instance is stopped (maintenance): Flux starts no job of"
            " it, and no nodes are rented for one -> flux queue start",
        ),
        (
            {"": QueueView(), "debug": STOPPED},
            "queue",
            "queue debug is stopped (maintenance): Flux starts no job of it, and no"
            " nodes are rented for one -> flux queue start debug",
        ),
        (
            {"debug": DISABLED},
            "scheduler",
            "queue debug is disabled: it takes no job, and no nodes are rented for"
            " those that it has -> flux queue enable debug",
        ),
        ({"burst": STOPPED, "burst-ready": STOPPED}, "queue", ""),
        (
            {"burst": STOPPED, "burst-ready": DISABLED},
            "queue",
            "queue burst-ready is disabled: it takes no job, and no nodes are rented"
            " for those that it has -> flux queue enable burst-ready",
        ),
    ],
)
def test_a_queue_that_is_stopped_or_disabled_is_told_with_what_to_type(
    queues: dict[str, QueueView], mode: Mode, says: str
) -> None:
    found = list(check_queue_states(queues, IntakeSettings(mode=mode)))
    assert said(found) == says
    assert set(levels(found)) <= {NOTE}


def judge_moves(queues: Any, guests: bool = False, **table: Any) -> list[Any]:
    frobnicator = {"plugins": LIST, "burst": table}
    config = {"queues": queues, "ingest": {"frobnicator": frobnicator}}
    config["access"] = {"allow-guest-user": guests}
    intake = IntakeSettings(mode="hold")
    found = check_queues(config, PROPERTIES, frozenset(range(4)), intake)
    return [each for each in found if each.what.startswith("flux update JOB")]


@pytest.mark.parametrize(
    ("guests", "table", "queues", "advice"),
    [
        (True, {"mode": "queue"}, "free, night, q", "or use mode scheduler"),
        (True, {}, "free, night, q", "or use mode scheduler"),
        (True, {"mode": "scheduler"}, "free", 'write requires = ["^burst"] there'),
        (True, {"share_users": True}, "free", 'write requires = ["^burst"] there'),
        (False, {}, "free", 'write requires = ["^burst"] there'),
    ],
)
def test_jobs_that_flux_moves_to_no_other_queue_are_foreseen(
    guests: bool, table: Any, queues: str, advice: str
) -> None:
    """Flux's own answers are in tests/flux/test_confine.py."""
    three = {"q": {"requires": ["batch"]}, "night": {"requires": ["^burst"]}}
    (found,) = judge_moves({**three, "free": {}}, guests, **table)
    assert found.level is NOTE
    assert f"is refused for jobs of queue {queues}: each has a con" in found.what
    assert advice in found.advice


def test_nothing_is_said_of_moves_that_go_on_or_never_were() -> None:
    queues = {"q": {"requires": ["batch"]}, "free": {}}
    assert judge_moves({"free": {}}, True) == []
    assert judge_moves(queues, True, any_job=True) == []
    assert judge_moves({**queues, "free": {"requires": ["^burst"]}}) == []
