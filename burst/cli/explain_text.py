# SPDX-License-Identifier: MIT
"""What `burst explain` prints of a job or a burst, as lines with styles."""

from __future__ import annotations

import datetime
import time
from collections.abc import Iterable, Iterator

from burst.cli.colours import (
    HEAD,
    NOTICE,
    QUIET,
    WRONG,
    Line,
    result_style,
    state_style,
)
from burst.cli.listing import Row, fsd, money
from burst.model.burst import PRICE_SOURCES
from burst.model.decision import count_nodes, name_ranks, time_after
from burst.model.event import PROBLEMS

_Zone = datetime.timezone | None


def story_lines(found: Row, now: float) -> list[Line]:
    """Return the answer to the method `explain` as lines for `print_text`.

    An answer about a burst has a key `burst`; any other is about a job. All times are
    of the time zone of the daemon, as those in its sentences are.
    """
    zone = _other_zone(found, now)
    lines = list((_burst if "burst" in found else _job)(found, now, zone))
    if zone is not None:
        lines.append([(f"times are those of the daemon's time zone, {zone}", QUIET)])
    return lines


def _other_zone(found: Row, now: float) -> datetime.timezone | None:
    """Return the time zone of the daemon; None if it is that of this process."""
    # A daemon of an earlier version does not tell it.
    offset = found.get("utc_offset")
    if offset is None or offset == time.localtime(now).tm_gmtoff:
        return None
    return datetime.timezone(datetime.timedelta(seconds=offset))


def _job(found: Row, now: float, zone: _Zone) -> Iterator[Line]:
    """Yield the story of a job: why it waits, or how it ended, and its bursts."""
    # The daemon forgets what a job needed a minute after its end.
    needs = f", {found['needs']}" if found["needs"] else ""
    yield [(found["id"], HEAD), ": ", _state(found), needs]
    if found["why"]:
        yield [f"  {found['why']}"]
    # The texts of some reasons have the next step already.
    if (step := found.get("next")) and step not in found["why"]:
        yield [f"  next: {step}"]
    if found.get("here"):
        yield from ([f"  {line}"] for line in _start(found))
    yield from ([f"  {line}"] for line in found.get("usage", ()))
    if found["held"] in {"holding", "held"}:
        before = found["urgency_before"]
        held = f"  held by burst; its urgency was {before} (burst release)"
        yield [(held, NOTICE)]
    for refusal in found["refusals"]:
        offer = refusal["offer"], HEAD
        yield ["  ", offer, f": {refusal['why']}; next: {refusal.get('next', '')}"]
    for burst in found["bursts"]:
        title = (burst["id"], HEAD), f" of {burst['provider']}: "
        yield ["  ", *title, _state(burst), *_result(burst)]
        for when, event in _timed(burst["events"], now, zone):
            yield [(f"    {when}", QUIET), f" {event['text']}"]


def _state(found: Row) -> tuple[str, str]:
    return str(found["state"]), state_style(found)


def _result(found: Row) -> Line:
    if not found["result"]:
        return []
    return [", ", (found["result"], result_style(found))]


def _start(found: Row) -> list[str]:
    """Return when a job is expected to start here, and how good such forecasts are."""
    here = found["here"]
    # The reason for the verdict `not-worth` has this text already.
    told = [] if found["verdict"] == "not-worth" else [str(here["text"])]
    if here["expected"] is not None and here["grade"] is not None:
        told.append(f"forecasts were {here['grade']['text']}")
    return ["; ".join(told)] if told else []


def _timed(events: Iterable[Row], now: float, zone: _Zone) -> Iterator[tuple[str, Row]]:
    """Yield each event with its time, and with its day if that differs.

    It is compared with the day of the event before; for the first event, with today.
    """
    before = now
    for event in events:
        yield time_after(event["timestamp"], before, zone), event
        before = event["timestamp"]


def _burst(found: Row, now: float, zone: _Zone) -> Iterator[Line]:
    """Yield the story of a burst: events, durations, jobs, cost."""
    where = f"{found['provider']}/{found['offer']}"
    ranks = f" as {name_ranks(found['ranks'])}" if found["ranks"] else ""
    title = (found["burst"], HEAD), ": ", _state(found)
    yield [*title, *_result(found)]
    nodes = count_nodes(found["nodes"])
    yield [f"  {nodes} of {where}: {found['hosts']}{ranks}"]
    if found.get("standing"):
        yield [f"  made for the standing minimum of {found['standing']}"]
    note = found.get("note")  # none from a daemon of an earlier version
    if note and not any(note in event["text"] for event in found["events"]):
        yield [f"  {note}"]
    if found["next"]:
        yield [f"  next: {found['next']}"]
    for when, event in _timed(found["events"], now, zone):
        wrong = WRONG if event["name"] in PROBLEMS else ""
        yield [(f"  {when}", QUIET), (f" {event['text']}", wrong)]
    if found["stages"]:
        yield [("durations", HEAD)]
    for stage in found["stages"]:
        yield [f"  {fsd(stage['seconds']):>8} {stage['stage']}"]
    ended = [f"{count} {result}" for result, count in found["ended_jobs"].items()]
    yield [f"jobs that ended: {', '.join(ended) or 'none'}"]
    if found["jobs"]:
        yield [f"jobs assigned to it: {' '.join(found['jobs'])}"]
    if found["price"] or found["fee"]:
        each = f"{found['price']:g} per node-hour"
        source = PRICE_SOURCES[found["priced_by"]]
        fee = f", and {found['fee']:g} per burst and hour" if found["fee"] else ""
        yield [f"cost: {money(found['cost'])}, at {each} {source}{fee}"]
