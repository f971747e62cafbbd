# SPDX-License-Identifier: MIT
"""HTML that is escaped unless it was made here.

tag("p", "a < b", tag("b", name), class_="note")    # Html('<p class="note">a &lt; ...')
"""

from __future__ import annotations

import html
from collections.abc import Iterable

import msgspec

from burst.model.printable import printable

_EMPTY = {"meta", "rect", "line", "col"}


class Html(msgspec.Struct, frozen=True):
    """A text that is HTML already. Only `tag` and `join` make it of others' texts."""

    text: str


Child = Html | str | int | float
NONE = Html("")


def escape(text: object) -> str:
    """Return a text as HTML shows it, also in an attribute; control characters not."""
    return html.escape(printable(text), quote=True)


def tag(name: str, /, *children: Child, **attributes: object) -> Html:
    """Return an element. A trailing `_` of an attribute's name is left out, others are
    `-`; one that is None is left out.
    """
    given = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    if name in _EMPTY:
        return Html(f"<{name}{given}/>")
    return Html(f"<{name}{given}>{join(children).text}</{name}>")


def join(children: Iterable[Child]) -> Html:
    """Return several after each other."""
    return Html("".join(c.text if isinstance(c, Html) else escape(c) for c in children))
