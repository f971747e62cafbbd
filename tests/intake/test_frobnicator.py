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


@pytest.mark.parametrize("tables", [{"ingest": ingest()}])
def test_a_plain_job_gets_the_constraint_and_a_burst_job_does_not(
    user: UserCli,
) -> None:
    plain = user.submit("true")
    both = user.submit("--requires=local", "true")
    burst = user.submit("--setattr=burstable", "-N4", "true")
    assert user.constraint(plain) == {"properties": ["^burst"]}
    assert user.constraint(both) == {
        "and": [{"properties": ["local"]}, {"properties": ["^burst"]}]
    }
    assert user.constraint(burst) is None
    denied = user.submit("-N5", "true")
    user.do("cancel", burst)
    assert "only 2 eligible" in user.event(denied, "exception")


@pytest.mark.parametrize("tables", [{"ingest": ingest(any_job=True)}])
def test_a_site_may_let_any_job_run_there(user: UserCli) -> None:
    assert user.constraint(user.submit("true")) is None


@pytest.mark.parametrize(
    "tables", [{"ingest": ingest(attribute="cloud", property="x")}]
)
def test_other_names_may_be_used(user: UserCli) -> None:
    plain = user.submit("--setattr=burstable", "true")
    assert user.constraint(plain) == {"properties": ["^x"]}
    assert user.constraint(user.submit("--setattr=cloud", "true")) is None


@pytest.mark.parametrize("tables", [WITH_QUEUES])
def test_a_queue_that_says_where_its_jobs_run_is_left_alone(user: UserCli) -> None:
    batch = user.submit("-qbatch", "true")
    assert user.constraint(batch) == {"properties": ["local"]}
    anywhere = user.submit("-qany", "true")
    assert user.constraint(anywhere) == {"properties": ["^burst"]}


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


SITE = {
    "ingest": ingest(),
    "queues": {
        "batch": {"requires": ["local"]},
        "debug": {"requires": ["local", "fast"]},
        "free": {"requires": ["^burst"]},
    },
}


@pytest.mark.parametrize("tables", [SITE])
def test_a_burst_job_of_a_queue_may_have_lent_nodes_for_those_of_the_queue(
    user: UserCli,
) -> None:
    """Lent nodes need no property of a queue, by which others would get them, too."""
    lent, local = {"properties": ["burst"]}, {"properties": ["local"]}
    either = {"or": [local, lent]}
    burst = ("--setattr=burstable", "--urgency=hold")
    asked: list[tuple[list[str], Any]] = [
        (["-qbatch"], local),
        ([*burst, "-qbatch", "-N4"], either),
        ([*burst, "-qbatch", "--requires=burst-0"], [{"properties": ["burst-0"]}]),
        ([*burst, "-qbatch", "--requires=local"], either),
        ([*burst, "-qbatch", "--requires=host:lead-0"], [{"hostlist": ["lead-0"]}]),
        ([*burst, "-qdebug"], {"or": [{"properties": ["local", "fast"]}, lent]}),
        ([*burst, "-qfree"], None),
        ([*burst, "-qfree", "--requires=burst"], lent),
        (["-qfree"], {"properties": ["^burst"]}),
    ]
    for words, wanted in asked:
        found = user.constraint(user.submit(*words, "true"))
        whole = {"and": [*wanted, either]} if isinstance(wanted, list) else wanted
        assert found == whole, words


@pytest.mark.parametrize("tables", [{**SITE, "ingest": ingest(plugins=BEFORE)}])
def test_before_constraints_its_queue_says_which_nodes_a_burst_job_may_have(
    user: UserCli,
) -> None:
    job = user.submit("--setattr=burstable", "--urgency=hold", "-qbatch", "true")
    assert user.constraint(job) == {"properties": ["local"]}


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
