# SPDX-License-Identifier: MIT
"""Whatever is in a jobspec spoils its own job: from the journal's text to an action."""

import copy
from collections.abc import Iterable
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from burst.flux.job_state import JournalEvent, job_from_jobspec
from burst.model.jobid import JobId
from burst.model.lead import JobState
from burst.model.request import BurstPreferences
from tests.builders import whole
from tests.fakes import FakeLead
from tests.sim import Sim

MODES = ("hold", "queue", "scheduler")
SPEC: dict[str, Any] = {
    "version": 1,
    "resources": [
        {
            "type": "node",
            "count": 1,
            "exclusive": True,
            "with": [
                {
                    "type": "slot",
                    "count": 1,
                    "label": "task",
                    "with": [{"type": "core", "count": 1}, {"type": "gpu", "count": 1}],
                }
            ],
        }
    ],
    "tasks": [{"command": ["true"], "slot": "task", "count": {"per_slot": 1}}],
    "attributes": {
        "system": {
            "duration": 60,
            "cwd": "/tmp",
            "queue": "burst",
            "environment": {"COLOR": "red"},
            "shell": {"options": {"verbose": 1}},
            "constraints": {"and": [{"properties": ["burst"]}, {"ranks": ["2-9"]}]},
            "burstable": True,
            "burst": {
                "mode": "isolated",
                "provider": "local",
                "max-price": 5.0,
                "wait": 0.0,
                "where": "together",
                "urgency": 16,
            },
        }
    },
}

values = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.sampled_from([0, -1, 2**31, 2**63, 10**30, 10**4000, 1e300, -0.5]),
        st.floats(allow_nan=False, allow_infinity=False),
        st.text(max_size=6),
        st.sampled_from(
            ["", "2-8", "1-99999999", "9" * 5000, "{x}", "joined", "isolated", "burst"]
        ),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.one_of(
                st.text(max_size=3),
                st.sampled_from(["min", "max", "operator", "operand", "and", "not"]),
                st.sampled_from(["type", "count", "with", "hostlist", "options"]),
            ),
            inner,
            max_size=3,
        ),
    ),
    max_leaves=8,
)


def paths(value: Any, above: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a jobspec."""
    inner: Iterable[tuple[Any, Any]] = ()
    if isinstance(value, dict):
        inner = value.items()
    elif isinstance(value, list):
        inner = enumerate(value)
    return [above, *(p for key, v in inner for p in paths(v, (*above, key)))]


def put(path: tuple[Any, ...], value: Any) -> Any:
    """SPEC with another value at one place."""
    if not path:
        return value
    spec = copy.deepcopy(SPEC)
    place: Any = spec
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return spec


class LeadWithJobspecs(FakeLead):
    """Knows the jobspecs of jobs that came with one."""

    def __init__(self) -> None:
        super().__init__()
        self.specs: dict[JobId, Any] = {}

    def take(self, text: bytes) -> JobId | None:
        """A job as the journal would bring it; None where it may not burst.

        Flux has it after others: what burst leaves alone may well be in Flux's way.
        """
        urgency = 8
        number = JobId(len(self.jobs) + 1)
        job = job_from_jobspec(number, text)
        if job is None:
            return None
        events: tuple[tuple[str, dict[str, Any]], ...] = (
            ("submit", {"userid": 100, "urgency": urgency, "flags": 0}),
            ("validate", {}),
            ("depend", {}),
            ("priority", {"priority": urgency}),
        )
        for name, context in events:
            job.apply(JournalEvent(self.now, name, context), None)
        self.jobs[number] = job.view()
        if job.view().request is not None:
            self.specs[number] = msgspec.json.decode(text)
        return number

    def jobspec(self, job: JobId) -> Any:
        return self.specs.get(job) or super().jobspec(job)


def serve_beside(mode: str, text: bytes) -> tuple[Sim, JobId | None]:
    """Let a daemon of both kinds of bursts see a job, and then another one."""
    lead = LeadWithJobspecs()
    sim = Sim.at_rest(lead, modes=("joined", "isolated"), intake={"mode": mode})
    odd = lead.take(text)
    other = lead.submit(whole(2), t_submit=sim.now)
    sim.until(lambda: lead.jobs[other].state is JobState.RUN, ticks=20)
    lead.finish(other)
    sim.tick(3)
    return sim, odd


@pytest.mark.no_cover
@given(mode=st.sampled_from(MODES), path=st.sampled_from(paths(SPEC)), value=values)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@example("hold", ("attributes", "system", "environment"), 5)
@example("hold", ("attributes", "system", "environment"), [[1, 2]])
@example("hold", ("attributes", "system", "shell"), {"options": ["x"]})
@example("hold", ("resources", 0, "count"), 10**4000)
@example("queue", ("attributes", "system", "constraints"), {"not": []})
@example("hold", ("attributes", "system", "burst", "provider"), "{x}" * 100)
def test_the_next_job_is_served_whatever_is_in_a_jobspec(
    mode: str, path: tuple[Any, ...], value: Any
) -> None:
    serve_beside(mode, msgspec.json.encode(put(path, value)))


@pytest.mark.parametrize("depth", [300, 480, 960, 990, 5000])
def test_the_next_job_is_served_whatever_nests_in_a_jobspec(depth: int) -> None:
    text = msgspec.json.encode(SPEC)
    deep = b'{"not":[' * depth + b"{}" + b"]}" * depth
    constraint = msgspec.json.encode(SPEC["attributes"]["system"]["constraints"])
    assert constraint in text
    sim, odd = serve_beside("hold", text.replace(constraint, deep))
    assert odd is not None
    assert sim.lead.jobs[odd].request is None


@pytest.mark.parametrize("environment", [5, "x", [["A", "b"]], {"A": 1}])
def test_an_isolated_job_that_cannot_be_run_elsewhere_is_failed_with_the_reason(
    environment: Any,
) -> None:
    lead = LeadWithJobspecs()
    sim = Sim.at_rest(lead, modes=("isolated",))
    spec = put(("attributes", "system", "environment"), environment)
    job = lead.take(msgspec.json.encode(spec))
    assert job is not None
    good = lead.submit(
        whole(3), preferences=BurstPreferences(mode="isolated"), t_submit=sim.now
    )
    sim.until(lambda: lead.jobs[job].state is JobState.INACTIVE, ticks=20)
    ((_, _, why),) = [entry for entry in lead.log if entry[1] == job]
    assert "its jobspec cannot be read" in why
    sim.until(lambda: lead.jobs[good].state is JobState.INACTIVE, ticks=20)
    sim.until(lambda: all(not burst.live for burst in sim.bursts))
    assert sim.records.health == {}
