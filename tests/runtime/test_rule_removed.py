# SPDX-License-Identifier: MIT
"""A reload that removes the rule that marked a job without the attribute."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from contextlib import closing
from typing import Any

import pytest

from burst.config import Settings, parse
from burst.core.commands import held_jobs
from burst.model.hold import HoldState
from burst.provider import Provider
from burst.runtime.session import Session
from burst.testing import FakeCloud, FakeProvider, FakeSettings
from burst.wakeup import WakeUp
from tests.builders import NODE
from tests.embedded_instance import EmbeddedInstance, embedded_instance
from tests.support.waiting import wait_until

MARKS = {"name": "large", "match": {"name": "large"}, "mark": True}


def settings(*policy: dict[str, Any]) -> Settings:
    tables: dict[str, Any] = {
        "daemon": {"cadence": "0.2s"},
        "limits": {"max_nodes": 1},
        "providers": {"local": {"type": "fake"}},
        "policy": list(policy),
    }
    return parse(tables, "site.toml")


class OneCloud(Session):
    """Its provider is a fake."""

    def load(self, settings: Settings, owner: str) -> Mapping[str, Provider]:
        known = FakeSettings(max_nodes=8, shape=NODE)
        names = settings.providers
        return {name: FakeProvider(name, known, owner, FakeCloud()) for name in names}


@pytest.fixture
def instance() -> Iterator[EmbeddedInstance]:
    with embedded_instance() as instance:
        yield instance


def test_a_job_that_it_held_is_released(instance: EmbeddedInstance) -> None:
    with (
        closing(instance.lead()) as lead,
        closing(OneCloud(lead, settings(MARKS), WakeUp(), Future)) as session,
    ):
        session.start()
        job = instance.submit(
            nodes=4, burstable=False, attributes={"job": {"name": "large"}}
        )

        def is_held() -> bool:
            session.tick(0.02)
            return held_jobs(session.engine.snapshot.records) == [job]

        wait_until(is_held, "the hold")
        assert lead.observe().jobs[job].urgency == 0

        session.replace(session.make_config(settings()).result())

        def is_released() -> bool:
            session.tick(0.02)
            hold = session.engine.snapshot.records.holds.get(job)
            return hold is None or hold.state is HoldState.RELEASED

        wait_until(is_released, "the release")
        assert lead.observe().jobs[job].urgency == 16
