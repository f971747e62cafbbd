# SPDX-License-Identifier: MIT
"""The story of a burst, as `burst explain` prints it."""

from __future__ import annotations

from typing import Any

import pytest

from burst.cli.explain_text import story_lines
from burst.model.decision import clock_time, time_after

DAY = 86_400.0
NOON = 1_800_014_400.0


def story(
    *seconds: float, result: str = "", now: float = NOON, utc_offset: int = 0
) -> list[str]:
    """Return what is printed of a job's burst with events at these times."""
    events = [{"timestamp": at, "text": "it"} for at in seconds]
    burst = {"id": "b", "provider": "p", "state": "online", "result": result}
    job: dict[str, Any] = dict.fromkeys(("id", "state", "result", "why", "held"), "")
    job |= {"needs": "1 node", "refusals": (), "bursts": [{**burst, "events": events}]}
    job["utc_offset"] = utc_offset
    lines = (
        [each if isinstance(each, str) else each[0] for each in line]
        for line in story_lines(job, now)
    )
    return ["".join(line).strip() for line in lines][1:]


@pytest.mark.parametrize(
    ("event", "told"), [("it failed: full", False), ("it shrinks", True)]
)
def test_the_note_of_a_burst_is_told_unless_an_event_has_it(
    event: str, *, told: bool
) -> None:
    burst: dict[str, Any] = dict.fromkeys(
        ("provider", "offer", "result", "ranks", "price", "fee"), ""
    )
    burst |= {"burst": "b", "state": "online", "nodes": 1, "hosts": "b-0"}
    burst |= {"next": "", "note": "full", "stages": (), "jobs": (), "ended_jobs": {}}
    burst |= {"events": [{"timestamp": NOON, "name": "x", "text": event}]}
    lines = ["".join(map(str, line)) for line in story_lines(burst, NOON)]
    assert ("  full" in lines) is told


def times(*seconds: float, now: float) -> list[str]:
    """Return the times that are printed of such events."""
    return [line.removesuffix(" it") for line in story(*seconds, now=now)[1:]]


def test_a_burst_of_a_job_is_told_with_its_result() -> None:
    assert story() == ["b of p: online"]
    assert story(result="failed") == ["b of p: online, failed"]


@pytest.mark.parametrize("days", [0, 1, 9])
def test_events_of_another_day_are_told_with_their_day(days: int) -> None:
    last = NOON + days * DAY
    begun, told = time_after(NOON, last), time_after(last, NOON)
    assert times(NOON, NOON + 5, last, last + 5, now=last) == [
        *(begun, clock_time(NOON + 5), told, clock_time(last + 5))
    ]
    assert (" " in begun, " " in told) == (days > 0, days > 0)


def test_all_times_are_those_of_the_daemons_zone() -> None:
    told = story(NOON, NOON + 14 * 3600, utc_offset=-5 * 3600)
    assert told[1:] == [
        "07:00:00 it",
        "21:00:00 it",
        "times are those of the daemon's time zone, UTC-05:00",
    ]


def test_a_burst_without_events_has_no_times() -> None:
    assert times(now=NOON) == []


def test_what_happened_on_one_day_in_the_past_is_told_with_that_day() -> None:
    later = NOON + 9 * DAY
    told = times(NOON, NOON + 5, now=later)
    assert told == [time_after(NOON, later), clock_time(NOON + 5)]
    assert " " in told[0]
