# SPDX-License-Identifier: MIT
"""The jobspec of a job that is in place of one that lost a node."""

from typing import Any

import pytest

from burst.errors import JobspecError
from burst.model.jobid import JobId, format_f58
from burst.model.repeat import Repeat, lost_node, repeated_jobspec
from burst.model.request import parse_preferences

REPEAT = Repeat(losses=2, urgency=20, since=1.0)
JOB = JobId(7)
NODE_FAILURE = "node failure on burst-0-1 (rank 3)"
BROKER_ENDED = "flux_job_event_watch_get: Function not implemented"


def spec(**system: Any) -> dict[str, Any]:
    return {"version": 1, "attributes": {"user": {"x": 1}, "system": system}}


def test_the_rest_is_as_its_user_submitted_it() -> None:
    first = spec(
        queue="debug",
        environment={"A": "b"},
        dependencies=[{"scheme": "afterok", "value": "f1"}],
        burst={"requeue": True, "urgency": 3, "losses": 1, "repeats": "f2"},
    )
    before = repr(first)
    second = repeated_jobspec(first, JOB, REPEAT)
    assert repr(first) == before
    told = {"urgency": 20, "repeats": format_f58(JOB), "losses": 2}
    assert second == {
        "version": 1,
        "attributes": {
            "user": {"x": 1},
            "system": {
                "queue": "debug",
                "environment": {"A": "b"},
                "burst": {"requeue": True, **told},
            },
        },
    }


@pytest.mark.parametrize("burst", [{}, {"burst": None}, {"burst": {}}])
def test_the_daemon_reads_what_it_wrote(burst: dict[str, Any]) -> None:
    found = parse_preferences(repeated_jobspec(spec(**burst), JOB, REPEAT))
    assert (found.urgency, found.losses) == (20, 2)
    assert found.repeats == format_f58(JOB)
    assert found.requeue is None


@pytest.mark.parametrize("hostile", [{}, {"attributes": 1}, spec(burst=[1])])
def test_one_that_cannot_be_read_is_an_error(hostile: dict[str, Any]) -> None:
    with pytest.raises(JobspecError, match="its jobspec cannot be read"):
        repeated_jobspec(hostile, JOB, REPEAT)


@pytest.mark.parametrize(
    ("kind", "note", "lost"),
    [
        ("exec", NODE_FAILURE, True),
        ("exec", BROKER_ENDED, True),
        ("exec", "burst-0-1 (rank 3): Permission denied", False),
        ("node-failure", NODE_FAILURE, False),
        ("cancel", NODE_FAILURE, False),
        ("timeout", "", False),
    ],
)
def test_flux_says_that_a_node_was_lost(kind: str, note: str, lost: bool) -> None:
    assert lost_node(kind, note) == (note if lost else "")
