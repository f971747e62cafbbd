# SPDX-License-Identifier: MIT
"""Who does not burst is kept off lent nodes, unless the site lets any job run there."""

from __future__ import annotations

from typing import Any

import pytest

from tests.flux_instance import FluxInstance
from tests.intake import modes
from tests.intake.user_cli import FROBNICATOR, UserCli

pytestmark = pytest.mark.flux


BEFORE = ["defaults", FROBNICATOR, "constraints"]
"""Where releases before this one put it."""


def ingest(**table: Any) -> dict[str, Any]:
    plugins = table.pop("plugins", modes.PLUGINS)
    return {"frobnicator": {"plugins": plugins, "burst": table}}


QUEUES = {**modes.QUEUES, "any": {}}
WITH_QUEUES = {"ingest": ingest(ready="burst-ready"), "queues": QUEUES}


@pytest.fixture
def user(instance: FluxInstance, tables: dict[str, Any]) -> UserCli:
    """Give a user of an instance that was told to have these tables."""
    instance.reload_config(tables)
    return UserCli(instance)


SITE = {
    "ingest": ingest(),
    "queues": {
        "batch": {"requires": ["local"]},
        "debug": {"requires": ["local", "fast"]},
        "free": {"requires": ["^burst"]},
    },
}
OFF_LENT, LENT, LOCAL = (
    {"properties": [name]} for name in ("^burst", "burst", "local")
)
EITHER = {"or": [LOCAL, LENT]}
BURST = ("--setattr=burstable", "--urgency=hold")
CONSTRAINTS: dict[str, tuple[dict[str, Any], list[tuple[tuple[str, ...], Any]]]] = {
    "plain": (
        {"ingest": ingest()},
        [
            ((), OFF_LENT),
            (("--requires=local",), {"and": [LOCAL, OFF_LENT]}),
            ((*BURST, "-N4"), None),
        ],
    ),
    "any job": ({"ingest": ingest(any_job=True)}, [((), None)]),
    "another name": (
        {"ingest": ingest(property="x")},
        [((), {"properties": ["^x"]}), (("--setattr=burstable",), None)],
    ),
    "queues": (
        WITH_QUEUES,
        # One that says where its jobs run is left alone.
        [(("-qbatch",), LOCAL), (("-qany",), OFF_LENT)],
    ),
    # Lent nodes need no property of a queue, by which others would get them, too.
    "queues of a site": (
        SITE,
        [
            (("-qbatch",), LOCAL),
            ((*BURST, "-qbatch", "-N4"), EITHER),
            (
                (*BURST, "-qbatch", "--requires=burst-0"),
                {"and": [{"properties": ["burst-0"]}, EITHER]},
            ),
            ((*BURST, "-qbatch", "--requires=local"), EITHER),
            (
                (*BURST, "-qbatch", "--requires=host:lead-0"),
                {"and": [{"hostlist": ["lead-0"]}, EITHER]},
            ),
            (
                (*BURST, "-qdebug"),
                {"or": [{"properties": ["local", "fast"]}, LENT]},
            ),
            ((*BURST, "-qfree"), None),
            ((*BURST, "-qfree", "--requires=burst"), LENT),
            (("-qfree",), OFF_LENT),
        ],
    ),
    "before constraints": (
        {**SITE, "ingest": ingest(plugins=BEFORE)},
        [((*BURST, "-qbatch"), LOCAL)],
    ),
}
"""By configuration: options of jobs, and the constraint that each gets."""


@pytest.mark.parametrize(
    ("tables", "jobs"), CONSTRAINTS.values(), ids=CONSTRAINTS.keys()
)
def test_jobs_get_the_constraint_of_who_they_are(
    user: UserCli, jobs: list[tuple[tuple[str, ...], Any]]
) -> None:
    for words, wanted in jobs:
        assert user.constraint(user.submit(*words, "true")) == wanted, words


