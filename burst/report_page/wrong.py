# SPDX-License-Identifier: MIT
"""What failed, and why."""

from __future__ import annotations

from collections import Counter

from burst.report_page.charts import table
from burst.report_page.figures import Row, failures
from burst.report_page.markup import Html, join, tag
from burst.report_page.words import amount, when

_MOST = 100


def failure_section(data: Row) -> Html:
    """Return bursts that failed, with their reasons, and providers in trouble."""
    parts = [tag("h2", "Failures and their reasons")]
    failed = failures(data)
    if not failed:
        parts.append(tag("p", "No burst failed, was late or was reclaimed."))
    else:
        parts += [_counts(failed), _bursts(failed[:_MOST])]
    if len(failed) > _MOST:
        parts.append(tag("p", f"{len(failed) - _MOST} earlier ones are left out."))
    trouble = [
        (row["name"], row["disabled"] or row["trouble"])
        for row in data["providers"]
        if row["disabled"] or row["trouble"]
    ]
    if trouble:
        parts.append(tag("h3", "Providers in trouble now"))
        parts.append(table(("Provider", "=Why"), trouble))
    return join(parts)


def _counts(failed: list[Row]) -> Html:
    counted = Counter((row["provider"], row["result"]) for row in failed)
    told = (
        f"{count} of {provider} {result}"
        for (provider, result), count in counted.most_common()
    )
    return tag("p", "; ".join(told))


def _bursts(failed: list[Row]) -> Html:
    rows = [
        (
            tag("code", row["id"]),
            f"{row['provider']}/{row['offer']}",
            str(row["nodes"]),
            when(row["made"]),
            tag("span", row["result"], class_="bad"),
            amount(row["cost"]),
            row["note"] or "not on record",
        )
        for row in failed
    ]
    titles = ("Burst", "Offer", "#Nodes", "Made", "Result", "#Cost", "=Why")
    return table(titles, rows)
