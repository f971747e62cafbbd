# SPDX-License-Identifier: MIT
"""How long jobs waited, and would have without bursts; how good forecasts were."""

from __future__ import annotations

from burst.model.decision import why_waits
from burst.model.fsd import rounded_span
from burst.report_page.charts import Piece, Scale, bar, labelled, legend, table
from burst.report_page.figures import Row, wait, wait_here, waits_of
from burst.report_page.markup import NONE, Html, join, tag
from burst.report_page.words import when

_MOST = 60


def wait_section(data: Row) -> Html:
    """Return the waits of jobs that ran on bursts, beside what was expected here."""
    parts = [tag("h2", "Waits with bursts, and without")]
    waits = waits_of(data)
    if waits is None:
        return join([*parts, tag("p", "No job has started on a burst.")])
    parts.append(
        tag(
            "p",
            f"{waits.jobs} jobs started on bursts: half of them within"
            f" {rounded_span(waits.median)} of their submission, nine of ten within"
            f" {rounded_span(waits.slow)}.",
        )
    )
    if not waits.known:
        unknown = "No forecast is on record of when they would have started here."
        return join([*parts, tag("p", unknown)])
    saved = "less" if waits.saved >= 0 else "more"
    parts.append(
        tag(
            "p",
            f"Of {waits.known} of them it was forecast when own nodes would have been"
            " free: half of these waited at most"
            f" {rounded_span(waits.median_known)}, where"
            f" {rounded_span(waits.median_here)} was expected. Together they waited"
            f" {rounded_span(abs(waits.saved))} {saved} than that.",
        )
    )
    known = [j for j in data["jobs"] if j["here"] is not None and j["started"]]
    return join([*parts, *_pairs(known[-_MOST:])])


def _pairs(jobs: list[Row]) -> list[Html]:
    longest = max(max(wait(job), wait_here(job)) for job in jobs)
    scale = Scale(0.0, longest)
    kinds = ("run", "waited, with a burst"), ("here", "would have waited here")
    drawn = [legend(kinds)]
    for job in jobs:
        with_it, here = wait(job), wait_here(job)
        told = f"{rounded_span(with_it)} instead of {rounded_span(here)}"
        # The shorter one is drawn over the longer one.
        pieces = sorted(
            [Piece(0.0, with_it, "run", told), Piece(0.0, here, "here", told)],
            key=lambda piece: -piece.end,
        )
        drawn.append(labelled(tag("code", job["id"]), told, bar(pieces, scale, told)))
    return drawn


def waiting_section(data: Row) -> Html:
    """Return the jobs that wait now, with why; nothing where none does."""
    if not data["waiting"]:
        return NONE
    rows = [
        (
            tag("code", job["id"]),
            job["name"] or "-",
            rounded_span(max(0.0, data["now"] - job["submitted"])),
            "not known" if job["expected"] is None else when(job["expected"]),
            why_waits(job),
        )
        for job in data["waiting"]
    ]
    titles = ("Job", "Name", "#Waits for", "Expected to start", "=Why")
    return join([tag("h2", "Jobs that wait now"), table(titles, rows)])


def forecast_section(data: Row) -> Html:
    """Return how good forecasts of starts were, and how long bursts took to come."""
    parts = [tag("h2", "Forecasts against outcomes")]
    if data["forecasts"]:
        rows = [
            (
                row["group"],
                str(row["forecasts"]),
                f"{100 * row['near']:.0f} %",
                f"{100 * row['inside']:.0f} %",
            )
            for row in sorted(data["forecasts"], key=lambda row: -row["forecasts"])
        ][:_MOST]
        titles = ("Jobs", "#Forecasts", "#Within ten minutes", "#Within their interval")
        told = "When jobs started on own nodes, against their first forecast:"
        parts += [tag("p", told), table(titles, rows)]
    else:
        parts.append(
            tag("p", "No forecast of a start on own nodes has an outcome yet.")
        )
    times = [
        (
            f"{provider['name']}/{offer['name']}",
            rounded_span(offer["online"]["p50"]),
            rounded_span(offer["online"]["p90"]),
            str(offer["online"]["bursts"]),
        )
        for provider in data["providers"]
        for offer in provider["offers"]
        if offer["online"]
    ]
    if times:
        titles = ("Offer", "#Half within", "#Nine of ten within", "#Of bursts")
        told = "How long bursts took to be online, by which the next are expected:"
        parts += [tag("p", told), table(titles, times)]
    return join(parts)