@pytest.mark.parametrize("tables", [{"ingest": ingest()}])
def test_what_own_nodes_cannot_run_is_denied(user: UserCli) -> None:
    assert "only 2 eligible" in user.event(user.submit("-N5", "true"), "exception")


@pytest.mark.parametrize("tables", [WITH_QUEUES])
def test_the_burst_queues_are_not_for_others(user: UserCli) -> None:
    for words, says in (
        (["-qburst"], "queue burst is for burst jobs; submit with flux submit --burst"),
        (["-qburst-ready"], "is for jobs whose nodes are online"),
        (["-qburst-ready", "--setattr=burstable"], "is for jobs whose nodes are"),
    ):
        said = user.type("submit", *words, "true")
        assert said.status != 0
        assert says in said.error


BY_QUEUE = {
    "ingest": ingest(queue="burst", ready="burst-ready"),
    "queues": QUEUES,
    "policy": modes.BATCH,
}


_INTO_QUEUE = {"mode": "queue", "queue": "burst", "ready": "burst-ready"}
GUESTS_AND_VALIDATOR = {
    **BY_QUEUE,
    "access": {"allow-guest-user": True},
    "ingest": {
        **ingest(**_INTO_QUEUE),
        "validator": {"plugins": ["jobspec", "feasibility"]},
    },
}


@pytest.mark.parametrize("tables", [GUESTS_AND_VALIDATOR])
def test_with_guests_a_burstable_job_that_own_nodes_cannot_run_is_told_what_to_type(
    user: UserCli,
) -> None:
    """Flux's validator would refuse it: only the daemon gives it lent nodes."""
    said = user.type("submit", "--setattr=burstable", "-qany", "-N4", "true")
    assert said.status != 0
    assert "in queue any without lent nodes" in said.error
    assert "submit it with flux submit --burst, without --queue" in said.error
    user.submit("--setattr=burstable", "--urgency=hold", "-qany", "-N2", "true")
    user.submit("--setattr=burstable", "-qbatch", "-N4", "true")
    # One that does not burst is refused by Flux, in Flux's words.
    said = user.type("submit", "-qany", "-N4", "true")
    assert said.status != 0
    assert "lent nodes" not in said.error


WITH_VALIDATOR = {
    **SITE,
    "ingest": {
        **ingest(),
        "validator": {"plugins": ["jobspec", "feasibility"]},
    },
}


@pytest.mark.parametrize("tables", [WITH_VALIDATOR])
def test_what_cannot_run_is_refused_as_before_and_burst_jobs_are_not(
    user: UserCli,
) -> None:
    user.submit("--setattr=burstable", "--urgency=hold", "-qbatch", "-N4", "true")
    said = user.type("submit", "-qbatch", "-N4", "true")
    assert said.status != 0
    assert "only 2 eligible" in said.error
    moved = user.submit("--urgency=hold", "-qbatch", "true")
    user.do("update", moved, "queue=free")
    assert user.do("jobs", "-no{queue}", moved) == "free"


@pytest.mark.parametrize(
    "tables",
    [
        BY_QUEUE,
        {
            **BY_QUEUE,
            "ingest": ingest(queue="burst", ready="burst-ready", plugins=BEFORE),
        },
    ],
)
def test_a_burstable_job_waits_in_the_burst_queue(user: UserCli) -> None:
    """Else it waits in the default queue, whose nodes are never lent ones."""
    job = user.submit("--setattr=burstable", "-N4", "true")
    assert user.do("jobs", "-no{queue}", job) == "burst"
    assert user.constraint(job) == {"properties": ["burst"]}
    other = user.submit("--setattr=burstable", "-qany", "true")
    assert user.do("jobs", "-no{queue}", other) == "any"
    said = user.type("submit", "--setattr=burstable", "--requires=burst-0", "true")
    assert said.status != 0
    assert "submit it without --requires" in said.error
    user.do("cancel", job, other)
