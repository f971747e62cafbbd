# SPDX-License-Identifier: MIT
"""What bursts cost, by what it was paid for."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from burst.report_page.charts import Piece, Scale, bar, labelled, legend, table
from burst.report_page.figures import Row, sums
from burst.report_page.markup import Html, join, tag
from burst.report_page.words import amount, when

_KINDS = (
    ("work", "online", "work"),
    ("boot", "provision", "boot"),
    ("idle", "join", "idle"),
    ("teardown", "drain", "teardown"),
    ("never_joined", "lost", "never joined"),
)
_TITLES = ("#Settled", *(f"#{told.capitalize()}" for _, _, told in _KINDS))


def money_section(data: Row) -> Html:
    """Return money by month, kind and provider, waste and budgets."""
    found, total = data["cost"], sums(data)
    parts = [tag("h2", "Money")]
    if not total.get("settled") and not total.get("reserved"):
        parts.append(tag("p", "Nothing was settled or reserved."))
    else:
        parts += _amounts(found, total)
    if found["budgets"]:
        parts += [tag("h3", "Budgets"), _budgets(found["budgets"])]
    if found["left_out"]:
        parts.append(tag("p", f"{found['left_out']} earlier bursts are left out."))
    return join(parts)


def _amounts(found: Row, total: dict[str, float]) -> list[Html]:
    settled, wasted = total["settled"], total["wasted"]
    share = f" ({100 * wasted / settled:.0f} %)" if settled else ""
    told = (
        f"{amount(settled)} was settled, of which {amount(wasted)}{share} ran no job;"
        f" {amount(total['reserved'])} is reserved for live bursts."
    )
    parts = [tag("p", told), legend([(style, name) for _, style, name in _KINDS])]
    highest = max(month["settled"] for month in found["months"])
    parts += [_month(month, highest) for month in found["months"]]
    parts.append(_table("Month", "month", found["months"]))
    if found["rows"]:
        title = tag("h3", f"By {found['by']}")
        parts += [title, _table(found["by"].capitalize(), "name", found["rows"])]
    return parts


def _month(month: Row, highest: float) -> Html:
    spent = [month[key] for key, _, _ in _KINDS]
    ends = list(accumulate(spent))
    pieces = [
        Piece(end - part, end, style, f"{name} {amount(part)}")
        for (_, style, name), part, end in zip(_KINDS, spent, ends, strict=True)
        if part > 0
    ]
    told = "; ".join(piece.title for piece in pieces) or "nothing settled"
    drawn = bar(pieces, Scale(0.0, highest), told)
    return labelled(tag("span", month["month"]), amount(month["settled"]), drawn)


def _table(title: str, key: str, rows: Sequence[Row]) -> Html:
    shown = [
        (
            str(row[key]),
            amount(row["settled"]),
            *(amount(row[kind]) for kind, _, _ in _KINDS),
            amount(row["wasted"]),
            amount(row["reserved"]),
        )
        for row in rows
    ]
    return table((title, *_TITLES, "#Wasted", "#Reserved"), shown)


def _budgets(rows: Sequence[Row]) -> Html:
    shown = [
        (
            row["budget"],
            amount(row["limit"]),
            amount(row["settled"]),
            amount(row["reserved"]),
            tag("span", amount(row["left"]), class_="bad" if row["warns"] else None),
            when(row["anew"]),
        )
        for row in rows
    ]
    titles = ("Budget", "#Limit", "#Settled", "#Reserved", "#Left", "Begins anew")
    return table(titles, shown)
