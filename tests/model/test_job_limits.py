# SPDX-License-Identifier: MIT
"""What Flux would reject, by the limits of the instance and of the queue."""

import msgspec
import pytest

from burst.model.job_limits import JobLimits, parse_limits
from burst.model.request import ResourceRequest

SMALL = {"duration": "30m", "job-size": {"max": {"ngpus": -1, "nnodes": 2}}}
GENERAL = {
    "duration": "4h",
    "job-size": {"max": {"nnodes": 8, "ngpus": 4}, "min": {"ncores": 2}},
}
CONFIG = {
    "policy": {"limits": GENERAL},
    "queues": {
        "batch": {},
        "debug": {"policy": {"limits": SMALL}},
        "long": {"policy": {"limits": {"duration": "0"}}},
    },
}


def request(nodes: int = 1, slots: int = 2, gpus: int = 0) -> ResourceRequest:
    return ResourceRequest(
        nodes=nodes, slots=slots, cores_per_slot=1, gpus_per_slot=gpus
    )


def test_a_queues_limits_override_the_general_ones_one_by_one() -> None:
    found = parse_limits(CONFIG)
    assert found["batch"] == found[""]
    assert found[""] == JobLimits({"nnodes": 8, "ngpus": 4}, {"ncores": 2}, 14400.0)
    assert found["debug"] == JobLimits({"nnodes": 2}, {"ncores": 2}, 1800.0)
    assert found["long"].duration == 0
    assert found["long"].most_nodes == 8


@pytest.mark.parametrize(
    "config",
    [
        {},
        {"policy": {"limits": {"job-size": {"max": {"nnodes": -1}}}}},
        {"policy": {"limits": {"duration": "x", "job-size": {"max": 3}}}},
        {"policy": 1},
    ],
)
def test_without_limits_there_is_none(config: dict[str, object]) -> None:
    (limits,) = parse_limits(config).values()
    assert limits == JobLimits()
    assert (limits.most_nodes, str(limits)) == (0, "")
    assert limits.why_over(request(10**6, 10**7, 9), 0) == ""


@pytest.mark.parametrize(
    ("asked", "duration", "why"),
    [
        (request(), 60, ""),
        (request(2), 1800, ""),
        (request(3), 60, "nnodes 3 is over the limit of 2"),
        (request(slots=1), 60, "ncores 1 is under the limit of 2"),
        (request(gpus=1), 60, ""),
        (request(), 1801, "30m is over the limit of 30m"),
        (request(), 7200, "2h is over the limit of 30m"),
        (request(), 0, "an unlimited run time is over the limit of 30m"),
    ],
)
def test_why_a_job_would_be_rejected(asked, duration, why):
    assert parse_limits(CONFIG)["debug"].why_over(asked, duration) == why


def test_limits_in_words() -> None:
    assert str(parse_limits(CONFIG)[""]) == (
        "nnodes at most 8, ngpus at most 4, ncores at least 2, duration at most 4h"
    )


@pytest.mark.parametrize("text", ["inf", "0", "soon", "2h"])
def test_they_are_the_same_after_they_were_written_as_json(text: str) -> None:
    """A provider may write a spec, which has the lead's identity, and read it again."""
    limits = parse_limits({"policy": {"limits": {"duration": text}}})
    again = msgspec.json.decode(msgspec.json.encode(limits), type=dict[str, JobLimits])
    assert again == limits
    assert bool(limits[""].duration) == (text == "2h")
