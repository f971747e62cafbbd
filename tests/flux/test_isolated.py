# SPDX-License-Identifier: MIT
"""What real Flux makes of a job that runs elsewhere: held, told, ended, never started.

What runs elsewhere is played.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import closing

import pytest

from burst.config import parse
from burst.core.plan.slots import find_slots
from burst.lead import Lead
from burst.model.jobid import JobId, format_f58
from burst.runtime.engine import Engine
from burst.runtime.engine_config import EngineConfig
from burst.runtime.executor import ProviderWorkers
from burst.testing import FakeProvider, FakeSettings
from tests.flux_instance import FLUX, MISSING, FluxInstance
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.flux, pytest.mark.skipif(not FLUX, reason=MISSING)]


@pytest.fixture
def lead(instance: FluxInstance) -> Iterator[Lead]:
    with closing(instance.lead()) as found:
        found.listen(lambda: None)
        yield found


@pytest.fixture
def provider() -> FakeProvider:
    return FakeProvider("far", FakeSettings(modes=("joined", "isolated")))


@pytest.fixture
def engine(lead: Lead, provider: FakeProvider) -> Iterator[Engine]:
    known = lead.identity()
    tables = {"daemon": {"cadence": "0.5s"}, "providers": {"far": {"type": "fake"}}}
    config = EngineConfig(
        settings=parse(tables, "test"),
        identity=known,
        slots=find_slots(known),
        providers={"far": provider},
    )
    workers = ProviderWorkers(time.time, lambda: None)
    made = Engine(lead, config, workers, time.time())
    yield made
    made.close()


def events(instance: FluxInstance, job: JobId) -> list[dict[str, object]]:
    # The journal is ahead of what is kept.
    instance.flux("job", "wait-event", "-t", "60", format_f58(job), "clean")
    lines = instance.flux("job", "eventlog", "-f", "json", format_f58(job))
    return [json.loads(line) for line in lines.splitlines()]


def turn_until_ended(engine: Engine, lead: Lead, job: JobId) -> None:
    def ended() -> bool:
        engine.tick(time.time())
        view = lead.observe().jobs[job]
        return view.state.value == "inactive"

    wait_until(ended, lambda: str(engine.snapshot.records.bursts))


def test_it_has_the_result_of_its_run_and_never_had_nodes(
    instance: FluxInstance, lead: Lead, engine: Engine, provider: FakeProvider
) -> None:
    status, result = 3, "FAILED"
    provider.ends_with, provider.writes = status, "some\nwords\0\n"
    job = instance.submit(nodes=3, attributes={"burst": {"mode": "isolated"}})
    turn_until_ended(engine, lead, job)
    (burst,) = engine.snapshot.records.bursts.values()
    seen = events(instance, job)
    names = [event["name"] for event in seen]
    assert "exception" not in names
    assert [e["context"] for e in seen if e["name"] == "alloc"] == [{"bypass": True}]
    fields = "{user.burst.state}|{user.burst.burst}|{status}|{returncode}|{ranks}"
    told = instance.flux("jobs", "-ano", fields, format_f58(job))
    assert told == f"exit {status}|{burst.id}|{result}|{status}|"
    attached = instance.run("job", "attach", "--read-only", format_f58(job))
    assert (attached.returncode, attached.stdout) == (status, "some\nwords\ufffd\n")
    allocated = ("list", "-s", "allocated", "-no", "{nnodes}")
    assert instance.flux("resource", *allocated) == "0"
    output = instance.flux("jobs", "-ano", "{user.burst.output}", format_f58(job))
    assert output.startswith("some\nwords")
    assert provider.cloud.begun == [burst.id]
