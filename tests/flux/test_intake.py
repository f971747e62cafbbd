# SPDX-License-Identifier: MIT
"""What a mode of `[intake]` needs of the lead's scheduler and queues."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from burst.config import IntakeSettings
from burst.errors import BurstError, ConfigError, Unreadable
from burst.flux.intake import SCHEDULER, check_scheduler, prepare_queues
from burst.flux.rpc import RpcClient
from tests.flux.fake_handle import FakeHandle


def client(*modules: str) -> RpcClient:
    loaded = [{"name": name, "services": [name, "sched"]} for name in modules]
    others = [{"name": "kvs", "services": ["kvs"]}]
    services = {"module.list": lambda _: {"mods": [*others, *loaded]}}
    return RpcClient(FakeHandle(services).as_handle())


def test_ours_is_taken() -> None:
    check_scheduler(client(SCHEDULER))


@pytest.mark.parametrize(
    ("modules", "error", "advice"),
    [
        (("sched-simple",), ConfigError, "flux module remove sched-simple"),
        # The lead's rc1 runs, so that the daemon has to wait.
        ((), Unreadable, "flux module load sched-burst"),
    ],
)
def test_another_is_refused_and_none_is_waited_for(
    modules: tuple[str, ...], error: type[BurstError], advice: str
) -> None:
    with pytest.raises(error, match=advice):
        check_scheduler(client(*modules))


WAITING, READY = "burst", "burst-ready"
OURS = {"requires": ["burst"]}


def prepare(queues: dict[str, Any], started: set[str]) -> list[tuple[str, bool]]:
    """Return which queues were started or stopped, where these are on before."""
    changed: list[tuple[str, bool]] = []

    def start(asked: dict[str, Any]) -> dict[str, Any]:
        changed.append((asked["name"], asked["start"]))
        return {}

    services: dict[str, Callable[[Any], dict[str, Any]]] = {
        "config.get": lambda _: {"queues": queues},
        "job-manager.queue-status": lambda asked: {"start": asked["name"] in started},
        "job-manager.queue-start": start,
    }
    client = RpcClient(FakeHandle(services).as_handle())
    intake = IntakeSettings(mode="queue", queue=WAITING, ready=READY)
    try:
        prepare_queues(client, intake)
    except ConfigError:
        assert not changed, "nothing is changed where something is wrong"
        raise
    return changed


def test_the_queue_in_which_jobs_wait_is_stopped_and_the_other_started() -> None:
    queues = {WAITING: OURS, READY: OURS}
    assert prepare(queues, {WAITING}) == [(WAITING, False), (READY, True)]
    assert prepare(queues, {READY}) == []


@pytest.mark.parametrize(
    ("queues", "why"),
    [
        ({READY: OURS}, f"no queue {WAITING}"),
        ({WAITING: OURS}, f"no queue {READY}"),
        ({WAITING: {}, READY: OURS}, f"queue {WAITING} .* requires nothing"),
        ({WAITING: OURS, READY: {}}, f"queue {READY} .* requires nothing"),
    ],
)
def test_queues_that_may_be_for_other_jobs_are_left_alone(
    queues: dict[str, Any], why: str
) -> None:
    with pytest.raises(ConfigError, match=why):
        prepare(queues, {WAITING})
