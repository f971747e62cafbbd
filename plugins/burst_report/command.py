# SPDX-License-Identifier: MIT
"""`burst report`: what happened, as a short text or as a page."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from burst.cli.colours import HEAD, WRONG, Line
from burst.cli.daemon_call import ask_or_read
from burst.cli.listing import Row, counted, money, print_json, print_text
from burst.cli.numbers import Day
from burst.cli.progress import show_wait
from burst.cli.target import Target, target_options
from burst.errors import BurstError
from burst.model.fsd import rounded_span
from burst.model.printable import printable
from burst_report import NEEDS, can_render
from burst_report.figures import failures, results, settled_since, sums, waits_of

_DAYS = 7
_FAILURES = 5


@click.command()
@click.option(
    "--since",
    type=Day(),
    help="Report only on bursts made on that day (UTC) or later; default: the last"
    f" {_DAYS} days.",
)
@click.option(
    "--html",
    "page",
    type=click.Path(path_type=Path, dir_okay=False, allow_dash=True),
    metavar="FILE",
    help="Write the report as a web page that needs no network and no script; - for"
    " standard output.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@target_options
def report(
    since: datetime.date | None, page: Path | None, as_json: bool, target: Target
) -> None:
    """Report on past bursts: waits with and without them, money, failures.

    --html makes a page with a timeline, to read on a screen or on paper. Users other
    than the instance owner get the part about their own jobs. Without a daemon, the
    owner gets what is on record.
    """
    if page is not None and not can_render():
        raise BurstError(*NEEDS)
    found = _ask(target, (since or _days_ago()).isoformat())
    if as_json:
        print_json(found)
    if page is not None:
        from burst_report.page import render_report  # noqa: PLC0415 - see can_render

        _write(page, render_report(found))
    if page is None and not as_json:
        for line in _lines(found):
            print_text(line)


def _days_ago() -> datetime.date:
    today = datetime.datetime.now(datetime.UTC).date()
    return today - datetime.timedelta(days=_DAYS - 1)


def _ask(target: Target, since: str) -> dict[str, Any]:
    asked = {"since": since}
    with target.lead() as lead, show_wait("reading what happened"):
        return ask_or_read(lead, target, "report", asked)


def _write(page: Path, text: str) -> None:
    if str(page) == "-":
        click.echo(text, nl=False)
        return
    try:
        page.write_text(text, encoding="utf-8")
    except OSError as error:
        raise BurstError(
            f"{page}: cannot be written: {error.strerror}", "name another file"
        ) from error
    click.echo(f"{page}: written; open it in a browser", err=True)


def _lines(found: Row) -> Iterator[Line]:
    """Yield the lines of the short report."""
    counts = ", ".join(f"{count} {how}" for how, count in results(found).items())
    bursts = counted(len(found["bursts"]), "burst")
    told = f"{bursts} since {found['since']}" + (f": {counts}" if counts else "")
    yield [(told, HEAD)]
    yield from ([line] for line in _waits(found))
    yield from ([line] for line in _money(found))
    wrong = failures(found)
    for row in wrong[:_FAILURES]:
        note = row["note"] or "the reason is no longer on record"
        told = (
            f"{row['id']} of {row['provider']}/{row['offer']} {row['result']}: {note}"
        )
        yield [(printable(told), WRONG)]
    if len(wrong) > _FAILURES:
        yield [(f"{len(wrong) - _FAILURES} more failed; --html lists them", WRONG)]
    if found["left_out"]:
        yield [f"{found['left_out']} earlier bursts are left out"]


def _waits(found: Row) -> Iterator[str]:
    waits = waits_of(found)
    if waits is None:
        yield "no job has started on a burst"
        return
    median, slow = rounded_span(waits.median), rounded_span(waits.slow)
    jobs = f"{counted(waits.jobs, 'job')} on record"
    yield f"{jobs} started on bursts: half within {median}, 9 of 10 within {slow}"
    if waits.known:
        here, took = rounded_span(waits.median_here), rounded_span(waits.median_known)
        told = f"for {waits.known}, a start here was forecast: half would have waited"
        yield f"{told} {here}, and waited {took}"
    else:
        yield "when they would have started here is not on record"


def _money(found: Row) -> Iterator[str]:
    total = sums(found)
    settled, wasted = total.get("settled", 0.0), total.get("wasted", 0.0)
    if settled or total.get("reserved"):
        since = settled_since(found)
        told = f"settled since {since}" if since else "settled"
        yield (
            f"{money(settled)} {told}, {money(wasted)} of it wasted;"
            f" {money(total['reserved'])} reserved"
        )
