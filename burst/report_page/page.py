# SPDX-License-Identifier: MIT
"""The page as a whole."""

from __future__ import annotations

from burst.model.fsd import rounded_span
from burst.report_page.figures import Row, failures, results, sums, waits_of
from burst.report_page.markup import NONE, Html, join, tag
from burst.report_page.money import money_section
from burst.report_page.style import STYLE
from burst.report_page.timelines import timeline_section
from burst.report_page.waits import forecast_section, wait_section, waiting_section
from burst.report_page.words import amount, when
from burst.report_page.wrong import failure_section

# Nothing is fetched and no script is run, whatever a text on the page says.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def render_report(data: Row, refresh: int = 0) -> str:
    """Return a page, of the daemon's answer to the method `report`.

    With `refresh` a browser loads it again after so many seconds.
    """
    again = tag("meta", http_equiv="refresh", content=refresh) if refresh else NONE
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        again,
        tag("title", f"Bursts of {data['lead']}"),
        tag("style", Html(STYLE)),
    )
    sections = (
        _head(data),
        timeline_section(data),
        wait_section(data),
        waiting_section(data),
        money_section(data),
        forecast_section(data),
        failure_section(data),
        _known(data),
    )
    body = tag("body", tag("main", join(sections)))
    return f"<!DOCTYPE html>\n{tag('html', head, body, lang='en').text}\n"


def _head(data: Row) -> Html:
    since = f"since {data['since']}" if data["since"] else "all that is on record"
    return join(
        [
            tag("h1", "What bursts did"),
            tag(
                "p",
                tag("code", data["lead"]),
                f", {since}, as of {when(data['now'])} UTC",
                class_="quiet",
            ),
            _tiles(data),
        ]
    )


def _tiles(data: Row) -> Html:
    counted, money, waits = results(data), sums(data), waits_of(data)
    tiles = [
        (str(len(data["bursts"])), "bursts"),
        (str(counted["live"]), "of them live"),
        (str(len(failures(data))), "of them failed, late or reclaimed"),
        (str(len(data["jobs"])), "jobs on them that are known"),
    ]
    if waits:
        tiles.append((rounded_span(waits.median), "median wait of jobs on bursts"))
    if waits and waits.known:
        tiles.append(
            (rounded_span(waits.median_here), "median wait that was expected here")
        )
    if money.get("settled") or money.get("reserved"):
        tiles.append((amount(money["settled"]), "settled"))
        tiles.append((amount(money["wasted"]), "of it wasted"))
    shown = (tag("div", tag("b", value), what, class_="tile") for value, what in tiles)
    return tag("div", *shown, class_="tiles")


def _known(data: Row) -> Html:
    """Return what the page cannot tell."""
    lines = [
        "Of the last 100 bursts that ended, and of those that live, all is on record;"
        " of earlier ones, what they cost, when they were made and when they were gone."
        " Of each burst the last 16 jobs that ended are known one by one.",
        "What a job would have waited without its burst is a forecast, made as the job"
        " was assigned to the burst. It is known where forecasts were made then.",
        "Money is what nodes cost by their prices, for as long as they were paid for"
        " as far as is known here. The invoice is the truth.",
    ]
    if data["left_out"]:
        lines.append(f"{data['left_out']} earlier bursts are left out.")
    return join([tag("h2", "What this page knows"), *(tag("p", li) for li in lines)])
