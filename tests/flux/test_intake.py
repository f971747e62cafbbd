# SPDX-License-Identifier: MIT
"""The queues of `[intake] mode = "queue"`: one is stopped, the other started."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from burst.config import IntakeSettings
from burst.errors import ConfigError
from burst.flux.queues import prepare_queues
from burst.flux.rpc import RpcClient
from tests.flux.fake_handle import FakeHandle

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
        "job-manager.queue-list": lambda _: {"queues": [*queues]},
        "job-manager.queue-status": lambda asked: {
            "start": asked["name"] in started,
            "enable": True,
        },
        "job-manager.queue-start": start,
    }
    client = RpcClient(FakeHandle(services).as_handle())
    intake = IntakeSettings(mode="queue", queue=WAITING)
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
    queues |= {"batch": {}, "debug": {}}
    assert prepare(queues, {"debug"}) == [(READY, True)]


def test_while_all_are_stopped_burst_jobs_start_on_no_nodes_either() -> None:
    queues = {WAITING: OURS, READY: OURS, "batch": {}}
    assert prepare(queues, set()) == []
    assert prepare(queues, {WAITING}) == [(WAITING, False)]
    assert prepare(queues, {READY}) == [], "it was not `flux queue stop --all`"


@pytest.mark.parametrize(
    ("queues", "why"),
    [
        ({READY: OURS}, f"no queue {WAITING}"),
        ({WAITING: OURS}, f"no queue {READY}"),
        ({WAITING: {}, READY: OURS}, f"queue {WAITING} .* requires no property"),
        ({WAITING: OURS, READY: {}}, f"queue {READY} .* requires no property"),
    ],
)
def test_queues_that_may_be_for_other_jobs_are_left_alone(
    queues: dict[str, Any], why: str
) -> None:
    with pytest.raises(ConfigError, match=why):
        prepare(queues, {WAITING})
