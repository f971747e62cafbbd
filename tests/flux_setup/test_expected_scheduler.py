# SPDX-License-Identifier: MIT
"""What an instance's scheduler will be by its files, and which modes go with it."""

from __future__ import annotations

from typing import Any

import pytest

from burst.config import IntakeSettings
from burst.errors import ConfigError
from burst.flux_setup.expected_scheduler import check_compatible, expected_scheduler
from burst.flux_setup.running_instance import RunningInstance
from burst.model.scheduler import FLUXION, MATCHER, Scheduler

QUEUE = IntakeSettings(mode="queue")
HOLD = IntakeSettings(mode="hold")
OURS = {"burst": {"requires": ["burst"]}, "burst-ready": {"requires": ["burst"]}}
MIXED = {"queue-policy": "easy", "queue-policy-per-queue": "debug:fcfs"}


def running(config, **policies: str) -> RunningInstance:
    known = Scheduler(name=FLUXION, policies=policies)
    return RunningInstance(known=known, config=config)


def policies(tables, instance=None) -> dict[str, str]:
    return dict(expected_scheduler(tables, instance).policies)


def test_without_an_instance_the_files_have_the_policies() -> None:
    assert policies({FLUXION: {}}) == {"default": "fcfs"}
    named: dict[str, Any] = {"batch": {}, "debug": {}}
    found = policies({FLUXION: MIXED, "queues": named})
    assert found == {"batch": "easy", "debug": "fcfs"}
    matcher = {"match-policy": "lonodex", "update-interval": 5}
    known = expected_scheduler({MATCHER: matcher}, None)
    assert (known.whole_nodes, known.stale_s) == (True, 5)
    assert expected_scheduler({}, None).name == ""
    chosen = {"modules": {"alternatives": {"sched": "sched-simple"}}, FLUXION: {}}
    assert expected_scheduler(chosen, None).name == "sched-simple"


def test_an_instance_has_options_that_the_files_have_not() -> None:
    # Given to the module; of a queue that is new the files say nothing.
    now = running({}, batch="easy")
    assert policies({"queues": {"batch": {}, "new": {}}}, now) == {
        "batch": "easy",
        "new": "easy",
    }
    differ = running({}, batch="easy", debug="hybrid")
    assert policies({"queues": {"new": {}}}, differ) == {"new": "fcfs"}


def test_files_that_changed_since_it_started_count() -> None:
    now = running({FLUXION: {"queue-policy": "easy"}}, default="easy")
    assert policies({FLUXION: {"queue-policy": "fcfs"}}, now) == {"default": "fcfs"}
    check_compatible({FLUXION: {"queue-policy": "easy"}}, running({}), QUEUE)


@pytest.mark.parametrize("tables", [{FLUXION: {}}, {MATCHER: {}}])
def test_ordinary_jobs_that_would_be_denied_are_not(tables) -> None:
    with pytest.raises(ConfigError, match="queue default requires no property"):
        check_compatible(tables, None, QUEUE)
    with pytest.raises(ConfigError, match="mode is hold, and Fluxion schedules by"):
        check_compatible(tables, None, HOLD)
    # As `burst setup` leaves a site without named queues.
    after = {"queues": {**OURS, "batch": {"requires": ["^burst"]}}}
    with pytest.raises(ConfigError, match="queue batch requires no property"):
        check_compatible({**tables, **after}, running({}, default="fcfs"), QUEUE)
    own = {"queues": {**OURS, "batch": {"requires": ["batch"]}}}
    check_compatible({**tables, **own}, None, QUEUE)


def test_a_scheduler_that_is_not_known_may_be_the_one_that_is_installed() -> None:
    with pytest.raises(ConfigError, match="not known, and Fluxion is installed"):
        check_compatible({}, None, QUEUE, has_fluxion=True)
    check_compatible({}, None, QUEUE)
    check_compatible({}, None, IntakeSettings(mode="scheduler"), has_fluxion=True)
    simple = RunningInstance(known=Scheduler(name="sched-simple"), config={})
    check_compatible({}, simple, QUEUE, has_fluxion=True)
    check_compatible({}, simple, IntakeSettings(mode="scheduler"))


def test_a_sites_scheduler_is_not_replaced() -> None:
    with pytest.raises(ConfigError, match=f"the instance schedules with {FLUXION}"):
        check_compatible({}, running({}), IntakeSettings(mode="scheduler"))
