# SPDX-License-Identifier: MIT
"""Bars as inline SVG: they stretch to the width, and their texts beside them do not."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from burst.report_page.markup import Html, join, tag
from burst.report_page.words import clock

_WIDE = 1000.0
_LEAST = 2.0
"""What is too short to be seen is drawn so wide."""


class Piece(msgspec.Struct, frozen=True):
    """A part of a bar, from one value to another."""

    begin: float
    end: float
    kind: str
    """The class that gives it its colour."""
    title: str = ""
    """What is told where the mouse rests."""


class Scale(msgspec.Struct, frozen=True):
    """Which value is at the left end of a bar, and which at the right."""

    low: float
    high: float

    def x(self, value: float) -> float:
        """Return where a value is, from 0 to 1000; nothing is outside."""
        part = (value - self.low) / ((self.high - self.low) or 1.0)
        return round(_WIDE * min(1.0, max(0.0, part)), 2)


def bar(pieces: Iterable[Piece], scale: Scale, told: str) -> Html:
    """Return a bar; `told` is its text for who cannot see it."""
    drawn = [_piece(piece, scale) for piece in pieces]
    return tag(
        "svg",
        tag("title", told),
        *drawn,
        class_="bar",
        role="img",
        viewBox=f"0 0 {_WIDE:g} 12",
        preserveAspectRatio="none",
    )


def _piece(piece: Piece, scale: Scale) -> Html:
    left = min(scale.x(piece.begin), _WIDE - _LEAST)
    width = max(_LEAST, scale.x(piece.end) - left)
    shape = {"x": f"{left:g}", "y": 0, "width": f"{width:g}", "height": 12}
    return tag("g", tag("title", piece.title), tag("rect", **shape), class_=piece.kind)


def labelled(name: Html, told: str, drawn: Html) -> Html:
    """Return a bar between what it is of and what is told of it."""
    label = tag("div", name, class_="label")
    return tag("div", label, drawn, tag("div", told, class_="told"), class_="row")


def axis(scale: Scale) -> Html:
    """Return the times at both ends of the bars, and between them."""
    days = scale.high - scale.low > 86_400
    parts = (0.0, 0.5, 1.0)
    times = (scale.low + part * (scale.high - scale.low) for part in parts)
    return tag(
        "div", *(tag("span", clock(at, days=days)) for at in times), class_="axis"
    )


def legend(kinds: Sequence[tuple[str, str]]) -> Html:
    """Return what each colour means, by class and text."""
    shown = (tag("span", tag("i", class_=kind), text) for kind, text in kinds)
    return tag("div", *shown, class_="legend")


def table(titles: Sequence[str], rows: Sequence[Sequence[Html | str]]) -> Html:
    """Return a table. A title that begins with `#` is of numbers, with `=` of texts."""
    kinds = [{"#": "number", "=": "text"}.get(title[:1]) for title in titles]
    head = (
        tag("th", title.lstrip("#="), class_=kind, scope="col")
        for title, kind in zip(titles, kinds, strict=True)
    )
    body = (
        tag("tr", *(tag("td", c, class_=k) for c, k in zip(row, kinds, strict=True)))
        for row in rows
    )
    inner = tag("thead", tag("tr", *head)), tag("tbody", join(body))
    return tag("div", tag("table", *inner), class_="scroll")
