# SPDX-License-Identifier: MIT
"""Which scheduler is loaded, and what that means for the modes of `[intake]`."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import pytest

from burst.config import IntakeSettings
from burst.errors import BurstError, ConfigError, Unreadable
from burst.flux.rpc import RpcClient
from burst.flux.scheduler import (
    READ_EVERY_S,
    SCHEDULER,
    SchedulerReader,
    check_scheduler,
    read_scheduler,
)
from burst.model.scheduler import FLUXION, MATCHER, Order, Scheduler
from tests.flux.fake_handle import Answer, FakeHandle
from tests.flux.rank_answers import resources

MODE_SCHEDULER = IntakeSettings(mode="scheduler")
MODE_HOLD = IntakeSettings(mode="hold")
MODE_QUEUE = IntakeSettings(mode="queue")
R = resources(("0-3", "0-1", ""), burst="2-3")
BATCH = {"batch": {"requires": ["local"]}}


def constant(answer: Any) -> Callable[[Any], Answer]:
    return lambda _: answer


def client(*modules: str, **services: Any) -> RpcClient:
    loaded = [
        {"name": name, "path": f"/a b/{name}.py", "services": [name, "sched"]}
        for name in modules
    ]
    others = [{"name": "kvs", "services": ["kvs"]}]
    answers = {
        "module.list": {"mods": [*others, *loaded]},
        f"{SCHEDULER}.stats-get": {"policy": "fifo"},
        "config.get": {},
        **services,
    }
    services = {topic: constant(answer) for topic, answer in answers.items()}
    return RpcClient(FakeHandle(services).as_handle())


def fluxion(
    policies: dict[str, str],
    *,
    queues: Any = MappingProxyType({}),
    answers: Mapping[str, Any] = MappingProxyType({}),
    policy: str = "first",
    repeats_s: int = 0,
) -> RpcClient:
    """Return a lead with Fluxion; it is held to the real one in test_fluxion.py.

    `policy` is that of its matcher, `answers` are of other services of the lead.
    """
    stats = {"queues": {name: {"policy": it} for name, it in policies.items()}}
    params = {"policy": policy, "update-interval": repeats_s}
    services: dict[str, Any] = {
        f"{FLUXION}.stats-get": stats,
        f"{MATCHER}.params": {"params": params},
        "config.get": {"queues": dict(queues)},
        "resource.status": {"R": R, "exclude": ""},
        "sched.resource-status": {"all": R, "down": None, "allocated": None},
        **answers,
    }
    return client(FLUXION, **services)


def test_ours_is_taken() -> None:
    check_scheduler(client(SCHEDULER), MODE_SCHEDULER)


@pytest.mark.parametrize(
    ("modules", "error", "advice"),
    [
        (
            ("sched-simple",),
            ConfigError,
            "flux module remove sched-simple and flux modprobe load sched-burst",
        ),
        # The lead's rc1 runs, so that the daemon has to wait.
        ((), Unreadable, "flux modprobe load sched-burst"),
    ],
)
def test_another_is_refused_and_none_is_waited_for(
    modules: tuple[str, ...], error: type[BurstError], advice: str
) -> None:
    with pytest.raises(error, match=advice):
        check_scheduler(client(*modules), MODE_SCHEDULER)


def test_the_other_modes_wait_for_a_scheduler_and_take_each_of_flux() -> None:
    with pytest.raises(Unreadable, match="no scheduler is loaded yet"):
        check_scheduler(client(), MODE_HOLD)
    for name in ("sched-simple", "sched-fifo", "sched-backfill", "another"):
        check_scheduler(client(name), MODE_HOLD)


@pytest.mark.parametrize("policy", ["easy", "conservative", "hybrid"])
def test_fluxion_with_backfill_is_taken(policy: str) -> None:
    for intake in (MODE_HOLD, MODE_QUEUE):
        check_scheduler(fluxion({"default": policy}), intake)


@pytest.mark.parametrize(
    ("policies", "queues", "intake", "what", "advice"),
    [
        ({"default": "fcfs"}, {}, MODE_HOLD, "queues: default", 'or choose mode "que'),
        ({"a": "easy", "b": "fcfs"}, {}, MODE_HOLD, "queues: b", "queue-policy = "),
        ({"default": "fcfs"}, {}, MODE_QUEUE, "queue default", "queue-policy"),
        (
            {"a": "fcfs"},
            {"a": {}},
            MODE_QUEUE,
            "queue a requires",
            "require a property",
        ),
        (
            {"batch": "fcfs", "burst": "fcfs"},
            {"batch": {"requires": ["^burst"]}, "burst": {"requires": ["burst"]}},
            MODE_QUEUE,
            "queue batch requires no property that own nodes have",
            "require a property",
        ),
        ({"default": "fcfs"}, {}, MODE_SCHEDULER, "loaded scheduler is sched-fl", ""),
    ],
)
def test_fcfs_is_refused_where_it_would_deny_jobs(
    policies: dict[str, str],
    queues: Any,
    intake: IntakeSettings,
    what: str,
    advice: str,
) -> None:
    with pytest.raises(ConfigError, match=what) as raised:
        check_scheduler(fluxion(policies, queues=queues), intake)
    assert advice in raised.value.advice


def test_fcfs_is_taken_in_mode_queue_where_queues_keep_jobs_off_lent_nodes() -> None:
    known = {"batch": "fcfs", "burst": "fcfs", "burst-ready": "fcfs"}
    queues = {**BATCH, "burst": {}, "burst-ready": {}}
    check_scheduler(fluxion(known, queues=queues), MODE_QUEUE)
    any_job = IntakeSettings(mode="queue", any_job=True)
    check_scheduler(fluxion({"default": "fcfs"}), any_job)


def test_queues_of_ours_that_fluxion_does_not_know_are_refused() -> None:
    queues = {**BATCH, "night": {}, "burst": {}, "burst-ready": {}}
    old = fluxion({"batch": "easy", "night": "easy"}, queues=queues)
    with pytest.raises(ConfigError, match="queue burst, burst-ready") as raised:
        check_scheduler(old, MODE_QUEUE)
    assert f"flux module load {FLUXION}" in raised.value.advice
    # Those of the site are its own trouble, and in the other mode ours have no jobs.
    check_scheduler(old, MODE_HOLD)
    ours = dict.fromkeys(("batch", "burst", "burst-ready"), "easy")
    check_scheduler(fluxion(ours, queues=queues), MODE_QUEUE)


def test_what_fluxion_repeats_is_refused() -> None:
    late = fluxion({"default": "easy"}, repeats_s=5)
    with pytest.raises(ConfigError, match="up to 5 s old"):
        check_scheduler(late, MODE_HOLD)


def ours(policy: str, **more: Any) -> Scheduler:
    again = f"'/a b/{SCHEDULER}.py' policy={policy}"
    return Scheduler(name=SCHEDULER, loaded_as=again, **more)


@pytest.mark.parametrize(
    ("asked", "known"),
    [
        (client("sched-simple"), Scheduler(name="sched-simple")),
        (client("sched-backfill"), Scheduler(name="sched-backfill", order=Order.EASY)),
        (client(SCHEDULER), ours("fifo")),
        (
            client(SCHEDULER, **{f"{SCHEDULER}.stats-get": {"policy": "backfill"}}),
            ours("backfill", order=Order.EASY),
        ),
        (
            fluxion({"a": "hybrid", "b": "conservative"}, policy="lonodex"),
            Scheduler(
                name=FLUXION,
                order=Order.CONSERVATIVE,
                policies={"a": "hybrid", "b": "conservative"},
                whole_nodes=True,
            ),
        ),
        (
            fluxion(
                {"a": "fcfs", "b": "easy"},
                policy="policy=low node_exclusive=true stop_on_1_matches=true",
            ),
            Scheduler(
                name=FLUXION,
                order=Order.EASY,
                policies={"a": "fcfs", "b": "easy"},
                whole_nodes=True,
            ),
        ),
        (client(), Scheduler()),
    ],
)
def test_order_and_whole_nodes_are_read(asked: RpcClient, known: Scheduler) -> None:
    assert read_scheduler(asked) == known


def test_it_is_read_again_after_a_while(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    now = [0.0]
    policies = {"default": {"policy": "fcfs"}}
    told = {f"{FLUXION}.stats-get": {"queues": policies}}
    reader = SchedulerReader(fluxion({}, answers=told), clock=lambda: now[0])
    assert reader.read().title == "Fluxion (fcfs)"
    policies["default"] = {"policy": "easy"}
    assert reader.read().order is Order.FIFO
    now[0] = READ_EVERY_S + 1
    assert reader.read().order is Order.EASY
    assert "another scheduler now: Fluxion (easy)" in caplog.text


@pytest.mark.parametrize(
    ("known", "excluded", "refused"),
    [
        (resources(("0-1", "0-1", "")), "", True),
        # A slot of which it does not know some ranks is left out, and others are not.
        (resources(("0-2", "0-1", "")), "", False),
        (resources(("0-2", "0-1", "")), "2", True),
        (resources(("0-1", "0-1", "")), "2-3", False),
    ],
)
def test_a_graph_in_r_without_the_ranks_to_be_lent_is_refused(
    known: Any, excluded: str, refused: bool
) -> None:
    answers = {
        "resource.status": {"R": R, "exclude": excluded},
        "sched.resource-status": {"all": known, "down": None, "allocated": None},
    }
    lead = fluxion({"default": "easy"}, answers=answers)
    if not refused:
        check_scheduler(lead, MODE_HOLD)
        return
    with pytest.raises(ConfigError, match="has a graph") as raised:
        check_scheduler(lead, MODE_HOLD)
    assert "the key `scheduling`" in raised.value.advice
